"""Fewer calls of Java: names looked up once, columns named once, sequences handed over by tens, objects let go of by
hundreds.

Each time that pyspark names a class or a static function of Java (``PythonUtils.toSeq``, ``F.col``) py4j asks Java what
that name is, and Java looks for it in each of Spark's 250 jars where it is the name of a package, or of a class that is
imported. The plans of one run name some 20,000; their meaning never changes. So it is with what some functions give:
a run asks 4,200 times for a column by its name, for some 500 names. A list goes to Java element by element,
6,700 calls in such a run, and each of 23,000 objects of Java that Python needs no more is told of by a call.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Final

from py4j.clientserver import SHUTDOWN_FINALIZER_WORKER, FinalizerWorker
from py4j.java_gateway import JavaClass, JavaMember, JavaObject, JavaPackage, JVMView
from py4j.protocol import ENTRY_POINT_OBJECT_ID, GATEWAY_SERVER_OBJECT_ID
from pyspark.sql.classic import column, dataframe

#: Static functions of Java that give what nothing changes, the same for the same text, number or nothing.
_ALWAYS_THE_SAME: Final = frozenset(
    {
        "org.apache.spark.sql.functions.col",
        "org.apache.spark.sql.functions.lit",
        "scala.Option.empty",
    }
)
_MOST_KEPT: Final = 4096
#: ``java.util.List.of`` takes no more but as an array.
_AT_ONCE: Final = 10
#: Objects are let go of when there are so many, looked at so often.
_LET_GO: Final = 200
_SECONDS: Final = 0.1
#: Never let go of: Python has them by these names.
_OF_PY4J: Final = frozenset({ENTRY_POINT_OBJECT_ID, GATEWAY_SERVER_OBJECT_ID})


def call_less() -> None:
    """Have py4j keep what a name of Java means (packages, classes and static functions; values of fields are asked for
    each time) and what :data:`_ALWAYS_THE_SAME` gave, and tell Java of objects in lots, and pyspark make its sequences
    of few calls. For this process, before its Java starts; a second call does nothing."""
    for kind in (JVMView, JavaPackage, JavaClass):
        if kind.__getattr__.__name__ != _ONCE:
            kind.__getattr__ = _once(kind.__getattr__)
    for module in (column, dataframe):
        module.__dict__["_to_seq"] = _to_seq
    FinalizerWorker.run = _let_go_in_lots


def _once(look_up: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    def looked_up_once(self: Any, name: str) -> Any:
        found = look_up(self, name)
        if isinstance(self, JavaClass) and f"{self._fqn}.{name}" in _ALWAYS_THE_SAME:
            found = _called_once(found)
            self.__dict__[name] = found
        elif isinstance(found, (JavaMember, JavaClass, JavaPackage)):
            self.__dict__[name] = found
        return found

    return looked_up_once


def _called_once(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, called once for the same text, whole number or boolean, and without an argument."""
    # lru_cache asks what it wraps for its documentation, of which Java has none
    known = lru_cache(maxsize=_MOST_KEPT, typed=True)(lambda *given: function(*given))

    def called_once(*given: Any) -> Any:
        is_plain = all(isinstance(each, (str, int)) for each in given)
        return known(*given) if is_plain else function(*given)

    return called_once


_ONCE = "looked_up_once"


def _to_seq(sc: Any, cols: Iterable[Any], converter: Callable[[Any], Any] | None = None) -> Any:
    """A sequence of Scala of the elements, each converted first; as pyspark's function of that name."""
    elements = [converter(element) for element in cols] if converter else list(cols)
    jvm = sc._jvm
    if any(element is None for element in elements):  # List.of takes none
        return jvm.PythonUtils.toSeq(elements)
    if len(elements) <= _AT_ONCE:
        return jvm.PythonUtils.toSeq(jvm.java.util.List.of(*elements))
    whole = jvm.java.util.ArrayList(len(elements))
    for begin in range(0, len(elements), _AT_ONCE):
        whole.addAll(jvm.java.util.List.of(*elements[begin : begin + _AT_ONCE]))
    return jvm.PythonUtils.toSeq(whole)


def _let_go_in_lots(worker: Any) -> None:
    """What py4j's thread does that tells Java of objects that Python needs no more. The last ones are not told of."""
    waiting: list[str] = []
    while True:
        try:
            task = worker.deque.pop()
        except IndexError:
            time.sleep(_SECONDS)
            continue
        if task == SHUTDOWN_FINALIZER_WORKER:
            return
        client, object_id = task
        if object_id not in _OF_PY4J:
            waiting.append(object_id)
        if len(waiting) >= _LET_GO:
            try:
                _let_go(client, waiting)
            except Exception:  # such as a Java that is gone: py4j's own way asks what it can, and raises nothing
                for each in waiting:
                    client.garbage_collect_object(each, False)
            waiting.clear()


def _let_go(client: Any, object_ids: Iterable[str]) -> None:
    """Take the objects out of what py4j's server in Java keeps for Python."""
    kept = JavaObject(GATEWAY_SERVER_OBJECT_ID, client).getGateway().getBindings().keySet()
    of_text = JavaClass("org.apache.hadoop.util.StringUtils", client)
    kept.removeAll(of_text.getStringCollection(" ".join(object_ids), " "))
