"""What tests share, by subject: one room each, none of them with a test of its own in it.

Loose beside them stand only the browser that opens reports and the budget of a run.
"""
