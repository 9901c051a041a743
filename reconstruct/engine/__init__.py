"""What every step on Spark shares: the one way between Spark and a fold, rows kept while a run lasts, findings
gathered, gold published as a whole. Nothing here knows a rule or a timeline: the rooms do.
"""
