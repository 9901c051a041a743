"""Fixtures of the tests of ZooKeeper's files."""

from tests.support.captures.packed import unpacked

__all__ = ["unpacked"]
