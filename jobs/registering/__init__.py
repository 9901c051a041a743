"""The lake's tables and views by name in a catalog."""
