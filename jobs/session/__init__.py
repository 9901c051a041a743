"""The Spark session of every job, the Java and jars that it needs on this machine, and what a user sees of its work."""
