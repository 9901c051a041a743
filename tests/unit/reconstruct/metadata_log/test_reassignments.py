"""R57: a reassignment that ended before the replicas that its release waits for were in the ISR."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from reconstruct.findings.verdicts import Verdicts
from reconstruct.metadata_log.choices import judge_end_of_reassignment
from reconstruct.metadata_log.evidence import ClusterLog, LogRow
from reconstruct.model.metadata_log.values import PartitionState

#: metadata.version of 4.2 and of 4.3, and one that no release known here has.
OF_4_2, OF_4_3, LATER = 29, 30, 99
#: Replica 2 gives its place to 3.
BEGUN = PartitionState((0, 1, 3, 2), (0, 1, 2), 0, 0, 5, (3,), (2,))
ENDED = PartitionState((0, 1, 3), (0, 1, 3), 0, 0, 6)
ROW = LogRow("r", 9, 1, "PartitionChangeRecord", "{}", 0)


def registered(node: str, level: int) -> LogRow:
    features = [{"name": "metadata.version", "minSupportedVersion": 1, "maxSupportedVersion": level}]
    fields = {f"{node}Id": 1, "incarnationId": "i", "brokerEpoch": 1, "fenced": False, "features": features}
    return LogRow(f"{node}{level}", 1, 1, f"Register{node.title()}Record", json.dumps(fields), 0)


def judged(before: PartitionState | None, after: PartitionState, levels: Sequence[int] = (OF_4_2,)) -> Verdicts:
    rows = [registered(node, level) for level in levels for node in ("broker", "controller")]
    verdicts = Verdicts()
    judge_end_of_reassignment(before, after, ROW, ClusterLog("c", (), (), tuple(rows)), verdicts)
    return verdicts


def test_an_end_with_all_replicas_in_sync_is_kept() -> None:
    assert judged(BEGUN, ENDED).counts == {("R57", "kept"): 1}


@pytest.mark.parametrize("level", [OF_4_2, OF_4_3])
def test_an_end_without_what_was_added_is_found_of_every_release(level: int) -> None:
    (found,) = judged(BEGUN, replace(ENDED, isr=(0, 1)), [level]).findings
    assert (found.rule_id, found.severity, found.broker_id) == ("R57", "error", 3)
    assert "[3] are not in the ISR [0, 1]" in found.explanation


@pytest.mark.parametrize(
    ("levels", "verdict"),
    [((OF_4_2,), "broken"), ((OF_4_3,), "kept"), ((OF_4_2, OF_4_3), "kept"), ((LATER,), "kept"), ((), "kept")],
)
def test_without_one_that_stays_it_ends_where_a_node_may_be_of_4_3(levels: Sequence[int], verdict: str) -> None:
    assert judged(BEGUN, replace(ENDED, isr=(0, 3)), levels).counts == {("R57", verdict): 1}


def test_a_controller_that_is_not_registered_may_be_of_any_release() -> None:
    verdicts = Verdicts()
    later = replace(registered("controller", OF_4_2), offset=ROW.offset + 1)
    log = ClusterLog("c", (), (), (registered("broker", OF_4_2), later))
    judge_end_of_reassignment(BEGUN, replace(ENDED, isr=(0, 3)), ROW, log, verdicts)
    assert verdicts.counts == {("R57", "kept"): 1}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, ENDED),
        (BEGUN, replace(BEGUN, isr=(0, 1, 2, 3))),
        (BEGUN, replace(ENDED, replicas=(0, 1, 2), isr=(0, 1, 2))),
        (replace(BEGUN, adding_replicas=(), removing_replicas=()), ENDED),
    ],
    ids=["a new partition", "it goes on", "it is called back", "there was none"],
)
def test_what_is_no_end_is_not_judged(before: PartitionState | None, after: PartitionState) -> None:
    assert judged(before, after).counts == {}


def test_an_end_with_an_unclean_election_or_one_from_the_elr_is_left_open() -> None:
    recovering = replace(ENDED, leader=3, leader_recovery_state=1, isr=(3,))
    of_elr = replace(ENDED, leader=1, isr=(1,))
    assert judged(BEGUN, recovering).counts == {("R57", "cannot_be_judged"): 1}
    assert judged(replace(BEGUN, elr=(1,), isr=(0,)), of_elr).counts == {("R57", "cannot_be_judged"): 1}
