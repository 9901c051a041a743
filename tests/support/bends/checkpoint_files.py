"""Real checkpoint files, bent: one copy of a capture's, in one way, and what the finding must be called."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from tests.support.evidence.checkpoints import Files

HIGH_WATERMARKS: Final = "replication-offset-checkpoint"


def _lines(content: bytes) -> list[str]:
    return content.decode().splitlines()


def _text(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _counted(entries: list[str]) -> bytes:
    return _text(["0", str(len(entries)), *entries])


def _entry(content: bytes, chance: random.Random) -> int:
    """The line of an entry above 0."""
    return chance.choice([n for n, line in enumerate(_lines(content)) if n > 1 and not line.endswith(" 0")])


def line_dropped(content: bytes, chance: random.Random) -> bytes:
    lines = _lines(content)
    del lines[_entry(content, chance)]
    return _text(lines)


def entry_dropped(content: bytes, chance: random.Random) -> bytes:
    lines = _lines(content)
    del lines[_entry(content, chance)]
    return _counted(lines[2:])


def unknown_version(content: bytes, _: random.Random) -> bytes:
    return _text(["1", *_lines(content)[1:]])


def entry_twice(content: bytes, chance: random.Random) -> bytes:
    lines = _lines(content)
    return _counted([*lines[2:], lines[_entry(content, chance)]])


def entry_zero(content: bytes, chance: random.Random) -> bytes:
    lines, number = _lines(content), _entry(content, chance)
    lines[number] = lines[number].rsplit(" ", 1)[0] + " 0"
    return _text(lines)


def garbage(content: bytes, chance: random.Random) -> bytes:
    lines, number = _lines(content), _entry(content, chance)
    place = chance.randrange(len(lines[number]))
    lines[number] = (
        lines[number][:place] + chance.choice(["\0\0\0\0", "x y", "\ufffd", " 7 7 7"]) + lines[number][place:]
    )
    return _text(lines)


def wrong_count(content: bytes, chance: random.Random) -> bytes:
    lines = _lines(content)
    lines[1] = str(int(lines[1]) + chance.choice([-2, -1, 1, 2, 40]))
    return _text(lines)


def cut_off(content: bytes, chance: random.Random) -> bytes:
    return content[: -chance.randrange(1, len(content) - 4)]


def removed(_: bytes, __: random.Random) -> None:
    return None


#: How a file is bent, and how the finding is called.
BENDS: Final[dict[str, tuple[Callable[[bytes, random.Random], bytes | None], str]]] = {
    "line dropped": (line_dropped, "checkpoint_malformed"),
    "entry dropped, count right": (entry_dropped, "checkpoint_missing"),
    "version 1": (unknown_version, "checkpoint_malformed"),
    "entry twice": (entry_twice, "checkpoint_duplicate_entry"),
    "entry zero": (entry_zero, "checkpoint_zero"),
    "garbage": (garbage, "checkpoint_malformed"),
    "count wrong": (wrong_count, "checkpoint_malformed"),
    "cut off": (cut_off, "checkpoint_malformed"),
    "file removed": (removed, "checkpoint_missing"),
}


def places(files: Files) -> list[tuple[str, str, int]]:
    """Copies of the high watermarks to bend: neither the first two nor the last, that have two entries above 0, which
    the copy before them had too."""
    copies = sorted(place for place in files if place[1] == HIGH_WATERMARKS)
    result = []
    for before, place, _ in zip(copies, copies[1:], copies[2:], strict=False):
        then, now = files[before] or b"", files[place] or b""
        if _above_zero(then) >= _above_zero(now) >= 2:
            result.append(place)
    return result


def _above_zero(content: bytes) -> int:
    return sum(not line.endswith(" 0") for line in _lines(content)[2:])
