"""What a fold asks of the facts that it is given beside its evidence: noted, so that it can be asked again.

A fold is a pure function of its evidence and of the answers to its questions. As long as its evidence is the same and
each question has the same answer, it would ask the same and give the same rows, whatever else is new. Facts that many
folds share (a cluster's timelines) therefore note every question on its way to them; where the kind of question allows
it, what is kept is less than the answer: of a log only what it covers of the time that was asked for.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from typing import Any, Final, Generic, Protocol, Self, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")
Value_co = TypeVar("Value_co", covariant=True)

#: The question that every fold asks: for what is given to it without being noted.
ALWAYS: Final = "always"
#: Not a question, but before which instant all facts are that were asked for.
BEFORE: Final = "before"


class Facts(Protocol):
    """Facts that folds may share."""

    def noting(self, asked: Asked) -> Self:
        """The same facts, which note what is asked of them."""

    def answer(self, fact: str, /, *asked: Any) -> object:
        """The answer to a question, as it was noted; to :data:`ALWAYS`, all that is not noted."""

    def before(self, instant: int) -> Self:
        """What of the facts was before an instant, µs: the same, whatever comes later."""


Facts_ = TypeVar("Facts_", bound=Facts)


class Asked:
    """The questions of one fold: the name of a fact, and what of it was asked for; of facts ``before`` an instant, or
    of all (None)."""

    def __init__(self, before: int | None = None) -> None:
        self._before: list[tuple[str, int]] = [] if before is None else [(BEFORE, before)]
        self._questions: set[tuple[Any, ...]] = {(ALWAYS,)}
        self._spans: dict[tuple[str, Any], tuple[int, int]] = {}

    def note(self, fact: str, *asked: Any) -> None:
        """A question; ``asked`` are numbers, texts or None."""
        self._questions.add((fact, *asked))

    def note_span(self, fact: str, whose: Any, start: int, end: int) -> None:
        """A question about [start, end]: of several the span is kept that holds them all."""
        first, last = self._spans.get((fact, whose), (start, end))
        self._spans[fact, whose] = min(first, start, end), max(last, start, end)

    def questions(self) -> list[str]:
        """Each question once, in a fixed order, behind the instant before which they are."""
        spans = {(*of, *span) for of, span in self._spans.items()}
        asked = sorted(json.dumps(question) for question in self._questions | spans)
        return [*map(json.dumps, self._before), *asked]


class _Noted:
    """Values of which is noted that all were asked for, or which one was looked for."""

    __slots__ = ("_asked", "_fact", "_values")

    def __init__(self, values: Any, fact: str, asked: Asked) -> None:
        self._values, self._fact, self._asked = values, fact, asked

    def __contains__(self, value: object) -> bool:
        self._asked.note(self._fact, value)
        return value in self._values

    def __iter__(self) -> Iterator[Any]:
        self._asked.note(self._fact)
        return iter(self._values)

    def __len__(self) -> int:
        self._asked.note(self._fact)
        return len(self._values)


class NotedMap(_Noted, Mapping[Key, Value_co]):
    """Facts by their key: noted is the key asked for, or that all were."""

    __slots__ = ()

    def __getitem__(self, key: Key) -> Value_co:
        self._asked.note(self._fact, key)
        found: Value_co = self._values[key]
        return found

    def get(self, key: Key, default: Any = None) -> Any:
        self._asked.note(self._fact, key)
        return self._values.get(key, default)


class NotedSet(_Noted, Set[Value]):
    """A set of which is noted what was looked for, or that all of it was asked for."""

    __slots__ = ()


class NotedSequence(_Noted, Sequence[Value_co]):
    """A sequence of which is noted that it was asked for."""

    __slots__ = ()
    __contains__ = Sequence.__contains__

    def __getitem__(self, index: Any) -> Any:
        self._asked.note(self._fact)
        return self._values[index]


#: Of how many instants the facts before them are held.
_INSTANTS_HELD: Final = 16


class Answers(Generic[Facts_]):
    """``facts`` that are asked again: each question once for all folds."""

    def __init__(self, facts: Facts_) -> None:
        self.facts = facts
        self._known: dict[str, str] = {}
        self._before: dict[int, Answers[Facts_]] = {}

    def before(self, instant: int | None) -> Answers[Facts_]:
        """Those of what was before an instant; themselves where there is none."""
        if instant is None:
            return self
        if instant not in self._before:
            if len(self._before) == _INSTANTS_HELD:
                self._before.clear()
            self._before[instant] = Answers(self.facts.before(instant))
        return self._before[instant]

    def fingerprint(self, questions: Sequence[str]) -> str:
        """Of the answers to these questions: another where any of them is another."""
        fact, *instant = json.loads(questions[0])
        if fact == BEFORE:
            return self.before(*instant).fingerprint(questions[1:])
        return _hash("".join(map(self._answer, questions)))

    def _answer(self, question: str) -> str:
        known = self._known.get(question)
        if known is None:
            known = self._known[question] = _hash(repr(plain(self.facts.answer(*json.loads(question)))))
        return known


def of_field(facts: object, fact: str, asked: Sequence[Any]) -> object:
    """The answer to a question about a field: all of it, the value of a key, or whether it holds a value."""
    value = getattr(facts, fact)
    if not asked:
        return value
    return value.get(asked[0]) if isinstance(value, Mapping) else asked[0] in value


def plain(value: object) -> object:
    """A value in tuples of texts and numbers, the same for equal values."""
    if is_dataclass(value) and not isinstance(value, type):
        named = (getattr(value, each.name) for each in fields(value) if each.compare)
        return (type(value).__name__, *map(plain, named))
    if isinstance(value, Mapping):
        return tuple(sorted(((plain(key), plain(one)) for key, one in value.items()), key=repr))
    if isinstance(value, Set):
        return tuple(sorted(map(plain, value), key=repr))
    if isinstance(value, list | tuple):
        return tuple(map(plain, value))
    return value


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
