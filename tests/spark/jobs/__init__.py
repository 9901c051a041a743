"""The commands as users run them, and the Spark session."""
