"""Brokers as a source of a capture: each is asked for offsets and descriptions, round by round, in a thread of its own.

``probers`` finds them, ``prober`` asks one through ``client``; ``requests`` and ``answers`` are pure functions over
kafka-python's messages. Reading the lines back is in ``ingest/readers/capture_lines``.
"""
