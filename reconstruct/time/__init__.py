"""Instants, half-open intervals, and what touches a span of time, as every room counts them.

Standard library only; clocks are in ``clocks``.
"""
