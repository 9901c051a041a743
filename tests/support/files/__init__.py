"""Files written for tests as servers, wrappers and archivers write them.

What is in them is made up, or dealt out from a capture.
"""
