"""Records and znodes to typed rows on Spark: DataFrame in, DataFrame out."""
