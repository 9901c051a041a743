"""Score the bounds of offsets against the probes of a capture, which they must not have seen.

    python -m tests.support.truth.offsets CAPTURE...

CAPTURE is a capture's folder. The bounds are made from its checkpoint files, ``leader-epoch-checkpoint`` and logs (and
its znode snapshots, for the ISR); then every probe must lie within the union of the bounds that its replica had between
sending and receiving. Printed is also how tight they are: the median width of the high watermark's bounds at the
probes, an absent bound counting as infinitely wide, beside the records that the partition got in three checkpoint
intervals.
"""

from __future__ import annotations

import json
import re
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import pairwise, zip_longest
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Any, Final

from ingest.shapes import match
from reconstruct.cluster.settings import Configuration
from reconstruct.cluster.view import ClusterView
from reconstruct.model.versions import KafkaVersion, VersionRange
from reconstruct.offsets import evidence as oe
from reconstruct.offsets.bound_steps import EVER_AFTER
from reconstruct.offsets.clocks import OffsetClocks
from reconstruct.offsets.evidence import (
    CheckpointSchedule,
    DecidedState,
    OffsetBounds,
    OffsetEvidence,
    OffsetObservation,
    ReplicaEvent,
    ReplicaEventKind,
)
from reconstruct.offsets.fetch_offsets import with_fetch_offsets
from reconstruct.offsets.messages import logged_replica_events, printed_offsets
from reconstruct.offsets.spark.context import REGISTERS_AGAIN, covered_spans
from reconstruct.offsets.timeline import bound_offsets
from reconstruct.partitions.leader_and_isr import reconstruct_leader_and_isr
from tests.support.captures.text import printed_at
from tests.support.evidence.partitions import plain_capture, plain_evidence

Partition = tuple[str, int]
#: Time, where, event type, fields.
PrintedLine = tuple[int, str, str, Mapping[str, str]]
_HEADER: Final = re.compile(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\] (\w+) (.*) \(([\w.$]+)\)$")
_KINDS: Final = {
    "replication-offset-checkpoint": oe.HIGH_WATERMARK,
    "recovery-point-offset-checkpoint": oe.RECOVERY_POINT,
    "log-start-offset-checkpoint": oe.LOG_START_OFFSET,
}
_CHECKPOINT_INTERVAL_US: Final = 1_000_000
#: ZooKeeper expires a session at the next tick after its timeout.
_NOTICED_AFTER_US: Final = 4_000_000
#: All clocks agree.
RIGHT: Final = OffsetClocks()


@dataclass(slots=True)
class CaptureEvidence:
    """What a capture says of the offsets of its partitions, and of nothing else."""

    version: KafkaVersion
    partitions: dict[Partition, OffsetEvidence] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Probe:
    """One answer to ListOffsets: the log end offset of a replica, or a leader's high watermark."""

    partition: Partition
    replica_id: int
    quantity: str
    offset: int
    sent_at: int
    received_at: int
    line: int


def read_evidence(capture: Path, *, with_probes: bool = False, clocks: OffsetClocks = RIGHT) -> CaptureEvidence:
    """Everything but the probes, unless asked for them too; ``clocks`` are taken as given."""
    version = KafkaVersion.parse(capture.name.removesuffix("-info"))
    assert version is not None, f"{capture.name} does not end in a version"
    view = plain_capture(capture).view
    observations: dict[Partition, list[OffsetObservation]] = {}
    events: dict[Partition, list[ReplicaEvent]] = {}
    covered: dict[int, list[tuple[int, int]]] = {}
    for broker in sorted(capture.glob("broker-*")):
        broker_id = int(broker.name.removeprefix("broker-"))
        for partition, observation in _checkpoints(broker, broker_id):
            observations.setdefault(partition, []).append(observation)
        for partition, observation in _epoch_checkpoints(broker, broker_id):
            observations.setdefault(partition, []).append(observation)
        lines = list(_lines(broker))
        covered[broker_id] = covered_by(broker, lines, view, clocks)
        for at, evidence_id, kind, fields in lines:
            for partition, event in logged_replica_events(broker_id, at, evidence_id, kind, fields):
                events.setdefault(partition, []).append(event)
            for partition, observation in printed_offsets(broker_id, at, evidence_id, kind, fields):
                observations.setdefault(partition, []).append(observation)
    if with_probes:
        for probe in probes(capture):
            observations.setdefault(probe.partition, []).append(
                OffsetObservation(
                    probe.replica_id,
                    probe.quantity,
                    probe.offset,
                    probe.sent_at,
                    probe.received_at,
                    source=oe.PROBE,
                    evidence_id=f"probes-{probe.replica_id}.jsonl:{probe.line}",
                )
            )
    decided = _decided(capture, version)
    found = CaptureEvidence(version)
    for partition in sorted(observations.keys() | events.keys()):
        began = [
            ReplicaEvent(b, ReplicaEventKind.STARTED, at)
            for b, starts in view.process_starts.items()
            for at, _ in starts
        ]
        evidence = OffsetEvidence(
            observations.get(partition, []),
            events.get(partition, []) + began,
            decided.get(partition, []),
            covered,
            schedules(capture),
            clocks,
        )
        found.partitions[partition] = with_fetch_offsets(
            evidence, view.version, dict.fromkeys(covered, Configuration({}))
        )
    return found


def covered_by(
    broker: Path, lines: Iterable[PrintedLine], view: ClusterView, clocks: OffsetClocks
) -> Sequence[tuple[int, int]]:
    """When what its server.log does not say did not happen; never, where there is none."""
    own = [(at, kind) for at, place, kind, _ in lines if "/logs/server.log:" in place]
    printed = [at for at, _ in own]
    broker_id = int(broker.name.removeprefix("broker-"))
    registrations = [interval.start for interval in view.liveness.get(broker_id, ())]
    spans = [(min(printed), max(printed))] if printed else []
    told = [at for at, _ in view.process_starts.get(broker_id, ())]
    told += [at for at, kind in own if kind in REGISTERS_AGAIN]
    return covered_spans(spans, registrations, clocks.slack_us(broker_id), told)


def _checkpoints(broker: Path, broker_id: int) -> Iterator[tuple[Partition, OffsetObservation]]:
    """Every copy, made before the next round of the capture; of the last one that lasts as long as the longest round in
    which this broker's checkpoints were copied with an entry. One whose content is not the copy's before was written
    between the two."""
    files = [path for path in (broker / "checkpoints").rglob("*-checkpoint/*") if path.is_file()]
    copies = [(path.parent, int(path.name), path.read_bytes()) for path in files]
    rounds = sorted({at for _, at, _ in copies} | {int(path.stem) for path in broker.parent.glob("znodes/*.jsonl")})
    filled = {at for _, at, content in copies if _entries(content)}
    longest = max((end - start for start, end in pairwise(rounds) if start in filled), default=0)
    if not longest:
        return
    # of several log directories each has its own
    for folder in sorted({folder for folder, _, _ in copies if folder.name in _KINDS}):
        file, kind = folder.name, _KINDS[folder.name]
        name = folder.relative_to(broker.parent)
        before: tuple[int, bytes] | None = None
        for round_ms, content in sorted((at, content) for of_file, at, content in copies if of_file == folder):
            at, later = round_ms * 1000, bisect_right(rounds, round_ms)
            until = (rounds[later] if later < len(rounds) else round_ms + longest) * 1000
            changed = before is not None and before[1] != content
            for topic, partition_id, offset in _entries(content):
                yield (
                    (topic, partition_id),
                    OffsetObservation(
                        broker_id,
                        kind,
                        offset,
                        at,
                        until,
                        source=file.replace("-", "_"),
                        written_after=before[0] if changed and before is not None else None,
                        evidence_id=f"{name}/{round_ms}",
                    ),
                )
            before = (at, content)


@lru_cache(maxsize=100_000)
def _entries(content: bytes) -> tuple[tuple[str, int, int], ...]:
    rows = [line.split() for line in content.decode(errors="replace").splitlines()[2:]]
    return tuple(
        (row[0], int(row[1]), int(row[2])) for row in rows if len(row) == 3 and row[1].isdigit() and row[2].isdigit()
    )


def _epoch_checkpoints(broker: Path, broker_id: int) -> Iterator[tuple[Partition, OffsetObservation]]:
    for path in sorted(broker.glob("**/leader-epoch-checkpoint/*")):
        topic, number = path.name.rsplit("-", 1)
        if not number.isdigit():
            continue  # a directory that waits for its deletion
        for line in path.read_text().splitlines()[2:]:
            epoch, start = line.split()
            yield (
                (topic, int(number)),
                OffsetObservation(
                    broker_id,
                    oe.EPOCH_START,
                    int(start),
                    0,
                    leader_epoch=int(epoch),
                    source="leader_epoch_checkpoint",
                    evidence_id=str(path.relative_to(broker.parent)),
                    copy=str(path.relative_to(broker.parent)),
                ),
            )


def _lines(broker: Path) -> Iterator[PrintedLine]:
    """The recognised lines of a broker's logs: time, where, event type, fields; in the order of time."""
    found = [
        (at, f"{broker.name}/logs/{log.name}:{number}", event_type, fields)
        for log in sorted((broker / "logs").glob("*.log"))
        for at, number, event_type, fields in _lines_of(log.name, log.read_bytes())
    ]
    return iter(sorted(found, key=lambda entry: entry[0]))


@lru_cache(maxsize=128)
def _lines_of(log: str, content: bytes) -> tuple[tuple[int, int, str, Mapping[str, str]], ...]:
    """The recognised lines of one log: time, number, event type, fields; by content, since a capture is read often."""
    kind = re.sub(r"\W", "_", log)
    found = []
    for number, line in enumerate(content.decode(errors="replace").splitlines(), 1):
        header = _HEADER.match(line)
        matched = match(kind, header[4], header[3]) if header else None
        if header is not None and matched is not None:
            at = printed_at(header[1])
            found.append((at, number, matched.event_type, MappingProxyType(matched.fields)))
    return tuple(found)


@cache
def schedules(capture: Path) -> dict[int, CheckpointSchedule]:
    """By broker: its settings, and from the znode snapshots the spans of each of its sessions."""
    seen: dict[tuple[int, int], list[int]] = {}
    for snapshot in sorted(capture.glob("znodes/*.jsonl")):
        for line in snapshot.read_text().splitlines():
            if '"/brokers/ids/' in line:
                row = json.loads(line)
                broker = int(row["path"].rsplit("/", 1)[1])
                seen.setdefault((broker, row["ephemeralOwner"]), []).append(row["captured_at"] * 1000)
    result = {}
    for broker_dir in capture.glob("broker-*"):
        broker = int(broker_dir.name.removeprefix("broker-"))
        settings = dict(
            line.split("=", 1) for line in (broker_dir / "server.properties").read_text().splitlines() if "=" in line
        )
        interval = int(settings.get("replica.high.watermark.checkpoint.interval.ms", "5000"))
        timeout = int(settings.get("zookeeper.session.timeout.ms", "18000"))
        spans = [(min(instants), max(instants)) for (owner, _), instants in seen.items() if owner == broker]
        result[broker] = CheckpointSchedule(interval * 1000, timeout * 1000 + _NOTICED_AFTER_US, spans)
    return result


def _decided(capture: Path, version: KafkaVersion) -> dict[Partition, list[DecidedState]]:
    result = {}
    for partition, facts in plain_evidence(capture).items():
        changes = reconstruct_leader_and_isr(facts, VersionRange.exactly(version)).changes
        ends = [change.at for change in changes[1:]]
        result[partition] = [
            DecidedState(change.at, end, change.value.leader, change.value.leader_epoch, change.value.isr)
            for change, end in zip_longest(changes, ends)
            if change.value is not None
        ]
    return result


def probes(capture: Path) -> Iterator[Probe]:
    """The ground truth: what every replica answered."""
    for path in sorted(capture.glob("probes-*.jsonl")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            row: Mapping[str, Any] = json.loads(line)
            quantity = oe.HIGH_WATERMARK if row["replica_id"] == -1 else oe.LOG_END_OFFSET
            yield Probe(
                (row["topic"], row["partition"]),
                row["broker"],
                quantity,
                row["offset"],
                round(row["sent_at"] * 1000),
                round(row["received_at"] * 1000),
                number,
            )


# --- the measure ----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Measure:
    """Of one capture: probes inside, and outside with what was claimed; widths at the probes of high watermarks."""

    inside: int = 0
    outside: list[tuple[Probe, float, float]] = field(default_factory=list)
    widths: list[float] = field(default_factory=list)
    allowed: list[float] = field(default_factory=list)
    log_end_widths: list[float] = field(default_factory=list)

    @property
    def median_width(self) -> float:
        return median(self.widths) if self.widths else float("inf")

    @property
    def median_ratio(self) -> float:
        """The median over probes of width / records of three checkpoint intervals; 1 is what is allowed."""
        ratios = [
            w / a if a else (0.0 if w == 0 else float("inf")) for w, a in zip(self.widths, self.allowed, strict=True)
        ]
        return median(ratios) if ratios else float("inf")


BoundsByPartition = Mapping[Partition, Sequence[OffsetBounds]]


def bounds_of(found: CaptureEvidence) -> dict[Partition, list[OffsetBounds]]:
    """The bounds of every partition of a capture."""
    return {partition: bound_offsets(evidence, found.version) for partition, evidence in found.partitions.items()}


@cache
def evidence_once(capture: Path, with_probes: bool) -> CaptureEvidence:
    """What a capture says that no test changes, read once in a process."""
    return read_evidence(capture, with_probes=with_probes)


@cache
def bounds_once(capture: Path, with_probes: bool) -> BoundsByPartition:
    """The bounds of such a capture."""
    return bounds_of(evidence_once(capture, with_probes))


def measure(capture: Path, made: BoundsByPartition) -> Measure:
    """``made`` against the probes of ``capture``."""
    bounds = {partition: _by_replica(rows) for partition, rows in made.items()}
    result = Measure()
    truth = list(probes(capture))
    ends = _ends(truth)
    for probe in truth:
        low, high = _union(bounds.get(probe.partition, {}).get(probe.replica_id, ()), probe)
        if low <= probe.offset <= high:
            result.inside += 1
        else:
            result.outside.append((probe, low, high))
        if probe.quantity == oe.HIGH_WATERMARK:
            result.widths.append(high - low)
            half = 3 * _CHECKPOINT_INTERVAL_US // 2
            result.allowed.append(_got(ends.get(probe.partition, []), probe.sent_at - half, probe.sent_at + half))
        else:
            result.log_end_widths.append(high - low)
    return result


def unmet(capture: Path, made: BoundsByPartition) -> list[Probe]:
    """The probes at which the bounds meet at no instant between sending and receiving: no row has their offset as its
    lower and its upper bound."""
    bounds = {partition: _by_replica(rows) for partition, rows in made.items()}
    return [
        probe
        for probe in probes(capture)
        if not any(
            row.valid_from <= probe.received_at
            and (row.valid_to is None or row.valid_to > probe.sent_at)
            and getattr(row, f"{probe.quantity}_lower") == probe.offset == getattr(row, f"{probe.quantity}_upper")
            for row in bounds.get(probe.partition, {}).get(probe.replica_id, ())
        )
    ]


def _by_replica(rows: Iterable[OffsetBounds]) -> dict[int, list[OffsetBounds]]:
    result: dict[int, list[OffsetBounds]] = {}
    for row in rows:
        result.setdefault(row.replica_id, []).append(row)
    return result


def _union(rows: Sequence[OffsetBounds], probe: Probe) -> tuple[float, float]:
    """Lowest lower and highest upper bound between sending and receiving; infinite where any instant has none."""
    is_high_watermark = probe.quantity == oe.HIGH_WATERMARK
    low, high, reached = float("inf"), float("-inf"), probe.sent_at
    for row in rows:
        until = EVER_AFTER if row.valid_to is None else row.valid_to
        if until <= probe.sent_at or row.valid_from > probe.received_at:
            continue
        if row.valid_from > reached:
            break
        reached = until
        lower = row.high_watermark_lower if is_high_watermark else row.log_end_offset_lower
        upper = row.high_watermark_upper if is_high_watermark else row.log_end_offset_upper
        low = min(low, 0 if lower is None else lower)
        high = max(high, float("inf") if upper is None else upper)
    return (low, high) if reached > probe.received_at else (0, float("inf"))


def _ends(truth: Sequence[Probe]) -> dict[Partition, list[tuple[int, int]]]:
    """By partition: (instant, records that it got so far) in the order of time: what was added to the log of whichever
    broker answered as leader, and, where that changed, what the next one had more than the one before."""
    result: dict[Partition, list[tuple[int, int]]] = {}
    log_ends: dict[tuple[Partition, int], int] = {}
    last: dict[Partition, int] = {}
    for probe in sorted(truth, key=lambda p: p.received_at):
        if probe.quantity == oe.LOG_END_OFFSET:
            log_ends[probe.partition, probe.replica_id] = probe.offset
            continue
        log_end = log_ends.get((probe.partition, probe.replica_id), probe.offset)
        got = result.setdefault(probe.partition, [])
        got.append((probe.received_at, (got[-1][1] if got else 0) + max(0, log_end - last.get(probe.partition, 0))))
        last[probe.partition] = log_end
    return result


def _got(ends: Sequence[tuple[int, int]], start: int, end: int) -> float:
    """Records that the partition got between two instants, linear between probes."""
    return _end_at(ends, end) - _end_at(ends, start)


def _end_at(ends: Sequence[tuple[int, int]], instant: int) -> float:
    after = next((i for i, (at, _) in enumerate(ends) if at >= instant), len(ends))
    if after == 0:
        return float(ends[0][1]) if ends else 0.0
    if after == len(ends):
        return float(ends[-1][1])
    (t0, o0), (t1, o1) = ends[after - 1], ends[after]
    return o0 + (o1 - o0) * (instant - t0) / (t1 - t0)


def main(arguments: Sequence[str]) -> int:
    failed = 0
    for name in arguments:
        result = measure(Path(name), bounds_of(read_evidence(Path(name))))
        total = result.inside + len(result.outside)
        failed += len(result.outside)
        print(
            f"{Path(name).name:22} inside {result.inside}/{total}  HW width median {result.median_width:g} of"
            f" {median(result.allowed) if result.allowed else 0:.0f} allowed, ratio {result.median_ratio:.2f};"
            f" unbounded {sum(w == float('inf') for w in result.widths)}/{len(result.widths)};"
            f" LEO width median {median(result.log_end_widths) if result.log_end_widths else 0:g}"
        )
        for probe, low, high in result.outside[:5]:
            print(f"    outside: {probe} not in [{low:g}, {high:g}]")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
