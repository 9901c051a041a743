"""The last run taken back."""
