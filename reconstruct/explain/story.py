"""What an explanation is made of."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from reconstruct.time.instants import utc

_WIDTH: Final = 100


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and the lines below it."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Chapter:
    """One decision, or refusal: what happened, and its sections in the order to read them. ``at`` in µs; ``brokers``:
    those whose place it changed, or that it was refused; None where it is about all of them."""

    at: int
    title: str
    sections: tuple[Section, ...]
    brokers: frozenset[int] | None = None

    def concerns(self, broker_id: int | None) -> bool:
        """Whether it is about that broker; None: about any."""
        return broker_id is None or self.brokers is None or broker_id in self.brokers


def section(title: str, lines: Iterable[str]) -> Section:
    return Section(title, tuple(lines))


def ids(replicas: Iterable[int] | None) -> str:
    """``1,2,3``; ``none`` where there is none, ``not known`` where nothing says."""
    return "not known" if replicas is None else ",".join(map(str, replicas)) or "none"


def clock(at: int) -> str:
    """The time of day of an instant, to the millisecond."""
    return utc(at).split(" ")[1]


def text(heading: str, before: Sequence[str], chapters: Sequence[Chapter], after: Sequence[str]) -> str:
    """The whole explanation as plain text of at most 100 columns where its words allow."""
    lines = [heading, "=" * len(heading), *(line for note in before for line in _wrapped(note, ""))]
    for chapter in chapters:
        lines += ["", f"{utc(chapter.at)}  {chapter.title}", "-" * (len(utc(chapter.at)) + 2 + len(chapter.title))]
        for part in chapter.sections:
            if part.lines:
                lines += [part.title, *(row for line in part.lines for row in _wrapped(line, "  "))]
    return "\n".join([*lines, *(["", *after] if after else [])])


def _wrapped(line: str, indent: str) -> list[str]:
    return textwrap.wrap(
        line,
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
        drop_whitespace=True,
    )
