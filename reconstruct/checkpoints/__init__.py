"""A broker's checkpoint files: what copies of them and starts of its process show, and what damage to them caused.

``evidence`` is the input, ``rules`` judges R37 through ``files``, ``entries``, ``starts`` and ``stale``. The offsets
that checkpoints prove are in ``offsets``.
"""
