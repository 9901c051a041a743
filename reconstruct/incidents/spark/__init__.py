"""Incidents on Spark."""
