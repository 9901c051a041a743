"""All evidence of each partition, and its fold by Spark (:mod:`reconstruct.partitions.timeline`)."""
