"""Which evidence there is, what is missing of it, and what that leaves open."""
