"""The UpdateMetadata that goes with each LeaderAndIsr, by the counts of the broker's own log (R15, since 2.6)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconstruct.cluster.spans import CountedRequests, LogSpan
from reconstruct.cluster.view import ClusterView
from reconstruct.model.versions import VersionRange, v
from reconstruct.partitions.evidence import Evidence
from reconstruct.partitions.timeline import fold_partition

SECOND = 1_000_000
WHOLE = ClusterView(
    "c",
    version=VersionRange(v(3, 9), v(3, 9)),
    logs={broker: (LogSpan(0, 100 * SECOND, "TRACE"),) for broker in (1, 2)},
    counted_requests={2: (CountedRequests(1, 1, 3, 9, 0, 90 * SECOND),)},
)
STATE = {"leader": 1, "leader_epoch": 4, "partition_epoch": 7, "isr": (1, 2), "replicas": (1, 2)}


def fact(kind: str, broker: int, number: int | None, at: int, **fields: object) -> Evidence:
    of_request = {"controller_id": 1, "controller_epoch": 1, "correlation_id": number}
    place: dict[str, Any] = {"file": f"b{broker}", "offset": at, "broker_id": broker, "source_kind": "state_change_log"}
    return Evidence(f"{kind} {broker} {number} {at}", kind, at, **{**place, **of_request, **STATE, **fields})


#: Broker 2 gets a LeaderAndIsr; its next request does not name the partition, which broker 1 was told of.
UNTOLD = (
    fact("leader_and_isr_received", 2, 5, 10 * SECOND),
    fact("metadata_cached", 1, 6, 10 * SECOND + 5_000),
)
TOLD = fact("metadata_cached", 2, 6, 10 * SECOND + 4_000)
AGAIN = fact("leader_and_isr_received", 2, 6, 10 * SECOND + 9_000)
SENT = fact("leader_and_isr_sent", 1, None, 10 * SECOND - 1_000, to_broker_ids=(2,))
SENT_AGAIN = fact("leader_and_isr_sent", 1, None, 10 * SECOND + 8_000, to_broker_ids=(2,))


def found(*facts: Evidence, view: ClusterView = WHOLE) -> list[tuple[str, int | None]]:
    findings = fold_partition("t", facts, view, partition_id=0).verdicts.findings
    return [(each.severity, each.broker_id) for each in findings if each.divergence_type == "request_not_sent"]


def seen(*runs: CountedRequests) -> ClusterView:
    return replace(WHOLE, counted_requests={2: runs})


def test_the_request_after_a_leader_and_isr_does_not_name_the_partition() -> None:
    assert found(*UNTOLD) == [("error", 2)]
    assert found(*UNTOLD, TOLD) == []


def test_a_deletion_tells_of_the_partition_too() -> None:
    assert found(*UNTOLD, replace(TOLD, kind="metadata_deleted", leader=-2)) == []


def test_without_another_broker_that_was_told_it_is_a_warning() -> None:
    assert found(UNTOLD[0]) == [("warning", 2)]


@pytest.mark.parametrize(
    "view",
    [
        seen(),
        seen(CountedRequests(1, 1, 3, 5, 0, 90 * SECOND)),  # the next request, or a count, is not there
        seen(CountedRequests(1, 1, 6, 9, 0, 90 * SECOND)),
        seen(CountedRequests(3, 1, 3, 9, 0, 90 * SECOND)),  # another controller's
        seen(CountedRequests(1, 2, 3, 9, 0, 90 * SECOND)),  # or another tenure of its
        seen(CountedRequests(1, 1, 3, 9, 20 * SECOND, 90 * SECOND)),  # or another connection of that tenure
        replace(WHOLE, process_starts={2: ((11 * SECOND, "start"),)}),
        replace(WHOLE, lossy_logs=frozenset({2})),
        replace(WHOLE, logs={2: (LogSpan(0, 100 * SECOND, "INFO"),)}),
        replace(WHOLE, version=VersionRange(v(2, 0), v(2, 5))),
    ],
)
def test_where_lines_may_be_missing_nobody_is_accused(view: ClusterView) -> None:
    assert found(*UNTOLD, view=view) == []


def test_a_leader_and_isr_that_was_sent_again_is_not_followed_by_its_update() -> None:
    """The controller waits a tenth of a second before it sends it again."""
    assert found(*UNTOLD, AGAIN, replace(TOLD, correlation_id=7)) == []
    assert found(*UNTOLD, SENT, replace(AGAIN, at=AGAIN.at + SECOND), replace(TOLD, correlation_id=7)) == []


def test_two_leader_and_isr_with_no_update_between() -> None:
    both = (*UNTOLD, SENT, SENT_AGAIN, AGAIN, replace(TOLD, correlation_id=7))
    assert found(*both) == [("error", 2)]
    assert found(*(each for each in both if each is not SENT_AGAIN)) == []
    other = replace(AGAIN, leader_epoch=5)
    assert found(*UNTOLD, other, replace(TOLD, correlation_id=7)) == [("error", 2)]
