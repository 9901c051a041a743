"""Real histories bent on purpose, in the raw text: what is found of them.

    python -m tests.support.bends.recall [FOLDER OF CAPTURES] [PLACES OF EACH KIND AND CAPTURE]

A *kind* of bend names every place of a capture at which its change contradicts a rule, whatever our program makes of
it. Places are chosen at random, with a fixed seed. *Found* is a bend of which an expected finding is new.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reconstruct.findings.verdicts import Finding
from reconstruct.partitions.state_timelines import LOG_GAP
from tests.support.bends.decisions import DECIDED
from tests.support.bends.editing import Bend, Places, Subject
from tests.support.bends.requests import TOLD
from tests.support.bends.take_overs import steps_change_places
from tests.support.captures.text import CaptureText
from tests.support.evidence.lines import Partition
from tests.support.evidence.partitions import PlainCapture, plain_capture

KINDS: Final[tuple[Places, ...]] = (*DECIDED, *TOLD, steps_change_places)
Named = tuple[str, str]


@dataclass(frozen=True)
class Outcome:
    """A bend, and the findings that are new because of it."""

    capture: str
    bend: Bend
    new: frozenset[Named]
    is_inferred: bool

    @property
    def is_found(self) -> bool:
        return bool(self.new & self.bend.expected) or (self.bend.inferred and self.is_inferred)


def choose(subject: Subject, kind: Places, places: int, seed: int) -> list[Bend]:
    """Up to ``places`` bends of one kind, at random places."""
    found = list(kind(subject))
    chance = random.Random(f"{seed} {subject.name} {kind.__name__}")
    return chance.sample(found, min(places, len(found)))


def outcome(subject: Subject, bend: Bend) -> Outcome:
    """Bend the capture's text, read it again, and compare what is found."""
    bent = plain_capture(subject.text.edited(bend.edits))
    gaps = [_gaps(capture, bend.partition) for capture in (subject.plain, bent)]
    before, after = (_findings(capture, bend.partition) for capture in (subject.plain, bent))
    return Outcome(subject.name, bend, frozenset(after - before), gaps[1] > gaps[0])


def _findings(capture: PlainCapture, partition: Partition | None) -> Counter[Named]:
    found: list[Finding] = list(capture.cluster.verdicts.findings)
    if partition is not None and partition in capture.facts:
        found += capture.findings_of(partition)
    return Counter((finding.rule_id, finding.divergence_type) for finding in found)


def _gaps(capture: PlainCapture, partition: Partition | None) -> int:
    """Intervals of both machines that a gap in the log explains."""
    if partition is None or partition not in capture.facts:
        return 0
    history = capture.fold_one(partition)
    timelines = [history.partition_states, *history.replica_states.values()]
    return sum(interval.inferred_from == LOG_GAP for timeline in timelines for interval in timeline)


def outcomes(subjects: Iterable[Subject], places: int, seed: int = 20261121) -> list[Outcome]:
    """Every kind in every capture, at up to ``places`` random places each."""
    return [
        outcome(subject, bend) for subject in subjects for kind in KINDS for bend in choose(subject, kind, places, seed)
    ]


def recall_table(found: Sequence[Outcome]) -> str:
    """By kind and era: how many of the bends are found."""
    eras = sorted({outcome.capture.split("-")[1] for outcome in found})
    rows = ["kind of bend".ljust(42) + "".join(era.rjust(12) for era in eras)]
    for kind in sorted({outcome.bend.kind for outcome in found}):
        cells = []
        for era in eras:
            of_era = [each for each in found if each.bend.kind == kind and each.capture.split("-")[1] == era]
            hits = sum(each.is_found for each in of_era)
            cells.append((f"{hits}/{len(of_era)}" if of_era else "-").rjust(12))
        rows.append(kind.ljust(42) + "".join(cells))
    total = sum(each.is_found for each in found)
    rows.append(f"found and named rightly: {total} of {len(found)} ({total / max(1, len(found)):.1%})")
    return "\n".join(rows)


def main() -> None:
    folder = Path(sys.argv[1])
    places = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    names = sorted(path.name for path in folder.iterdir() if path.is_dir())
    found = outcomes((Subject.of(name, CaptureText.read(folder / name)) for name in names), places)
    print(recall_table(found))
    for each in found:
        if not each.is_found:
            print("missed:", each.capture, each.bend.kind, each.bend.partition, each.bend.note, sorted(each.new))


if __name__ == "__main__":
    main()
