"""The metadata log of a KRaft quorum as values: what its records do to an image, and which of them were committed."""
