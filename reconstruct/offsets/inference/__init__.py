"""The rules of replication that carry facts from one offset to another: each where it is proven to hold, nowhere else.

Five rules, explained in :mod:`reconstruct.offsets.timeline`: ``replicas`` has those within a replica and between a
follower and its leader, ``isr`` that of the ISR, ``facts`` what they add to. What facts make of bounds over time is in
``reconstruct.offsets.bound_steps``.
"""
