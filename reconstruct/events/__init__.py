"""Typed events and writes to znodes: what the records of bronze say, as rows, before any of it is compared.

The steps are Spark's; ``fields`` decodes what a record says. Which message it is was decided by ``ingest/shapes``.
Comparing events is the work of the rooms that read them.
"""
