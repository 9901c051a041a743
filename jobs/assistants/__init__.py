"""The lake for assistants: a server of the Model Context Protocol over standard input and output.

What its tools answer is that of ``ask``, ``explain`` and ``sql``, with the ids of the records that say so, and bounded.
It writes nothing, and it listens to no address.
"""
