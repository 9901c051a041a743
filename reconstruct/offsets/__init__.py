"""High watermarks and log end offsets of one partition's replicas: bounds, losses, rules.

``evidence`` is what shows them, ``timeline`` carries it to proven bounds by the rules of replication, ``losses`` and
``records_at_risk`` say what elections cost or would cost, ``rules`` judge. Checkpoint files are in ``checkpoints``.
"""
