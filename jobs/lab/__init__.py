"""A throw-away cluster of real ZooKeeper and Kafka brokers on this machine, and the incidents to play on it.

``releases`` and ``jars`` say what is run and fetch it; ``guard`` and ``processes`` start Java and leave none behind;
``cluster`` is one ZooKeeper and its brokers, ``admin`` what one asks of it, ``load`` a producer; ``scenarios`` are the
incidents as code; ``play`` puts them together into a capture folder. Nothing here is read by the other packages.
"""
