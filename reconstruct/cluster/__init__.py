"""The cluster as a whole: brokers that lived, controllers and their epochs, generations of a cluster made again.

``view`` is what every partition's fold is given of it. One partition's own history is in ``partitions``.
"""
