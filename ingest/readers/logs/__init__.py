"""Logs of brokers: from bytes to the rows of ``bronze.log_records``.

``wrappers`` and ``layouts`` say how lines are written, ``framing`` and ``runs`` which lines are one record,
``times`` at which instant it was written, ``records`` makes the rows. What a message means is in ``ingest/shapes``.
"""
