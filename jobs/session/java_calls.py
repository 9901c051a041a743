"""Fewer calls of Java: names looked up once, columns made once, sequences handed over by tens, objects let go of by
hundreds.

Each time that pyspark names a class or a static function of Java (``PythonUtils.toSeq``, ``F.col``) py4j asks Java what
that name is, and Java looks for it in each of Spark's 250 jars where it is the name of a package, or of a class that is
imported. The plans of one run name some 20,000; their meaning never changes. Nor do columns: half of the 20,000 calls
of a run make one, or a sequence of them, of the same as a call before. A list goes to Java element by
element, 6,700 calls in such a run, and each of 23,000 objects of Java that Python needs no more is told of by a call.
Of each value that is handed over pyspark asks whether it is one of numpy's, for which it imports its own tests, and
pandas with them, as Spark starts.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from py4j.clientserver import SHUTDOWN_FINALIZER_WORKER, FinalizerWorker
from py4j.java_gateway import JavaClass, JavaMember, JavaObject, JavaPackage, JVMView
from py4j.protocol import ENTRY_POINT_OBJECT_ID, GATEWAY_SERVER_OBJECT_ID
from pyspark.sql.classic import column, dataframe
from pyspark.sql.types import NumpyArrayConverter, NumpyScalarConverter

_FUNCTIONS: Final = "z:org.apache.spark.sql.functions"
#: Of these each is another: Java draws a number as it makes it.
_DRAWN: Final = frozenset({"count_min_sketch", "rand", "randn", "random", "randstr", "shuffle", "uniform", "uuid"})
#: What else gives the same for the same, as py4j names it.
_SEQUENCES: Final = frozenset(
    {("z:java.util.List", "of"), ("z:org.apache.spark.api.python.PythonUtils", "toSeq"), ("z:scala.Option", "empty")}
)
#: Columns and sequences; then all are made anew.
_MOST_KEPT: Final = 1 << 14
#: ``java.util.List.of`` takes no more but as an array.
_AT_ONCE: Final = 10
#: Objects are let go of when there are so many, looked at so often.
_LET_GO: Final = 200
_SECONDS: Final = 0.1
#: Never let go of: Python has them by these names.
_OF_PY4J: Final = frozenset({ENTRY_POINT_OBJECT_ID, GATEWAY_SERVER_OBJECT_ID})


def call_less() -> None:
    """Have py4j keep what a name of Java means (packages, classes and static functions; values of fields are asked for
    each time) and the columns that it made, and tell Java of objects in lots, and pyspark make its sequences of few
    calls. For this process, before its Java starts; a second call does nothing."""
    for kind in (JVMView, JavaPackage, JavaClass):
        if kind.__getattr__.__name__ != _ONCE:
            kind.__getattr__ = _once(kind.__getattr__)
    if JavaMember.__call__.__name__ != _ONCE:
        JavaMember.__call__ = _made_once(JavaMember.__call__)
    for module in (column, dataframe):
        module.__dict__["_to_seq"] = _to_seq
    FinalizerWorker.run = _let_go_in_lots
    for converter, can_convert in ((NumpyScalarConverter, _is_numpy_scalar), (NumpyArrayConverter, _is_numpy_array)):
        converter.can_convert = can_convert  # type: ignore[method-assign, assignment]


def _is_numpy_scalar(_: Any, value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.generic)


def _is_numpy_array(_: Any, value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray) and value.ndim == 1


def _once(look_up: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    def asked_once(self: Any, name: str) -> Any:
        found = look_up(self, name)
        if isinstance(found, (JavaMember, JavaClass, JavaPackage)):
            self.__dict__[name] = found
        return found

    return asked_once


_ONCE = "asked_once"


class _Kept:
    """Columns and sequences of one Java: what each call made, and which objects these are. A column asked for something
    gives the same each time; a sequence may not (its iterator), and is only handed over."""

    def __init__(self) -> None:
        self.by_call: dict[tuple[Any, ...], Any] = {}
        self.columns: set[str] = set()
        self.sequences: set[str] = set()

    def key(self, member: Any, given: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """What is called and of what, if it makes the same each time."""
        if not (_is_sequence(member) or _is_function(member) or member.target_id in self.columns):
            return None
        key: list[Any] = [member.target_id, member.name]
        for each in given:
            if isinstance(each, JavaObject) and (each._target_id in self.columns or each._target_id in self.sequences):
                key.append((JavaObject, each._target_id))
            elif each is None or isinstance(each, (str, int)):
                key.append((type(each), each))
            else:
                return None
        return tuple(key)

    def keep(self, member: Any, key: tuple[Any, ...], made: Any) -> None:
        if len(self.by_call) >= _MOST_KEPT:
            for each in (self.by_call, self.columns, self.sequences):
                each.clear()
        self.by_call[key] = made
        if isinstance(made, JavaObject):
            (self.sequences if _is_sequence(member) else self.columns).add(made._target_id)


def _is_function(member: Any) -> bool:
    return member.target_id == _FUNCTIONS and member.name not in _DRAWN


def _is_sequence(member: Any) -> bool:
    return (member.target_id, member.name) in _SEQUENCES


def _made_once(call: Callable[..., Any]) -> Callable[..., Any]:
    """Calls of Java; not those that make a column or a sequence which one made before."""

    def asked_once(self: Any, *given: Any) -> Any:
        of_java = vars(self.gateway_client)
        kept = of_java.get(_KEPT) or of_java.setdefault(_KEPT, _Kept())
        key = kept.key(self, given)
        if key is None:
            return call(self, *given)
        made = kept.by_call.get(key, kept)
        if made is kept:
            made = call(self, *given)
            kept.keep(self, key, made)
        return made

    return asked_once


_KEPT: Final = "columns_made"


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
