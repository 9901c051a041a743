"""Offsets of each replica: what is proven of them over time, in words and as curves."""
