"""Checkpoint files and restarts, gathered by Spark for :mod:`reconstruct.checkpoints`."""
