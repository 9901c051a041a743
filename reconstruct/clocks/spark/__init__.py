"""Clocks on Spark: causal pairs out of records, segments of each broker's clock, corrected times."""
