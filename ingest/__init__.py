"""Capture and parse: what a cluster leaves behind becomes bronze rows. Knows nothing of replay."""
