"""What the rules about offsets judge, of a capture's folder and without Spark: for tests that judge many times."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ingest.shapes import match
from ingest.shapes.broker_settings import BrokerSetting
from reconstruct.cluster.evidence import ClusterFacts
from reconstruct.cluster.settings import Configuration, SettingChange, SettingsOverTime
from reconstruct.cluster.view import ClusterView
from reconstruct.findings.verdicts import Finding, Verdicts
from reconstruct.model.versions import VersionRange
from reconstruct.offsets.clocks import OffsetClocks
from reconstruct.offsets.evidence import OffsetBounds, OffsetEvidence
from reconstruct.offsets.losses import find_losses
from reconstruct.offsets.rules import IsrMove, IsrMoveKind, OffsetCase, judge_offsets
from reconstruct.offsets.rules.case import printed_lag_us
from reconstruct.offsets.widest_bounds import bounds_of_versions
from tests.support.captures.text import CaptureText, printed_at
from tests.support.evidence.cluster import facts_of_log
from tests.support.truth.offsets import (
    RIGHT,
    BoundsByPartition,
    CaptureEvidence,
    bounds_once,
    evidence_once,
    read_evidence,
)

Partition = tuple[str, int]
_TOPIC_CONFIG: Final = "/config/topics/"
_LINE: Final = re.compile(r"^\[([\d :,-]{23})\] \w+ (.*(?:Shrinking ISR|Expanding ISR|ISR updated) .*) \(([\w.$]+)\)$")
_KINDS: Final = {
    "isr_shrink_proposed": IsrMoveKind.LEFT,
    "isr_expand_proposed": IsrMoveKind.JOINED,
    "isr_update_committed": IsrMoveKind.WRITTEN,
}


@dataclass(frozen=True)
class Inputs:
    """All that one partition is judged by."""

    evidence: OffsetEvidence
    view: ClusterView
    moves: Sequence[IsrMove]


#: What was found before, by partition: judged again only where the inputs are others.
Known = dict[Partition, tuple[Inputs, list[Finding]]]


def judged(
    capture: Path, *, with_probes: bool = True, known: Known | None = None, clocks: OffsetClocks = RIGHT
) -> list[tuple[Partition, Finding]]:
    """Every finding about a capture's offsets, with the partition that it is of; from its logs, checkpoints, snapshots,
    settings and, unless not wanted, probes. ``known`` is read and, where empty for a partition, filled; ``clocks`` are
    what is unknown of the brokers'."""
    return judged_of(capture, read_evidence(capture, with_probes=with_probes, clocks=clocks), known)


def judged_unbent(capture: Path, *, with_probes: bool, known: Known | None = None) -> list[tuple[Partition, Finding]]:
    """As :func:`judged`, of a capture that no test changes: its evidence and bounds are made once in a process."""
    return judged_of(capture, evidence_once(capture, with_probes), known, bounds_once(capture, with_probes))


def judged_of(
    capture: Path,
    found: CaptureEvidence,
    known: Known | None = None,
    bounds: BoundsByPartition | None = None,
    view: ClusterView | None = None,
) -> list[tuple[Partition, Finding]]:
    """As :func:`judged`, of evidence that was read already, and of its bounds where they are there; ``view`` is what
    is known of the cluster, if not of which version it is."""
    if view is None:
        version = VersionRange.exactly(found.version)
        view = ClusterView(
            capture.name, version, configurations=_configurations(capture), settings=_topic_settings(capture)
        )
    moves = _isr_moves(capture)
    result = []
    for partition, evidence in found.partitions.items():
        inputs = Inputs(evidence, view, moves.get(partition, ()))
        before = None if known is None else known.get(partition)
        findings = (
            before[1]
            if before is not None and before[0] == inputs
            else _judge(partition[0], inputs, None if bounds is None else bounds[partition])
        )
        if known is not None:
            known.setdefault(partition, (inputs, findings))
        result += [(partition, finding) for finding in findings]
    return result


def _judge(topic: str, inputs: Inputs, bounds: Sequence[OffsetBounds] | None) -> list[Finding]:
    evidence = inputs.evidence
    known = bounds_of_versions(evidence, inputs.view.version) if bounds is None else bounds
    losses = find_losses(evidence, known)
    decided = {(state.valid_from, state.leader_epoch): (f"state-{state.valid_from}",) for state in evidence.decided}
    case = OffsetCase(topic, inputs.view, evidence, losses, inputs.moves, decided)
    verdicts = Verdicts()
    judge_offsets(case, verdicts)
    return verdicts.findings


def _brokers(capture: Path) -> list[int]:
    return sorted(int(path.name.removeprefix("broker-")) for path in capture.glob("broker-*"))


def _configurations(capture: Path) -> Mapping[int, Configuration]:
    """By broker: what it printed at its starts, and its file, where that is not empty."""
    facts, text = ClusterFacts(), CaptureText.read(capture)
    for name in text.named("server.log"):
        of_log = facts_of_log(name, text.files[name])
        facts.process_starts += of_log.process_starts
        facts.own_settings.printed.update(of_log.own_settings.printed)
    for broker in _brokers(capture):
        if settings := _settings(capture, broker):
            facts.own_settings.files[broker] = settings
    return facts.configurations


def _settings(capture: Path, broker: int) -> Mapping[str, list[str]]:
    text = (capture / f"broker-{broker}" / "server.properties").read_text()
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line)
    return {key: [value] for key, value in pairs}


def _topic_settings(capture: Path) -> SettingsOverTime:
    """What snapshots of znodes show that topics set, each write once."""
    writes: dict[tuple[str, int], SettingChange] = {}
    for snapshot in sorted((capture / "znodes").glob("*.jsonl")):
        for line in snapshot.read_text().splitlines():
            if f'"{_TOPIC_CONFIG}' in line:
                znode = json.loads(line)
                config = json.loads(znode["data"]).get("config", {})
                own, unclean = config.get(BrokerSetting.MIN_ISR), config.get(BrokerSetting.UNCLEAN)
                change = SettingChange(
                    1000 * znode["mtime"],
                    own and int(own),
                    None if unclean is None else unclean == "true",
                    is_first=znode["version"] == 0,
                )
                writes.setdefault((znode["path"].removeprefix(_TOPIC_CONFIG), znode["mzxid"]), change)
    topics: dict[str, list[SettingChange]] = {}
    for (topic, _), change in sorted(writes.items(), key=lambda write: write[0][1]):
        topics.setdefault(topic, []).append(change)
    return SettingsOverTime(topics)


def _isr_moves(capture: Path) -> dict[Partition, list[IsrMove]]:
    result: dict[Partition, list[IsrMove]] = {}
    for broker in _brokers(capture):
        log = capture / f"broker-{broker}" / "logs" / "server.log"
        written = log.read_text(errors="replace").splitlines() if log.exists() else ()
        for number, text in enumerate(written, 1):
            for partition, move in _moves_of(broker, f"broker-{broker}/logs/server.log:{number}", text):
                result.setdefault(partition, []).append(move)
    return result


def _moves_of(broker: int, evidence_id: str, text: str) -> Iterator[tuple[Partition, IsrMove]]:
    line = _LINE.match(text)
    matched = match("server_log", line[3], line[2]) if line else None
    if line is None or matched is None or matched.event_type not in _KINDS:
        return
    fields = matched.fields
    at = printed_at(line[1])
    listed = [text.split(":") for text in fields.get("out_of_sync", "").split(",") if text]
    known = {who: [*numbers, "", ""] for who, *numbers in listed}
    written = fields["isr"].split(",") if "isr" in fields else ()
    moved = set(written) or set(fields["old_isr"].split(",")) ^ set(fields["new_isr"].split(","))
    for member in sorted(moved - {""}):
        end, caught_up = known.get(member, ["", ""])[:2]
        yield (
            (fields["topic"], int(fields["partition_id"])),
            IsrMove(
                broker,
                int(member),
                _KINDS[matched.event_type],
                at,
                int(end) if end.isdigit() else None,
                evidence_id,
                printed_lag_us(at, int(caught_up or 0)),
            ),
        )
