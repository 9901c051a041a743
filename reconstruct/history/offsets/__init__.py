"""High watermarks and log end offsets of one partition's replicas: bounds, losses, rules."""
