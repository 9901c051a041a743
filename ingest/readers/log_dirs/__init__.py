"""A broker's log directories: checkpoint files, partition directories, and listings of them, each to its rows.

``checkpoints`` reads the checkpoint files; ``partition_files`` reads a partition's directory, with ``segments`` and
``indexes`` for its formats; ``listings`` takes what ``ls``, ``find`` or ``du`` printed. The broker's logs are in
``readers/logs``, its properties in ``readers/properties.py``.
"""
