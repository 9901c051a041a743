"""Requests of controllers to brokers, from decision to answer: matched, timed, judged; and logs that lack lines.

What a request must say is judged in ``partitions/reexecution``; here it counts whether and when it arrived.
"""
