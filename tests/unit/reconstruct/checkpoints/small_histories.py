"""Small histories of one broker's checkpoint files, copied each second, and what R37 says of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from reconstruct.checkpoints.evidence import AssignedSpan, BrokerCheckpoints, BrokerLine, LineKind, Replica
from reconstruct.checkpoints.rules import judge_checkpoints
from reconstruct.findings.verdicts import Finding
from reconstruct.model.versions import KafkaVersion, VersionRange
from tests.support.evidence.checkpoints import Files, read_checkpoints

HW, RECOVERY = "replication-offset-checkpoint", "recovery-point-offset-checkpoint"
SECOND = 1_000_000
R37, UNJUDGED = "R37", "cannot_be_judged"
T: Replica = ("t", "", 0)
U: Replica = ("u", "", 0)
EVER = 1 << 60
START, BEGIN = 5 * SECOND, 0


def version(text: str) -> VersionRange:
    parsed = KafkaVersion.parse(text)
    assert parsed is not None
    return VersionRange.exactly(parsed)


def content(entries: Mapping[str, int]) -> bytes:
    lines = [f"{name} 0 {offset}" for name, offset in entries.items()]
    return "".join(f"{line}\n" for line in ["0", str(len(lines)), *lines]).encode()


def every_second(values: Sequence[Mapping[str, int] | bytes | None], directory: str = "data") -> Files:
    """A copy of the high watermarks each second; the recovery points are copied beside it, always."""
    files: Files = {(directory, RECOVERY, 1000 * n): content({"t": 0, "u": 0}) for n in range(len(values))}
    for n, value in enumerate(values):
        files[directory, HW, 1000 * n] = value if value is None or isinstance(value, bytes) else content(value)
    return files


def broker(
    files: Files, lines: Iterable[BrokerLine] = (), starts: Iterable[int] = (), kafka: VersionRange | None = None
) -> BrokerCheckpoints:
    copies, entries = read_checkpoints(files)
    assigned = {replica: [AssignedSpan(-(10**9), None, True)] for replica in (T, U)}
    return BrokerCheckpoints(
        1,
        kafka or version("1.1.1"),
        copies,
        entries,
        list(lines),
        [(at, f"start{at}") for at in starts],
        assigned,
        covered=[(-EVER, EVER)],
    )


def rising(count: int, start: int = 10) -> list[dict[str, int]]:
    return [{"t": start + 10 * n, "u": start + 10 * n + 1} for n in range(count)]


def findings(seen: BrokerCheckpoints) -> list[Finding]:
    out = judge_checkpoints(seen)
    assert len(out.replicas) == len(out.verdicts.findings)
    return out.verdicts.findings


def told(seen: BrokerCheckpoints) -> list[tuple[str, str, int]]:
    return [(f.divergence_type, f.severity, f.at // SECOND) for f in findings(seen)]


def no_entry(at: int, replica: Replica = T) -> BrokerLine:
    return BrokerLine(at, LineKind.NO_ENTRY, replica, evidence_id=f"none{replica[0]}")


def loaded(at: int, end: int, replica: Replica = T) -> BrokerLine:
    return BrokerLine(at, LineKind.LOADED, replica, end, evidence_id=f"loaded{replica[0]}")
