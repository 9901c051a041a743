"""Incidents: what happened in a cluster, its cause, and all that followed from it.

``causes`` are the absences of brokers, and which of them an effect has; ``story`` tells an incident in rows and words;
``spark`` gathers the effects from gold. No rule is judged here, and nothing is seen that gold and silver do not say.
"""
