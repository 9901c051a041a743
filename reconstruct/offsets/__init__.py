"""High watermarks and log end offsets of one partition's replicas: bounds, losses, rules.

``evidence`` is what shows them (``messages``: by which lines). ``timeline`` makes bounds of it: ``timed_offsets``
dates each observed value, ``role_spans`` says who led, who followed and when offsets could fall, ``inference`` carries
bounds between offsets and replicas, ``bound_steps`` holds them over time, ``probe_answers`` and ``widest_bounds``
finish the rows. ``losses`` and ``records_at_risk`` say what elections cost or would cost, ``rules`` judge. What
checkpoint files hold is not judged here but in ``checkpoints``; how a replica replicates is in ``reconstruct.model``.
"""
