"""What each controller logged of one partition, taken apart and compared with what its version does (R13 to R16)."""
