"""Evidence of a capture without Spark: the plain way to the same fold, for tests that fold many times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from reconstruct.cluster.spark.step import ClusterHistory
from reconstruct.cluster.view import ClusterView
from reconstruct.explain.refusals import IGNORED
from reconstruct.findings.verdicts import Finding
from reconstruct.partitions.case import Case
from reconstruct.partitions.evidence import Evidence
from reconstruct.partitions.spark.evidence import CONTROLLER_KINDS, REPLICATION_KINDS, STATE_CHANGE_KINDS, TOPIC_KINDS
from reconstruct.partitions.timeline import fold_partition
from tests.support.captures.text import CaptureText, Lines
from tests.support.evidence.cluster import plain_cluster
from tests.support.evidence.lines import Line, Partition, by_partition, lines_of, matched_lines, typed
from tests.support.evidence.lossy_logs import counted_requests, lossy_logs
from tests.support.evidence.znodes import Write, partition_facts, read_writes

__all__ = ["Partition", "PlainCapture", "plain_capture", "plain_evidence"]

_KINDS: Final = {
    "state_change_log": STATE_CHANGE_KINDS,
    "server_log": REPLICATION_KINDS,
    "controller_log": CONTROLLER_KINDS,
}


@dataclass(frozen=True)
class PlainCapture:
    """A capture's evidence by partition, and its cluster."""

    facts: dict[Partition, list[Evidence]]
    cluster: ClusterHistory
    #: requests that brokers ignored as a whole: they name no partition.
    refused_requests: list[Evidence]
    _histories: dict[Partition, Case] = field(default_factory=dict, repr=False, compare=False)

    @property
    def view(self) -> ClusterView:
        return self.cluster.view

    def fold(self) -> dict[Partition, Case]:
        """Every partition's history; each topic is taken to have one incarnation."""
        return {key: self.fold_one(key) for key in sorted(self.facts)}

    def findings(self) -> list[tuple[Partition, Finding]]:
        """All findings of all partitions, in order."""
        return [(key, finding) for key in sorted(self.facts) for finding in self.findings_of(key)]

    def findings_of(self, partition: Partition) -> list[Finding]:
        """The findings of one partition."""
        return self.fold_one(partition).verdicts.findings

    def fold_one(self, partition: Partition) -> Case:
        """The history of one partition, folded once."""
        if partition not in self._histories:
            self._histories[partition] = fold_partition(
                partition[0], self.facts[partition], self.view, partition_id=partition[1]
            )
        return self._histories[partition]

    def with_folds_of(self, other: PlainCapture) -> PlainCapture:
        """Itself, with the histories that ``other`` has of the same evidence in the same cluster: a fold is pure."""
        if self.view == other.view:
            for key, facts in self.facts.items():
                if other.facts.get(key) == facts:
                    self._histories.setdefault(key, other.fold_one(key))
        return self


def plain_capture(capture: Path | CaptureText, *, znodes: bool = True) -> PlainCapture:
    """All that the logs, the configuration and (where asked for) the znode snapshots of a capture say."""
    text = capture if isinstance(capture, CaptureText) else CaptureText.read(capture)
    return _plain(tuple(text.files.items()), znodes=znodes)


@lru_cache(maxsize=24)
def _plain(files: tuple[tuple[str, Lines], ...], *, znodes: bool) -> PlainCapture:
    """Known by the text, so that tests of one process that ask for the same capture fold it once."""
    text = CaptureText(dict(files))
    lines = list(matched_lines(text))
    writes = read_writes(text) if znodes else []
    cluster = plain_cluster(text, lines, writes)
    lossy, counted = lossy_logs(lines, cluster.view), counted_requests(lines)
    cluster.view = replace(cluster.view, lossy_logs=lossy, counted_requests=counted)
    return PlainCapture(_by_partition(text, writes), cluster, _refused(lines))


def plain_evidence(folder: Path, *, znodes: bool = True) -> dict[Partition, list[Evidence]]:
    """By partition: what its capture's logs, and its snapshots, say."""
    return plain_capture(folder, znodes=znodes).facts


def _by_partition(text: CaptureText, writes: list[Write]) -> dict[Partition, list[Evidence]]:
    found: dict[Partition, list[Evidence]] = {}
    for name in text.named("/logs/"):
        for partition, fact in _facts_of(name, text.files[name]):
            found.setdefault(partition, []).append(fact)
    for partition, fact in partition_facts(writes, sorted(found)):
        found.setdefault(partition, []).append(fact)
    of_topics: dict[str, list[Evidence]] = {}
    for name in text.named("/logs/controller.log"):
        for topic, fact in _facts_of_topics(name, text.files[name]):
            of_topics.setdefault(topic, []).append(fact)
    for (topic, _), facts in found.items():
        facts += of_topics.get(topic, ())
    return found


@lru_cache(maxsize=256)
def _facts_of(name: str, lines: Lines) -> Sequence[tuple[Partition, Evidence]]:
    """What one log says of partitions; bent captures share most of their logs."""
    wanted = (line for line in lines_of(name, lines) if line.event_type in _KINDS[line.source_kind])
    return tuple(fact for line in wanted for fact in _facts(line))


@lru_cache(maxsize=256)
def _facts_of_topics(name: str, lines: Lines) -> Sequence[tuple[str, Evidence]]:
    """What a controller's log says of topics, by topic."""
    wanted = [line for line in lines_of(name, lines) if line.event_type in TOPIC_KINDS]
    names = ((line, line.fields.get("topic", line.fields.get("topics", ""))) for line in wanted)
    return tuple((topic, _fact(line, line.event_type, {})) for line, all_ in names for topic in all_.split(","))


def _facts(line: Line) -> Iterator[tuple[Partition, Evidence]]:
    is_for_leader = (line.source_kind, line.event_type) == ("controller_log", "isr_update_committed")
    kind = "isr_update_committed_for_leader" if is_for_leader else line.event_type
    for partition, fields in by_partition(line.fields):
        if partition is not None and fields.get("is_future") != "true":
            yield partition, _fact(line, kind, fields)


def _fact(line: Line, kind: str, fields: Mapping[str, str]) -> Evidence:
    own = fields.get("broker_id")
    return Evidence(
        evidence_id=line.id,
        kind=kind,
        at=line.at,
        file=line.file,
        offset=line.number,
        source_kind=line.source_kind,
        log_level=line.level,
        shape_id=line.shape_id,
        broker_id=line.broker_id if own is None else int(own),
        cause=line.cause,
        **typed(fields),
    )


def _refused(lines: list[Line]) -> list[Evidence]:
    ignored = [line for line in lines if line.event_type in IGNORED and line.source_kind == "state_change_log"]
    whole = [line for line in ignored if [partition for partition, _ in by_partition(line.fields)] == [None]]
    return [_fact(line, line.event_type, line.fields) for line in whole]
