"""A broker's checkpoint files: what copies of them and starts of its process show, and what damage to them caused.

``evidence`` is the input, ``view`` looks it up, ``rules`` judges R37 by ``files``, single ``entries``, ``starts`` of
the process, ``stale`` files; ``restart_effects`` says what a restart with the damage did or would do. The offsets that
checkpoints prove are in ``offsets``.
"""
