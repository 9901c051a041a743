"""The card of timelines: everything that is drawn over one axis of time."""
