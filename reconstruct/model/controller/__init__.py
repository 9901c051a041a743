"""Kafka's ZooKeeper controller, 0.8 to 3.9, as values and functions: see docs/controller-model.md."""
