"""The packed captures, as folders, as text in memory, as one lake, scaled up, and damaged on purpose.

Nothing here judges what the program makes of them.
"""
