"""Cluster-wide facts gathered by Spark, their rows, and the incarnations of topics."""
