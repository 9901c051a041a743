"""What a broker's log directories hold: checkpoints and partition directories."""
