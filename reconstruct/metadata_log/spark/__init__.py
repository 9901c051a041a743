"""The metadata log on Spark."""
