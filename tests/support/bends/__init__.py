"""Captures changed on purpose, each so that one rule is certainly broken at a known place.

`recall` and `offsets` say how many of them the program finds.
"""
