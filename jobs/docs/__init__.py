"""Pages of ``docs/`` that are written from the code: tables from their specs, transitions from the model, rules.

``python -m jobs.docs`` writes all of them, or says with ``--check`` which are out of date.
"""
