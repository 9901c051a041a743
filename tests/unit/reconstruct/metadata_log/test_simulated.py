"""What a controller of each release writes while brokers come and go at random breaks no rule; another leader does."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from reconstruct.metadata_log.evidence import LogRow
from reconstruct.metadata_log.timeline import replay_rows
from reconstruct.model.versions import KafkaVersion, v
from tests.support.simulated_quorum import LEVELS, NOBODY, SimulatedQuorum

QUORUMS = [(release, has_elr) for release in LEVELS for has_elr in ((False, True) if release >= v(4, 0) else (False,))]

NAMES = [f"{release}{' with ELR' if has_elr else ''}" for release, has_elr in QUORUMS]


def played(release: KafkaVersion, has_elr: bool, seed: int) -> SimulatedQuorum:
    quorum = SimulatedQuorum(seed, release, has_elr, is_unclean=seed % 2 == 1, min_isr=1 + seed % 3)
    for _ in range(80):
        quorum.step()
    return quorum


@pytest.mark.parametrize(("release", "has_elr"), QUORUMS, ids=NAMES)
def test_nothing_that_a_controller_writes_is_accused(release: KafkaVersion, has_elr: bool) -> None:
    kept: Counter[str] = Counter()
    for seed in range(16):
        quorum = played(release, has_elr, seed)
        for rows, log in ((quorum.log.rows, quorum.log), (quorum.topic_rows, quorum.log.of_quorum)):
            verdicts = replay_rows(rows, log).verdicts
            assert [(seed, finding.rule_id, finding.explanation) for finding in verdicts.findings] == []
            kept += Counter({rule: n for (rule, verdict), n in verdicts.counts.items() if verdict == "kept"})
    judged = {"R51", "R53", "R54", "R56", "R57", "R58", "R59"} | ({"R55"} if has_elr else set())
    assert {rule for rule in judged if kept[rule] < 5} == set()


def other_leaders(quorum: SimulatedQuorum) -> Iterator[tuple[LogRow, LogRow]]:
    """Each record that elects one who is alone in the ISR then, and the same with another broker in its place; not with
    the one whom the record behind takes away: it might be another event's."""
    led: dict[int, int] = {}
    for row in quorum.topic_rows:
        fields = json.loads(row.fields)
        leader, before = fields.get("leader"), led.get(fields.get("partitionId", -1))
        if (
            row.record_type == "PartitionChangeRecord"
            and leader not in (None, NOBODY)
            and fields.get("isr") == [leader]
        ):
            for other in {0, 1, 2, 3} - {leader, before, quorum.log.removed_behind(row)}:
                yield row, replace(row, fields=json.dumps(fields | {"leader": other, "isr": [other]}))
        if leader is not None:
            led[fields["partitionId"]] = leader


@pytest.mark.parametrize(("release", "has_elr"), QUORUMS, ids=NAMES)
def test_another_leader_is_found(release: KafkaVersion, has_elr: bool) -> None:
    found = []
    for seed in range(4):
        quorum = played(release, has_elr, seed)
        for row, wrong in other_leaders(quorum):
            rows = [wrong if one is row else one for one in quorum.topic_rows]
            findings = replay_rows(rows, quorum.log.of_quorum).verdicts.findings
            found.append(any(one.severity == "error" and wrong.evidence_id in one.evidence for one in findings))
    assert len(found) >= 10
    assert sum(found) >= 0.98 * len(found)
