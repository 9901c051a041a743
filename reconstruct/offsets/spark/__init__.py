"""Sightings of offsets, and the fold of each partition's by Spark (:mod:`reconstruct.offsets`)."""
