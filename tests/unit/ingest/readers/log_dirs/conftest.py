"""The captures, for the tests of this folder."""

from tests.support.captures.packed import unpacked

__all__ = ["unpacked"]
