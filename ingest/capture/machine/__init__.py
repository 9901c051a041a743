"""What is recorded on a broker's own machine: its checkpoint files, its logs as they grow, its configuration.

``agent`` puts them together. What can be asked over the network is in ``brokers`` and ``zookeeper`` beside this.
"""
