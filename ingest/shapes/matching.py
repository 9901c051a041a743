"""Finding the shape of a message: a look-up by its first words, then the few patterns that begin so."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from ingest.shapes.catalogue import Shape
from ingest.shapes.pattern import HOLE, SPEAKER_HOLE, CompiledPattern, compile_pattern
from ingest.shapes.quirks import QUIRKS, Quirk


class Match(NamedTuple):
    """What a message says: the shape it has, the event it tells, and its fields by their normalised names.

    A field that the message does not say is absent. Values are texts as Kafka prints them, lists as ``1,2,3``.
    """

    shape_id: str
    event_type: str
    fields: Mapping[str, str]


class _Candidate(NamedTuple):
    """A shape ready for use.

    ``literals`` are the texts between its placeholders; ``writers`` are its loggers, their outer classes and the first
    words of the log identifiers in its samples; ``needs_writer`` says that a record of another writer is no match.
    """

    shape_id: str
    event_type: str
    pattern: CompiledPattern
    literals: tuple[str, ...]
    constants: Mapping[str, str]
    quirk: Quirk | None
    writers: frozenset[str]
    needs_writer: bool


#: The speaker at the head of a message, then its first and second word.
_HEAD: Final = re.compile(
    r"(?:\1|\[[^\]]*\](?:, |: | )?|Controller (?:-?\d+|\0) epoch (?:-?\d+|\0) |Broker (?:-?\d+|\0) "
    r"|Error on broker (?:-?\d+|\0) |Partition \[[^\]]*\] on broker -?\d+: )?(\S*) ?(\S*)".replace(r"\1", SPEAKER_HOLE),
    re.ASCII,
)

#: The first word of a log identifier.
_SPEAKER_WORD: Final = re.compile(r"\[[A-Za-z]+|Partition (?=\[[^\]]*\] on broker )", re.ASCII)

_BLANKS: Final = " \t\n\r\f\v"

#: A text with fewer letters than this is recognised only in its own class: others may print the same.
_LETTERS_THAT_TELL: Final = 24

#: What a bucket holds: a literal of a shape, which a message of this shape must hold, and the shape.
_Bucket = tuple[tuple[str, _Candidate], ...]


class Matcher:
    """The shapes of one log, arranged by the first two words that follow the speaker."""

    def __init__(self, shapes: Iterable[Shape]) -> None:
        candidates = sorted(
            (_candidate(shape) for shape in shapes),
            key=lambda one: (-one.pattern.literal_length, -len(one.pattern.skeleton), one.shape_id),
        )
        self._by_words = _arrange(candidates)

    def match(self, logger: str | None, message: str) -> Match | None:
        """The first shape, most literal first, that the message has; one of the record's own class where two fit."""
        message = message.rstrip(_BLANKS)
        head = _HEAD.match(message)
        if head is None:
            return None
        first, second = head.groups()
        by_second = self._by_words.get(first) or self._by_words[HOLE]
        writer: str | None = None
        fallback: Match | None = None
        for anchor, candidate in by_second.get(second) or by_second[HOLE]:
            if anchor not in message:
                continue
            of_writer = logger in candidate.writers
            if not of_writer:
                writer = writer or _writer(logger, message)
                of_writer = writer in candidate.writers
                if not of_writer and (fallback is not None or candidate.needs_writer):
                    continue
            fields = candidate.pattern.fields(message)
            if fields is None:
                continue
            if candidate.constants:
                fields.update(candidate.constants)
            if candidate.quirk is not None:
                fields = candidate.quirk(fields, message)
            found = Match(candidate.shape_id, candidate.event_type, fields)
            if of_writer:
                return found
            fallback = found
        return fallback


def _writer(logger: str | None, message: str) -> str:
    """The class that wrote a record: from its logger, or by the log identifier where the layout has no full logger.

    Names of Scala objects and inner classes change from release to release: the outer class counts.
    """
    if logger is not None and "." in logger:
        return logger.partition("$")[0]
    speaker = _SPEAKER_WORD.match(message)
    return "" if speaker is None else speaker.group()


def _candidate(shape: Shape) -> _Candidate:
    pattern = compile_pattern(shape.pattern)
    literals = pattern.skeleton.replace(SPEAKER_HOLE, "").split(HOLE)
    speakers = (_writer(None, sample) for sample in shape.samples)
    return _Candidate(
        shape_id=shape.id,
        event_type=shape.event_type,
        pattern=pattern,
        literals=tuple(literal.strip() for literal in literals),
        constants=shape.fields,
        quirk=None if shape.quirk is None else QUIRKS[shape.quirk],
        writers=frozenset(
            {*shape.loggers, *(logger.partition("$")[0] for logger in shape.loggers), *filter(None, speakers)}
        ),
        needs_writer=shape.event_type == "other" or pattern.literal_length < _LETTERS_THAT_TELL,
    )


def _arrange(candidates: Iterable[_Candidate]) -> dict[str, dict[str, _Bucket]]:
    """First word -> second word -> the shapes that may begin so; :data:`HOLE` stands for any other word.

    A shape whose word is a placeholder, or is glued to one, may begin with any; without a first word it comes last.
    """
    words = [(candidate, *_first_words(candidate.pattern.skeleton)) for candidate in candidates]
    second_words: dict[str, set[str]] = defaultdict(set)
    for _, first, second in words:
        second_words[first].add(second)
    arranged: dict[str, dict[str, _Bucket]] = {}
    for first in {*second_words, HOLE}:
        of_first = [entry for entry in words if entry[1] == first] if first != HOLE else []
        of_first += [entry for entry in words if entry[1] == HOLE]
        arranged[first] = {
            second: _bucket([candidate for candidate, _, own in of_first if own in (second, HOLE)])
            for second in {*(own for _, _, own in of_first), HOLE}
        }
    return arranged


def _bucket(candidates: Sequence[_Candidate]) -> _Bucket:
    """The candidates in their order, each behind that one of its literals which the fewest others hold."""

    def telling(literal: str) -> tuple[int, int]:
        return sum(literal in other.pattern.skeleton for other in candidates), -len(literal)

    return tuple((min(candidate.literals, key=telling), candidate) for candidate in candidates)


def _first_words(skeleton: str) -> tuple[str, str]:
    head = _HEAD.match(skeleton)
    if head is None:
        return HOLE, HOLE
    first, second = head.groups()
    if HOLE in first:
        return HOLE, HOLE
    return first, HOLE if HOLE in second else second
