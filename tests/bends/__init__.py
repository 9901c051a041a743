"""Whole captures, bent, damaged and cut in raw text, judged without Spark: not in ``make test-quick``."""
