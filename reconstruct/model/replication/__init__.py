"""How a partition's log end offsets, high watermarks and ISR move: replicas as values, the rules of every version.

``rules`` says which rules a version has, ``log`` what a log and its lineage of epochs are, ``leader`` and ``follower``
what each side does, ``cluster`` plays whole histories of ``events``, ``invariants`` judges them.
"""
