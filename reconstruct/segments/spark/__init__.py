"""Segments on Spark."""
