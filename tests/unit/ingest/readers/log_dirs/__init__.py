"""What a broker's log directories hold: checkpoints, segments, indexes, listings."""
