"""Bends of lineages of leader epochs, and of settings; see :mod:`tests.support.bends.offsets`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from random import Random
from typing import Final

from tests.support.bends.log_lines import EpochLine, epoch_lines, line_changed
from tests.support.bends.offsets import Change, Kind, Place
from tests.support.truth.calm import HIGH_WATERMARKS, CalmCapture, Partition, Written

#: (leader epoch, start offset) in the order of the file.
Lineage = list[tuple[int, int]]


def _lineages(capture: CalmCapture) -> dict[Partition, dict[int, Lineage]]:
    """By partition and broker."""
    result: dict[Partition, dict[int, Lineage]] = {}
    for path in sorted(capture.folder.glob("broker-*/leader-epoch-checkpoint/*")):
        topic, number = path.name.rsplit("-", 1)
        if number.isdigit():
            pairs = [line.split() for line in path.read_text().splitlines()[2:]]
            broker = int(path.parts[-3].removeprefix("broker-"))
            result.setdefault((topic, int(number)), {})[broker] = [(int(e), int(start)) for e, start in pairs]
    return result


def _entries(capture: CalmCapture) -> Iterator[tuple[Partition, int, Lineage, Mapping[int, Lineage]]]:
    """(partition, broker, its lineage, all brokers' lineages)."""
    for partition, lineages in _lineages(capture).items():
        for broker, entries in lineages.items():
            yield partition, broker, entries, lineages


def _lineages_changed(partition: Partition, bent: Mapping[int, Lineage]) -> Change:
    edits = {
        f"broker-{broker}/leader-epoch-checkpoint/{partition[0]}-{partition[1]}": "\n".join(
            ["0", str(len(entries)), *(f"{epoch} {start}" for epoch, start in entries), ""]
        ).encode()
        for broker, entries in bent.items()
    }
    return Change(partition, edits, frozenset(edits), f"lineages {dict(bent)}")


def _with_start(partition: Partition, broker: int, entries: Lineage, at: int, starts: range, random: Random) -> Change:
    start = random.choice([offset for offset in starts if offset != entries[at][1]])
    return _lineages_changed(partition, {broker: [*entries[:at], (entries[at][0], start), *entries[at + 1 :]]})


def _begins_elsewhere(capture: CalmCapture) -> Iterable[Place]:
    """Between its neighbours; not the first entry, and another replica has the epoch, not as its first one either."""
    for partition, broker, entries, lineages in _entries(capture):
        others = {epoch for other, its in lineages.items() if other != broker for epoch, _ in its[1:]}
        for at in range(1, len(entries)):
            end = entries[at + 1][1] if at + 1 < len(entries) else entries[at][1] + 500
            starts = range(entries[at - 1][1] + 1, end)
            if entries[at][0] in others and len(starts) > 1:
                yield partial(_with_start, partition, broker, entries, at, starts)


def _falling(capture: CalmCapture) -> Iterable[Place]:
    """Below the entry before it, which every version forbids."""
    for partition, broker, entries, _ in _entries(capture):
        for at in range(1, len(entries)):
            if entries[at - 1][1] > 0:
                yield partial(_with_start, partition, broker, entries, at, range(entries[at - 1][1]))


def _missing(capture: CalmCapture) -> Iterable[Place]:
    """An entry less, which another replica has, with records, between the same two."""
    for partition, broker, entries, lineages in _entries(capture):
        for at in range(1, len(entries) - 1):
            around = entries[at - 1 : at + 2]
            others = [its for other, its in lineages.items() if other != broker]
            is_shared = any(its[i : i + 3] == around for its in others for i in range(len(its)))
            if is_shared and around[2][1] > around[1][1]:
                yield partial(_without, partition, broker, entries, at)


def _without(partition: Partition, broker: int, entries: Lineage, at: int, _: Random) -> Change:
    return _lineages_changed(partition, {broker: [*entries[:at], *entries[at + 1 :]]})


def _begins_below(capture: CalmCapture) -> Iterable[Place]:
    """A new leader's begin, in its line and in every lineage, below what its predecessor's checkpoint had while that
    surely led, and above where the epochs before begin."""
    for partition, lineages in _lineages(capture).items():
        writes = [write for write in capture.writes if write.partition == partition and write.leader >= 0]
        for before, after in pairwise(writes):
            reached = [
                value
                for at, value in capture.copies(before.leader, HIGH_WATERMARKS, partition)
                if before.start + 2_000 <= at <= before.end - 2_000
            ]
            starts = {dict(entries).get(after.leader_epoch) for entries in lineages.values()} - {None}
            earlier = [s for entries in lineages.values() for epoch, s in entries if epoch < after.leader_epoch]
            below = range(max(earlier, default=0) + 1, max(reached, default=0))
            if before.leader == after.leader or len(starts) != 1 or not below:
                continue
            for line in epoch_lines(capture, after.leader):
                if (line.partition, line.leader_epoch) == (partition, after.leader_epoch):
                    yield partial(_begin_lowered, capture, line, lineages, below)


def _begin_lowered(
    capture: CalmCapture, line: EpochLine, lineages: Mapping[int, Lineage], below: range, random: Random
) -> Change:
    offset, (start, end) = random.choice(below), line.span
    told = line_changed(capture, line.path, line.at, f"{line.text[:start]}{offset}{line.text[end:]}", line.partition)
    bent = {
        broker: [(epoch, offset if epoch == line.leader_epoch else start) for epoch, start in entries]
        for broker, entries in lineages.items()
    }
    kept = _lineages_changed(line.partition, bent)
    return Change(line.partition, {**told.edits, **kept.edits}, told.touched | kept.touched, told.note)


# --- settings -------------------------------------------------------------------------------------------------------


def _alone(capture: CalmCapture) -> Iterator[Written]:
    """Writes with an ISR of one that lasted for five seconds, of partitions whose ISR was larger once."""
    wide = {write.partition for write in capture.writes if len(write.isr) > 1}
    for write in capture.writes:
        if write.partition in wide and write.leader >= 0 and len(write.isr) == 1 and write.end - write.start >= 5_000:
            yield write


_PRINTED: Final = re.compile(rb"(?m)^(\tmin\.insync\.replicas = )1$")
#: A line of a start of 0.8, which prints what its file sets.
_OVERRIDDEN: Final = re.compile(rb"(?m)^(\[.*\] INFO Property )num\.partitions( is overridden to )1( .*)$")


def _min_isr_of_two(capture: CalmCapture, partition: Partition, _: Random, *, has_file: bool = True) -> Change:
    edits = {}
    for broker in capture.brokers:
        path, log = f"broker-{broker}/server.properties", f"broker-{broker}/logs/server.log"
        edits[path] = (capture.folder / path).read_bytes() + b"\nmin.insync.replicas=2\n" if has_file else b""
        printed = _PRINTED.sub(rb"\g<1>2", (capture.folder / log).read_bytes())
        edits[log] = _OVERRIDDEN.sub(rb"\g<0>\n\g<1>min.insync.replicas\g<2>2\g<3>", printed)
    return Change(partition, edits, frozenset(), "min.insync.replicas=2")


def _under_min_isr(capture: CalmCapture) -> Iterable[Place]:
    """The settings ask for two in the ISR."""
    return (partial(_min_isr_of_two, capture, write.partition) for write in _alone(capture))


def _printed_under_min_isr(capture: CalmCapture) -> Iterable[Place]:
    """The same, by what brokers print at their starts alone."""
    return (partial(_min_isr_of_two, capture, write.partition, has_file=False) for write in _alone(capture))


def _topic_asks_for_two(capture: CalmCapture, partition: Partition, _: Random) -> Change:
    edits = {}
    for path in sorted((capture.folder / "znodes").glob("*.jsonl")):
        znodes = [json.loads(line) for line in path.read_text().splitlines()]
        for znode in znodes:
            if znode["path"] == f"/config/topics/{partition[0]}":
                config = {**json.loads(znode["data"])["config"], "min.insync.replicas": "2"}
                znode["data"] = json.dumps({"version": 1, "config": config})
        text = "".join(f"{json.dumps(znode)}\n" for znode in znodes)
        edits[str(path.relative_to(capture.folder))] = text.encode()
    return Change(partition, edits, frozenset(), "min.insync.replicas=2 of the topic")


def _topic_under_min_isr(capture: CalmCapture) -> Iterable[Place]:
    """The topic asks for two in the ISR, from its making on."""
    return (partial(_topic_asks_for_two, capture, write.partition) for write in _alone(capture))


def _rises_under_min_isr(capture: CalmCapture) -> Iterable[Place]:
    """The same, since 3.7, where the leader's copies rose from two seconds after the write on."""
    for write in _alone(capture) if capture.version >= "3.7" else ():
        copies = capture.copies(write.leader, HIGH_WATERMARKS, write.partition)
        values = [value for at, value in copies if write.start + 2_000 <= at <= write.end - 2_000]
        if len(values) >= 5 and values[0] < values[3]:
            yield partial(_min_isr_of_two, capture, write.partition)


_CONFLICT: Final = ("R36", "epoch_lineage_conflict")
KINDS: Final = (
    Kind("a new leader begins below what was committed", ("R35", "committed_records_lost"), _begins_below),
    Kind("an epoch begins elsewhere on one replica", _CONFLICT, _begins_elsewhere),
    Kind("start offsets fall in a lineage", _CONFLICT, _falling),
    Kind("an epoch is missing between two on one replica", _CONFLICT, _missing),
    Kind(
        "high watermark rises under min.insync.replicas",
        ("R34", "high_watermark_moved_under_min_isr"),
        _rises_under_min_isr,
    ),
    Kind("min.insync.replicas above the ISR", ("R39", "acks_all_unavailable"), _under_min_isr),
    Kind("min.insync.replicas above the ISR, printed", ("R39", "acks_all_unavailable"), _printed_under_min_isr),
    Kind("min.insync.replicas of the topic above the ISR", ("R39", "acks_all_unavailable"), _topic_under_min_isr),
)
