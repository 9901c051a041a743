"""The timeline of the quorum on Spark."""
