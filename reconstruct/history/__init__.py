"""The history of one partition, of one cluster: pure functions from evidence to intervals. Standard library only."""
