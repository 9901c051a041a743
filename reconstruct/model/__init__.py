"""Kafka's controller and replication protocol as values and functions: standard library only, no IO, no Spark."""
