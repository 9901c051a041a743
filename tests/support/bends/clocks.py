"""A capture of which one broker's clock was wrong: its logs printed so much later, all else as it was.

    python -m tests.support.bends.clocks CAPTURE...

CAPTURE is a capture's folder. Printed is, for each broker, each of :data:`SHIFTS` and each way to know of it, how many
probes lie outside the bounds and which findings above info are new: with the clock believed, with its uncertainty
given, and with a clock that nothing bounds.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Final

from reconstruct.findings.verdicts import Finding
from reconstruct.offsets.clocks import UNBOUNDED_US, OffsetClocks
from tests.support.captures.lake import set_clock
from tests.support.evidence.offsets import Partition, judged_of
from tests.support.truth.offsets import (
    RIGHT,
    BoundsByPartition,
    CaptureEvidence,
    Measure,
    bounds_of,
    bounds_once,
    evidence_once,
    measure,
    read_evidence,
)

SHIFTS: Final = (timedelta(seconds=-60), timedelta(seconds=-3), timedelta(seconds=1.5), timedelta(hours=1))
#: A finding: its partition, rule, type and replica.
Named = tuple[Partition, str, str, int | None]


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What the program is told of the shifted broker's clock."""

    name: str
    clocks: OffsetClocks


def known_of(broker: int, shift: timedelta) -> list[Knowledge]:
    """That it is right; by how much it may be wrong; nothing."""
    uncertain = abs(round(shift / timedelta(microseconds=1)))
    return [
        Knowledge("believed", RIGHT),
        Knowledge("uncertain", OffsetClocks({broker: uncertain})),
        Knowledge("unbounded", OffsetClocks({broker: UNBOUNDED_US})),
    ]


def shifted(capture: Path, broker: int, shift: timedelta, folder: Path) -> Path:
    """A copy of ``capture`` below ``folder`` in which all logs of ``broker`` print ``shift`` more."""
    target = folder / capture.name
    shutil.copytree(capture, target, copy_function=_link)
    for log in target.glob(f"broker-{broker}/logs/*.log"):
        log.unlink()
        shutil.copyfile(capture / log.relative_to(target), log)
        set_clock(log, shift)
    return target


def _link(source: str, target: str) -> None:
    Path(target).hardlink_to(source)


@dataclass(frozen=True, slots=True)
class Read:
    """A capture, and what it says, the bounds with it: with the probes among the evidence (True) and without."""

    capture: Path
    evidence: Mapping[bool, CaptureEvidence]
    bounds: Mapping[bool, BoundsByPartition]

    @staticmethod
    def of(capture: Path) -> Read:
        return Read._with_bounds(
            capture, {probes: read_evidence(capture, with_probes=probes) for probes in (False, True)}
        )

    @staticmethod
    def unchanged(capture: Path) -> Read:
        """Of a capture that no test changes."""
        evidence = {probes: evidence_once(capture, probes) for probes in (False, True)}
        return Read(capture, evidence, {probes: bounds_once(capture, probes) for probes in (False, True)})

    def by(self, clocks: OffsetClocks) -> Read:
        """The same lines and files, read by clocks of which this is known."""
        return Read._with_bounds(
            self.capture,
            {
                probes: CaptureEvidence(
                    found.version, {p: replace(evidence, clocks=clocks) for p, evidence in found.partitions.items()}
                )
                for probes, found in self.evidence.items()
            },
        )

    @staticmethod
    def _with_bounds(capture: Path, evidence: Mapping[bool, CaptureEvidence]) -> Read:
        return Read(capture, evidence, {probes: bounds_of(found) for probes, found in evidence.items()})


def told(read: Read) -> Counter[Named]:
    """The findings above info, with the probes among the evidence and without."""
    found: Counter[Named] = Counter()
    for with_probes, evidence in read.evidence.items():
        found |= Counter(
            _named(partition, finding)
            for partition, finding in judged_of(read.capture, evidence, bounds=read.bounds[with_probes])
            if finding.severity != "info"
        )
    return found


def _named(partition: Partition, finding: Finding) -> Named:
    return partition, finding.rule_id, finding.divergence_type, finding.replica_id


def measured(read: Read, *, with_probes: bool) -> Measure:
    """The bounds of a capture against its probes."""
    return measure(read.capture, read.bounds[with_probes])


def brokers(capture: Path) -> Iterator[int]:
    return (int(path.name.removeprefix("broker-")) for path in sorted(capture.glob("broker-*")))


def main(arguments: Sequence[str]) -> int:
    for capture in map(Path, arguments):
        before = told(Read.of(capture))
        for broker in brokers(capture):
            for shift in SHIFTS:
                with tempfile.TemporaryDirectory(dir=capture.parent) as folder:
                    bent = Read.of(shifted(capture, broker, shift, Path(folder)))
                    for known in known_of(broker, shift):
                        outside, widths = [], []
                        read = bent.by(known.clocks)
                        for with_probes in (False, True):
                            result = measured(read, with_probes=with_probes)
                            outside.append(len(result.outside))
                            widths.append(median(result.widths))
                        new = told(read) - before
                        rules = Counter(f"{rule} {kind}" for (_, rule, kind, _), n in new.items() for _ in range(n))
                        print(
                            f"{capture.name:20} broker {broker} {shift.total_seconds():+8g} s {known.name:10}"
                            f" outside {outside} width {widths} new {dict(rules)}",
                            flush=True,
                        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
