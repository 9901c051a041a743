"""The card of coverage: what was read, and what therefore can and cannot be known."""
