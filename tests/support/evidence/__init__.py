"""What the program's rules judge from, read from a capture's text by the program's pure functions, without Spark.

Tests that fold many times use it; tests on Spark hold it to what Spark gathers.
"""
