"""Typed events and writes to znodes: what the records of bronze say, as rows, before any of it is compared.

Only Spark steps live here; which message a record is was decided by ``ingest/shapes``. Comparing events is the work
of the rooms that read them.
"""
