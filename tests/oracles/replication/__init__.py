"""How a partition's log end offsets, high watermarks and ISR move: a simulator of the replicas of one partition.

The program does not call it: it is the oracle that the bounds of offsets are tested against. ``log`` is what a log and
its lineage of epochs are, ``leader`` and ``follower`` what each side does, ``cluster`` plays whole histories of
``events``, ``invariants`` judges them. ``rules`` are those of every version.
"""
