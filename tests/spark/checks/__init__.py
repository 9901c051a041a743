"""Checks and metrics over lakes made by hand."""
