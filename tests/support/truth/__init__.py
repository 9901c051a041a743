"""What a capture's cluster really did, by what only tests may read: ZooKeeper's transaction log, probes, the scenario.

Reconstructions are measured against it, in order and in time.
"""
