"""Which evidence there is, what is missing of it, and what that leaves open.

``gaps`` and ``levels`` find what is missing, ``limits`` says which rules and questions it leaves unjudged. No verdict
on Kafka is given here.
"""
