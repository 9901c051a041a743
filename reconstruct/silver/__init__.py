"""Spark steps from bronze to silver: DataFrame in, DataFrame out, no IO, ending in a select of the table's columns."""
