"""What every command is made of: its options, its report, its exit codes, and how it is run."""
