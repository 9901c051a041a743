"""Entry points: the command line, Spark jobs, the Spark session."""
