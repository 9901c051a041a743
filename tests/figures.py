"""What a run of the tests tried, and how long it took: ``python -m tests.figures JUNIT_FILE...``.

A test tells of it by ``record_property(Figure.KILLS, 4)`` of pytest, once all of it held; of property tests
``tests/conftest.py`` does. The make targets print the sums over their lanes at the end.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final
from xml.etree import ElementTree


class Figure(StrEnum):
    """What is counted, in the words that are printed."""

    KILLS = "kills of a command, or of a part of it, healed by the same command"
    CUTS = "runs cut off between two writes, healed by the next"
    MEETINGS = "commands that met others at one lake"
    READINGS = "readings of tables while a run wrote them, each of one run"
    PLANTED = "faults planted that lines can prove"
    FOUND = "of which were found by their rule"
    HARMLESS = "losses, mishaps and wrong clocks that accused nobody"
    HISTORIES = "histories of simulated clusters, as promised"
    EXAMPLES = "examples of property tests"
    INPUTS = "inputs that readers were fuzzed with"
    HOSTILE = "hostile messages, lines, values and statements"


_COUNTED: Final = frozenset(Figure)


def sums(files: Iterable[Path]) -> Counter[str]:
    """Of each figure that a test of these JUnit files told of, the sum."""
    found: Counter[str] = Counter()
    for file in files:
        for told in ElementTree.parse(file).iterfind(".//testcase/properties/property"):
            if told.attrib["name"] in _COUNTED:
                found[told.attrib["name"]] += int(told.attrib["value"])
    return found


def lane(file: Path) -> str:
    """How many tests a JUnit file tells of, what became of them, and how long they took."""
    suite = next(ElementTree.parse(file).iter("testsuite")).attrib
    wrong = int(suite["failures"]) + int(suite["errors"])
    minutes, seconds = divmod(round(float(suite["time"])), 60)
    return f"{file.stem}: {suite['tests']} tests, {wrong} failed, {suite['skipped']} skipped, {minutes} min {seconds} s"


def main(arguments: Sequence[str]) -> None:
    files = [path for path in map(Path, arguments) if path.exists()]
    found = sums(files)
    lines = [f"{found[figure]:>12,} {figure}" for figure in Figure if found[figure]]
    print("", "tried:", *lines, *map(lane, files), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
