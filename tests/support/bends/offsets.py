"""Captures bent at random places, each so that a rule about data is certainly broken there, and how many are found.

    python -m tests.support.bends.offsets FOLDER [PLACES]

FOLDER holds captures' folders, which are bent and put back. A place is chosen by what only tests may read
(:mod:`tests.support.truth.calm`: the scenario's own events, and snapshots that show one and the same write) and by the
raw files; never by what the program finds. What a kind of bend needs besides is said where its places are made: that a
value was seen often enough for the bent one to contradict it at every instant that the copies leave open.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from reconstruct.findings.verdicts import Finding
from tests.support.evidence.offsets import Known, judged, judged_unbent
from tests.support.truth.calm import CalmCapture, Partition

#: A finding, but for its evidence: a line more in a log gives those after it other ids.
Named = tuple[Partition, str, str, str]
SEED: Final = 20261121


@dataclass(frozen=True, slots=True)
class Change:
    """Files with other bytes, by their name below the capture.

    ``touched`` are the evidence ids of what was bent: a finding that names none of them blames something else. Empty:
    what was bent is no record.
    """

    partition: Partition
    edits: Mapping[str, bytes]
    touched: frozenset[str]
    note: str


Place = Callable[[Random], Change]


@dataclass(frozen=True, slots=True)
class Kind:
    """One way to bend, what must be found (rule, divergence type), and the places of a capture: none where its version
    has nothing of the kind."""

    name: str
    expected: tuple[str, str]
    places: Callable[[CalmCapture], Iterable[Place]]


@dataclass(slots=True)
class Score:
    """Bends made, those found with their rule and type, and new findings, also those that blame something else."""

    made: int = 0
    found: int = 0
    new_findings: int = 0
    blamed_elsewhere: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    @property
    def recall(self) -> float:
        return self.found / self.made if self.made else 1.0

    @property
    def precision(self) -> float:
        return 1 - len(self.blamed_elsewhere) / self.new_findings if self.new_findings else 1.0

    def add(self, other: Score) -> None:
        self.made += other.made
        self.found += other.found
        self.new_findings += other.new_findings
        self.blamed_elsewhere += other.blamed_elsewhere
        self.missed += other.missed


def all_kinds() -> list[Kind]:
    """Every kind, in the order of the modules that declare them."""
    from tests.support.bends import checkpoint_copies, epoch_lineages, log_lines

    return [*checkpoint_copies.KINDS, *log_lines.KINDS, *epoch_lineages.KINDS]


@dataclass(slots=True)
class Unbent:
    """What is found in a capture as it is; partitions that a bend leaves as they are, are not judged again."""

    findings: Counter[Named]
    known: Known
    said: list[tuple[Partition, Finding]]

    @staticmethod
    def of(folder: Path) -> Unbent:
        """Of a folder that is as it was unpacked, or a copy of it elsewhere."""
        known: Known = {}
        said = judged_unbent(folder, with_probes=True, known=known)
        return Unbent(Counter(name for name, _ in _named(said)), known, said)


def chosen(capture: CalmCapture, kind: Kind, places: int, seed: int = SEED) -> list[Change]:
    """So many bends of one kind in one capture, or as many as it has places for; the same for the same seed."""
    random = Random(f"{seed} {capture.folder.name} {kind.name}")
    possible = list(kind.places(capture))
    return [place(random) for place in random.sample(possible, min(places, len(possible)))]


def bend(capture: CalmCapture, kind: Kind, change: Change, unbent: Unbent) -> Score:
    """One bend: its files are written, the capture judged, the files put back."""
    held = {name: (capture.folder / name).read_bytes() for name in change.edits}
    _write(capture.folder, change.edits)
    try:
        after = _named(judged(capture.folder, known=unbent.known))
    finally:
        _write(capture.folder, held)
    new = [(name, evidence) for name, evidence in after if not unbent.findings[name]]
    is_found = any(name[:3] == (change.partition, *kind.expected) for name, _ in new)
    bent = f"{kind.name}: {capture.folder.name} {change.partition} {change.note}"
    elsewhere = [f"{bent}: {name}" for name, found in new if name[0] != change.partition or not change.touched & found]
    return Score(
        1,
        int(is_found),
        len(new),
        elsewhere if change.touched else [],
        [] if is_found else [bent],
    )


def _named(said: Iterable[tuple[Partition, Finding]]) -> list[tuple[Named, frozenset[str]]]:
    """Every finding with its evidence, but what its version does by design (info), unless R33 says so.

    Up to 0.10 a member of the ISR that is behind is such, and still to be found.
    """
    return [
        ((partition, finding.rule_id, finding.divergence_type, finding.observed), frozenset(finding.evidence))
        for partition, finding in said
        if finding.severity != "info" or finding.rule_id == "R33"
    ]


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).write_bytes(content)


def table(scores: Mapping[tuple[str, str], Score]) -> str:
    """By (kind, version): recall and precision, a line each."""
    lines = [f"{'bent':56}{'Kafka':9}{'made':>5}{'recall':>8}{'precision':>11}"]
    lines += [
        f"{name:56}{version:9}{score.made:5}{score.recall:8.3f}{score.precision:11.3f}"
        for (name, version), score in scores.items()
        if score.made
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    places = int(arguments[1]) if len(arguments) > 1 else 1
    scores: dict[tuple[str, str], Score] = {}
    for folder in sorted(path for path in Path(arguments[0]).iterdir() if (path / "events.jsonl").exists()):
        capture, unbent = CalmCapture(folder), Unbent.of(folder)
        for kind in all_kinds():
            score = scores.setdefault((kind.name, capture.version), Score())
            for change in chosen(capture, kind, places):
                score.add(bend(capture, kind, change, unbent))
    print(table(dict(sorted(scores.items()))))
    print("\n".join(text for score in scores.values() for text in score.missed))
    return 1 if any(score.missed for score in scores.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
