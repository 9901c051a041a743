"""Scenarios on clusters without ZooKeeper: what is recorded of them is what the nodes have, what they log is known, and
the timelines are what the quorum decided: each state of each partition, none beside, and nobody is accused.

The truth is each node's whole metadata log, as it was when the cluster had ended.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest

from ingest.readers.log_dirs.names import METADATA_DIRECTORY
from ingest.readers.logs.writers import kind_of_logger
from ingest.shapes import match
from jobs.lab.machines.kraft import FIRST_CONTROLLER
from jobs.lab.machines.releases import KRAFT_BETWEEN, KRAFT_RELEASES
from jobs.lab.play import Played
from jobs.lab.scenarios.catalogue import SCENARIOS
from reconstruct.checkpoints.rules import judge_checkpoints
from reconstruct.metadata_log.timeline import replay_rows
from reconstruct.model.metadata_log.image import applied, replay
from reconstruct.model.metadata_log.values import Image, PartitionState
from reconstruct.partitions.leader_and_isr import LeaderAndIsrState
from reconstruct.quorum.timeline import quorum_timeline
from tests.cluster.conftest import Player
from tests.cluster.dump_log import differing_from_kafka
from tests.cluster.kafka_image import differing_from_image
from tests.support.captures.text import CaptureText
from tests.support.evidence.checkpoints import plain_checkpoints
from tests.support.evidence.offsets import judged
from tests.support.evidence.partitions import plain_capture
from tests.support.kraft_logs import misread
from tests.support.kraft_partitions import history_of
from tests.support.lakes.kraft import Recorded
from tests.support.metadata_log import cluster_log, log_of
from tests.support.truth.offsets import bounds_of, measure, read_evidence

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

#: Of the lines of these loggers nearly each has a shape; of the others, as the group coordinator, few.
OF_KRAFT: Final = re.compile(
    r"org\.apache\.kafka\.(?:raft|controller|image|metadata|queue)\.|kafka\.server\.(?:BrokerServer|ControllerServer)"
    r"|.*\.(?:BrokerLifecycleManager|NodeToController\w+|ControllerRegistrationManager)\Z|state\.change\.logger"
)
LEAST_KNOWN: Final = 0.98
#: What the releases between those of the whole matrix play.
ON_RELEASES_BETWEEN: Final = ("reassignment", "unclean-election", "controller-failover", "quorum-outage")
LINE: Final = re.compile(r"\[[^\]]+\] [A-Z]+ +(?P<message>.*) \((?P<logger>[\w.$]+)\)", re.ASCII)
#: What a scenario is played for.
BROUGHT_ABOUT: Final = {("unclean-election", "R08"), ("lifecycle", "R08"), ("lifecycle", "R35")}
#: The quorum has another leader, in a later epoch, at their end.
CONTROLLERS_END: Final = ("controller-failover", "zombie", "quorum-outage", "voters", "lifecycle")


@pytest.mark.parametrize(
    ("scenario", "version"),
    [
        pytest.param(name, release.name, id=f"{name}-{release.name}")
        for release in (*KRAFT_RELEASES, *KRAFT_BETWEEN)
        for name, scenario in SCENARIOS.items()
        if scenario.plays_on(release) and (release in KRAFT_RELEASES or name in ON_RELEASES_BETWEEN)
    ],
)
def test_what_was_captured_is_what_the_nodes_have(scenario: str, version: str, player: Player) -> None:
    assert problems(player(scenario, version)) == []


def problems(played: Played) -> list[str]:
    """Everything that is not as it must be."""
    return [
        *not_as_copied(played),
        *not_of_the_quorum(played),
        *not_known(played),
        *not_as_decided(played),
        *not_as_kafka_says(played),
        *not_by_logs_alone(played),
        *accused(played),
    ]


def not_as_kafka_says(played: Played) -> list[str]:
    """Records of the nodes' own logs that are not read as Kafka's tool prints them, or make another state than in
    Kafka's own image; and snapshots that are not what the records made."""
    records, _, differing = differing_from_kafka(played.release, nodes_of(played.truth))
    _, others = differing_from_image(played.release, nodes_of(played.truth))
    return differing + others if records else ["the nodes have no metadata log"]


def not_as_copied(played: Played) -> list[str]:
    """Files of the metadata log that the capture lacks, or that begin otherwise: what a node wrote after it is no
    fault."""
    found = []
    for theirs in sorted(played.truth.glob(f"broker-*/{METADATA_DIRECTORY}/*")):
        name = theirs.name.removesuffix(".deleted")
        if not name.endswith((".log", ".checkpoint")):
            continue
        ours = played.capture / theirs.parent.relative_to(played.truth) / name
        if ours.exists():
            written, copied = theirs.read_bytes(), ours.read_bytes()
            is_deleted = name != theirs.name  # before its last bytes were copied, or on a disk that was lost
            is_same = written.startswith(copied) and (is_deleted or 2 * len(copied) >= len(written))
            if not is_same and not (is_deleted and copied.startswith(written)):
                found.append(f"{ours.relative_to(played.capture)} is not what the node has")
        elif name.endswith(".log") and not list(ours.parent.glob("*.log")):
            found.append(f"{ours.relative_to(played.capture)} was not copied")
    return found


def not_of_the_quorum(played: Played) -> list[str]:
    told = described(played, "quorum")
    epochs = {(entry["leader_epoch"], entry["leader"]) for entry in told if entry["leader"] >= 0}
    found = [] if told else ["the quorum was not described"]
    if len(dict(epochs)) != len(epochs):
        found.append(f"two leaders in one epoch: {sorted(epochs)}")
    # it may lead on when the others are back
    leads_on = played.scenario.name == "quorum-outage" and not played.release.leader_resigns
    if played.scenario.name in CONTROLLERS_END and not leads_on and len(epochs) < 2:
        found.append(f"the quorum has one leader all the time: {sorted(epochs)}")
    return found + not_as_voted(played)


def not_as_voted(played: Played) -> list[str]:
    """Voters that were added and removed, which the timeline of the quorum does not tell so."""
    expected: list[set[int]] = []
    for event in map(json.loads, (played.truth / "events.jsonl").read_text(encoding="utf-8").splitlines()):
        if event["what"] in ("voter_added", "voter_removed"):
            before = expected[-1] if expected else set(range(FIRST_CONTROLLER, FIRST_CONTROLLER + 3))
            expected.append(before ^ {event["broker"]})
    log, _ = cluster_log(nodes_of(played.capture))
    spans = [span.interval.value for span in quorum_timeline([], log)]
    told = [set(one.voters or ()) for one in spans if one.began_by == "voters_changed"]
    return [] if told == expected else [f"the voters became {expected}, and are told as {told}"]


def not_known(played: Played) -> list[str]:
    """Too many lines without a shape, and each of a state change."""
    counts, unknown = Counter[bool](), []
    for log in sorted(played.capture.glob("broker-*/logs/*.log")):
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
            read = LINE.fullmatch(line)
            if read is None or not OF_KRAFT.match(read["logger"]):
                continue
            kind = kind_of_logger(read["logger"])
            is_known = match(kind, read["logger"], read["message"]) is not None
            counts[is_known] += 1
            if not is_known and kind == "state_change_log":
                unknown.append(f"no shape is known of {line}")
    known = counts[True] / max(1, counts.total())
    return unknown + ([] if known >= LEAST_KNOWN else [f"only {known:.1%} of {counts.total()} lines have a shape"])


def not_as_decided(played: Played) -> list[str]:
    """Of the part of the log that was captured: states of partitions that are missing, or were never decided; and
    findings, but those of a loss that the scenario brings about."""
    nodes, written = nodes_of(played.capture), [log_of(node) for node in nodes_of(played.truth)]
    whole = max((records for records in written if records and records[0].offset == 0), key=len, default=None)
    captured = max((record.offset for node in nodes for record in log_of(node)), default=-1)
    cluster, cases = history_of(nodes)
    ours = {
        (topic_id, partition_id, *_values(span.value))
        for (_, topic_id, partition_id), case in cases.items()
        for span in case.decided
    }
    found = [] if ours else ["the cluster decided nothing"]
    if whole is not None:
        theirs: set[tuple[Any, ...]] = set()
        image: Image = {}
        for record in whole:
            made = applied(image, record).changes
            if record.offset <= captured:
                theirs |= {
                    (subject.name, subject.partition_id, *_values(state))
                    for subject, state in made
                    if isinstance(state, PartitionState)
                }
            image = replay([record], image)
        found += [f"missing: {state}" for state in sorted(theirs - ours)]
        found += [f"never decided: {state}" for state in sorted(ours - theirs)]
    log, topics = cluster_log(nodes)
    replayed = [replay_rows(log.rows, log), *(replay_rows(rows, log.of_quorum) for rows in topics.values())]
    verdicts = [cluster.verdicts, *(case.verdicts for case in cases.values()), *(one.verdicts for one in replayed)]
    return found + [
        f"{finding.rule_id}: {finding.explanation}"
        for one in verdicts
        for finding in one.findings
        if finding.severity != "info" and (played.scenario.name, finding.rule_id) not in BROUGHT_ABOUT
    ]


def not_by_logs_alone(played: Played) -> list[str]:
    """What the nodes' logs alone are misread to say, and answers of brokers outside of the bounds of offsets."""
    found = misread(CaptureText.read(played.capture), Recorded(played.truth))
    probes = measure(played.capture, bounds_of(read_evidence(played.capture)))
    return found + [f"{probe} is not in [{low:g}, {high:g}]" for probe, low, high in probes.outside]


def accused(played: Played) -> list[str]:
    """Whom logs, copies and answers accuse without the metadata log, but of what the scenario brings about. The plain
    readers take a topic that was created twice for one: of such nothing is asked."""
    lives = Counter(topic for topic, _ in {(topic, topic_id) for topic, topic_id, _ in Recorded(played.truth).states})
    plain = plain_capture(played.capture, znodes=False)
    of_partitions = (*plain.findings(), *judged(played.capture))
    found = [finding for (topic, _), finding in of_partitions if lives[topic] < 2]
    found += plain.cluster.verdicts.findings
    for broker in plain_checkpoints(played.capture):
        found += judge_checkpoints(broker).verdicts.findings
    return [
        f"{finding.rule_id} without the metadata log: {finding.explanation}"
        for finding in found
        if finding.severity != "info"
        and finding.rule_id not in played.scenario.explains
        and (played.scenario.name, finding.rule_id) not in BROUGHT_ABOUT
    ]


def _values(state: PartitionState | LeaderAndIsrState) -> tuple[Any, ...]:
    return state.leader, state.leader_epoch, state.isr, state.partition_epoch


def nodes_of(folder: Path) -> list[Path]:
    return sorted(path.parent for path in folder.glob(f"broker-*/{METADATA_DIRECTORY}"))


def described(played: Played, kind: str) -> list[dict[str, Any]]:
    lines = (played.capture / "descriptions.jsonl").read_text(encoding="utf-8").splitlines()
    return [entry for entry in map(json.loads, lines) if entry["description"] == kind]
