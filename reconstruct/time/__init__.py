"""Instants and half-open intervals, as every room counts them. Standard library only; clocks are in ``clocks``."""
