"""Files to bronze: reads what a cluster leaves behind, and records a live one.

Its stages are its packages, in the order in which a file passes them: ``containers`` (streams of bytes), ``files``
(what each is and whose), ``readers`` and ``shapes`` (bytes to records), ``run`` (what is new, written and counted),
``lake`` (the tables); ``capture`` records. What the messages mean together is for ``reconstruct`` to say.
"""
