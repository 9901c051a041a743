"""Ingestion into a lake: every source, runs that repeat, and files that grow."""
