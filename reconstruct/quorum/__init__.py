"""The quorum of a KRaft cluster itself: who led it in which epoch, by whose votes, and why that ended. What it decided
is the subject of :mod:`reconstruct.metadata_log`.
"""
