"""From the bytes of a file to rows of a bronze table: pure functions, one package for each family of sources.

``sources`` declares them all; ``work`` is what a reader gets and gives back, ``batches`` makes Arrow batches of it,
``secrets`` says what no row may hold. Which files there are, whose they are and what of them is new is decided in
``files`` and ``run``.
"""
