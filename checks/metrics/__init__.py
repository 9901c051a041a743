"""Proofs as figures: how much of the evidence was read, replayed and explained, judged by thresholds and by a trend."""
