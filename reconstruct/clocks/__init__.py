"""What each broker's clock showed against true time, with bounds that are proven.

``evidence`` finds causal pairs, ``timeline`` solves them for offsets of each clock by ``bounds``, ``cuts`` and
``segments``. What rests on a corrected time is in the other rooms.
"""
