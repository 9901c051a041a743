"""Independent re-implementations of what Kafka and ZooKeeper do, which the program's conclusions are tested against.

``controller`` plays the controller's procedures; ``broker_requests`` what brokers do with its requests; ``replication``
plays the replicas of a partition; ``znode_replay`` applies ZooKeeper's transactions to a tree of znodes. The program
calls none of them.
"""
