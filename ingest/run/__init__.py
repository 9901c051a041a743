"""One run of the ingest: what is new, read by Spark's tasks, written into bronze, and counted against what was read.

``pipeline`` is its table of contents; ``planning`` and ``superseding`` compare files with what the lake holds,
``reading`` and ``writing`` are the Spark edge, ``following`` repeats the run as files grow. No format is known here.
"""
