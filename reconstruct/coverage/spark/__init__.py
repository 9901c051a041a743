"""Coverage on Spark: spans for which evidence exists, and those for which it does not."""
