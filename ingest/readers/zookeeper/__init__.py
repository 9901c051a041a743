"""ZooKeeper's own files: transaction logs and snapshots, from their binary formats to rows.

``jute`` decodes values; ``transaction_framing`` and ``snapshot_format`` frame the files, ``transaction_log`` and
``snapshots`` make the rows. Snapshots that ``capture`` writes are JSON lines: see
``readers/capture_lines``.
"""
