"""Bronze rows become silver events and timelines, and gold findings."""
