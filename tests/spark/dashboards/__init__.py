"""The report, looked at in a browser."""
