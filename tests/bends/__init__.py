"""Whole captures, bent, damaged and cut, or held to the truth, judged without Spark: not in ``make test-quick``."""
