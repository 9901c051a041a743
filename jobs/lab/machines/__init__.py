"""Real ZooKeeper and brokers on this machine: which releases, their jars, their processes, and none left behind."""
