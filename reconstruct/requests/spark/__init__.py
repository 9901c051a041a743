"""Requests of controllers, matched by Spark (:mod:`reconstruct.requests`)."""
