"""From a pattern with typed placeholders to a function from message to fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from ingest.shapes.kinds import KINDS
from ingest.shapes.values import Fields

#: How many different texts each placeholder remembers; structs repeat from line to line.
_REMEMBERED_TEXTS: Final = 8192
#: The same for lists, of which only short ones are remembered.
_REMEMBERED_LISTS: Final = 1024
_LONGEST_REMEMBERED_LIST: Final = 1024

_PLACEHOLDER: Final = re.compile(r"\{\{|\}\}|\{(?:(?P<field>\w*):)?(?P<kind>\w+)\}", re.ASCII)

#: Of a longer message not every end of every placeholder is tried: that takes time with a power of its length.
_LONG_MESSAGE: Final = 512

_BLANK: Final = re.escape(" ")

#: Stands for a placeholder in the skeleton of a pattern; no message holds it.
HOLE: Final = "\0"
#: The same for the log identifier, which a message may lack.
SPEAKER_HOLE: Final = "\1"


class PatternError(ValueError):
    """A pattern in a data file cannot be read; the message says which and why."""


@dataclass(frozen=True, slots=True)
class CompiledPattern:
    """A pattern ready to be used. Its regexes are compiled by the first message that comes to it: there are 1,500, of
    which the lines of one cluster need a few dozen, and most commands read no line.

    ``names`` are the fields that take a group's text as it is, ``groups`` those groups' numbers; ``conversions`` are
    (group number, converter) for the others. ``skeleton`` is the literal text with :data:`HOLE` for each placeholder;
    ``literal_length`` counts its letters and digits: the more, the more specific.
    """

    regex: str
    #: The same for a long message, in time that grows as its length: each placeholder ends where what follows it stands
    #: first, and no other end is tried.
    linear: str
    names: tuple[str, ...]
    groups: tuple[int, ...]
    conversions: tuple[tuple[int, Callable[[str], Fields]], ...]
    skeleton: str
    literal_length: int

    def fields(self, message: str) -> dict[str, str] | None:
        """The fields of the message, or ``None`` where it is of another shape; blanks at its end are none of it.

        What the text itself says goes before what a struct inside it says.
        """
        found = _compiled(self.regex if len(message) <= _LONG_MESSAGE else self.linear).fullmatch(message)
        if found is None:
            return None
        # Written for speed: this runs once per log record.
        groups = self.groups
        if not self.conversions:
            if len(groups) == 1:
                return {self.names[0]: found[groups[0]]}
            return dict(zip(self.names, found.group(*groups), strict=False)) if groups else {}
        first, convert = self.conversions[0]
        values = dict(convert(found[first]))
        for group, convert in self.conversions[1:]:
            values.update(convert(found[group]))
        if len(groups) == 1:
            values[self.names[0]] = found[groups[0]]
        elif groups:
            values.update(zip(self.names, found.group(*groups), strict=False))
        return values


class _Builder:
    """Collects regex, skeleton and fields while a pattern is read."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        #: What stands before the first placeholder, then each placeholder with what follows it.
        self.regex = [""]
        self.skeleton: list[str] = []
        self.names: list[str] = []
        self.groups: list[int] = []
        self.conversions: list[tuple[int, Callable[[str], Fields]]] = []
        self._group_count = 0
        self._may_be_empty = False

    def literal(self, text: str) -> None:
        self.regex[-1] += re.escape(text)
        self.skeleton.append(text)

    def placeholder(self, name: str | None, kind_name: str) -> None:
        kind = KINDS.get(kind_name)
        if kind is None:
            raise PatternError(
                f"the pattern {self.pattern!r} uses the kind {kind_name!r}; ingest/shapes/kinds.py has none such"
            )
        self.skeleton.append(SPEAKER_HOLE if kind_name == "speaker" else HOLE)
        is_list = kind.fields is not None or kind.value is not None
        self._may_be_empty = is_list and re.fullmatch(kind.regex, "", re.ASCII) is not None
        if kind_name == "topic_partition":
            self.regex.append(kind.regex)
            self._plain("topic")
            self._plain("partition_id")
        elif name == "":
            self.regex.append(f"(?:{kind.regex})")
        elif kind.fields is not None:
            self.regex.append(f"({kind.regex})")
            self._converted(_remembered(kind.fields, kind.is_long))
        elif name is None:
            raise PatternError(f"the pattern {self.pattern!r} has {{{kind_name}}} without the name of a field")
        elif kind.value is not None:
            self.regex.append(f"({kind.regex})")
            self._converted(_remembered(_value(name, kind.value), kind.is_long))
        else:
            self.regex.append(f"({kind.regex})")
            self._plain(name)

    def end(self, text: str) -> None:
        """The text behind the last placeholder. Where that is a list and nothing follows, a message with an empty list
        lacks the blank before it, as all blanks at its end."""
        self.literal(text)
        if self._may_be_empty and not text and self.regex[-2].endswith(_BLANK):
            self.regex[-2] = f"{self.regex[-2].removesuffix(_BLANK)}(?:{_BLANK}|\\Z)"

    def linear(self) -> str:
        """See :attr:`CompiledPattern.linear`. A lazy placeholder that nothing stands behind ends with the next one."""
        parts: list[str] = []
        for part in self.regex:
            if parts and parts[-1].endswith("?)"):
                parts[-1] += part
            else:
                parts.append(part)
        return "".join(f"(?>{part})" for part in parts[:-1]) + parts[-1]

    def _plain(self, name: str) -> None:
        self._group_count += 1
        if name in self.names:
            raise PatternError(f"the pattern {self.pattern!r} fills the field {name!r} twice")
        self.names.append(name)
        self.groups.append(self._group_count)

    def _converted(self, convert: Callable[[str], Fields]) -> None:
        self._group_count += 1
        self.conversions.append((self._group_count, convert))


@lru_cache(maxsize=4096)
def compile_pattern(pattern: str) -> CompiledPattern:
    """Compile ``pattern``; raise :class:`PatternError` where it names an unknown kind or a field twice."""
    builder = _Builder(pattern)
    position = 0
    for placeholder in _PLACEHOLDER.finditer(pattern):
        builder.literal(pattern[position : placeholder.start()])
        position = placeholder.end()
        if placeholder["kind"] is None:
            builder.literal(placeholder.group()[0])
        else:
            builder.placeholder(placeholder["field"], placeholder["kind"])
    builder.end(pattern[position:].rstrip())
    skeleton = "".join(builder.skeleton)
    return CompiledPattern(
        regex="".join(builder.regex),
        linear=builder.linear(),
        names=tuple(builder.names),
        groups=tuple(builder.groups),
        conversions=tuple(builder.conversions),
        skeleton=skeleton,
        literal_length=sum(character.isalnum() for character in skeleton),
    )


@lru_cache(maxsize=4096)
def _compiled(regex: str) -> re.Pattern[str]:
    return re.compile(regex, re.ASCII | re.DOTALL)


def _value(name: str, value: Callable[[str], str | None]) -> Callable[[str], Fields]:
    """A converter that gives the one field ``name``, or nothing where the text says nothing."""

    def convert(text: str) -> Mapping[str, str]:
        found = value(text)
        return {} if found is None else {name: found}

    return convert


def _remembered(convert: Callable[[str], Fields], is_long: bool) -> Callable[[str], Fields]:
    """The converter with a memory of bounded size."""
    if not is_long:
        return lru_cache(maxsize=_REMEMBERED_TEXTS)(convert)
    remembered = lru_cache(maxsize=_REMEMBERED_LISTS)(convert)

    def convert_list(text: str) -> Fields:
        return remembered(text) if len(text) <= _LONGEST_REMEMBERED_LIST else convert(text)

    return convert_list
