"""The steps of reconstruction on Spark, and whole captures scored, damaged or not."""
