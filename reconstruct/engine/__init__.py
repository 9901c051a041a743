"""What every step on Spark shares: inputs made once, rows staged while a run lasts, findings gathered, gold published.

Nothing here knows a rule or a timeline: the rooms do.
"""
