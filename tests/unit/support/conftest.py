"""Fixtures of the tests of the tests' own support."""

from tests.support.captures.packed import unpacked

__all__ = ["unpacked"]
