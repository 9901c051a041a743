"""What ``ask`` does in Spark: a saved question's rows, and what the evidence cannot say of it."""
