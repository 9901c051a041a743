"""What is drawn and told of a cluster's nodes: its controllers and what each did, its brokers, their clocks."""
