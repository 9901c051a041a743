"""Fixtures of the tests of ZooKeeper's files."""

from tests.support.captures import unpacked

__all__ = ["unpacked"]
