"""One partition incarnation: what was decided (leader, ISR, assignment, states) and what brokers believed of it.

``evidence`` is its input, ``timeline`` the fold that makes every timeline, ``elections`` and ``reexecution`` do the
controller's work again, ``rules`` judge. Offsets are in ``offsets``, requests across partitions in ``requests``.
"""
