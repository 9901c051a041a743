"""Names of Java looked up once.

Each time that pyspark names a class or a static function of Java (``PythonUtils.toSeq``, ``F.col``) py4j asks Java what
that name is, and Java looks for it in each of Spark's 250 jars where it is the name of a package, or of a class that is
imported. The plans of one run name some 20,000; their meaning never changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from py4j.java_gateway import JavaClass, JavaMember, JavaPackage, JVMView


def look_up_once() -> None:
    """Have py4j keep what a name of Java means: packages, classes and static functions; values of fields are asked for
    each time. For this process; a second call does nothing."""
    for kind in (JVMView, JavaPackage, JavaClass):
        if kind.__getattr__.__name__ != _ONCE:
            kind.__getattr__ = _once(kind.__getattr__)


def _once(look_up: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    def looked_up_once(self: Any, name: str) -> Any:
        found = look_up(self, name)
        if isinstance(found, (JavaMember, JavaClass, JavaPackage)):
            self.__dict__[name] = found
        return found

    return looked_up_once


_ONCE = "looked_up_once"
