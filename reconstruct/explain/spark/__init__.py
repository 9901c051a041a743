"""The evidence of one partition read from a lake, small and for one reader."""
