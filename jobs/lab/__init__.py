"""A throw-away cluster of real ZooKeeper and Kafka brokers on this machine, and the incidents to play on it.

In ``machines``, ``releases`` says what is run and fetches its jars; ``guard`` and ``processes`` start Java and leave no
process behind; ``cluster`` is one ZooKeeper and its brokers. ``admin`` is what one asks of a cluster, ``load`` a
producer; ``scenarios`` are the incidents as code; ``play`` puts them together into a capture folder. Nothing here is
read by the other packages.
"""
