"""The Spark session of every job, and the Java and jars that it needs on this machine."""
