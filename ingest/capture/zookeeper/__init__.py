"""ZooKeeper as a source of a capture: reads the znodes below Kafka's chroot, and never writes.

``source`` is the thread, ``poller`` reads, ``tree`` knows what must be read again, ``znodes`` makes the lines.
Reading ZooKeeper's own files is in ``ingest/readers/zookeeper``.
"""
