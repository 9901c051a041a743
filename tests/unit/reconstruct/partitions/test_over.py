"""A partition that was deleted is folded once: what its cluster does later changes nothing of it, and of one that lives
on, or that a broker still has, it does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from reconstruct.cluster.spans import Tenure
from reconstruct.cluster.view import ClusterView
from reconstruct.engine.rows import KIND, SAYS, TABLE, EvidenceRow, evidence_row, row_of, value_of
from reconstruct.kept.folds import KeptKey, for_each_key
from reconstruct.partitions.evidence import Evidence
from reconstruct.partitions.spark.evidence import INCARNATION_END, IS_ONLY_INCARNATION
from reconstruct.partitions.spark.step import PARTITION_FOLD
from reconstruct.time.instants import to_micros
from tests.support.captures.packed import Unpacker
from tests.support.evidence.partitions import PlainCapture, plain_capture

HOUR = 3_600_000_000


@pytest.fixture(scope="module")
def capture(unpacked: Unpacker) -> PlainCapture:
    return plain_capture(unpacked("lifecycle-1.1.1"))


def rows_of(facts: list[Evidence], topic: str, cluster_id: str, end: int | None = None) -> Iterator[EvidenceRow]:
    key = {"cluster_id": cluster_id, "topic": topic, "topic_incarnation": "1", "partition_id": 0}
    beside = {INCARNATION_END: end, IS_ONLY_INCARNATION: True}
    for number, fact in enumerate(facts):
        hashes = {"evidence_hash_1": number, "evidence_hash_2": hash(fact)}
        yield evidence_row({**key, **beside, SAYS: json.dumps(row_of(fact)), **hashes})


def kept_of(made: list[Any], cluster_id: str, topic: str) -> EvidenceRow:
    own = value_of(KeptKey, {name: value for name, value in made[-1].items() if name != TABLE})
    says = json.dumps(row_of(own) | {KIND: KeptKey.__name__})
    return evidence_row({"cluster_id": cluster_id, "topic": topic, SAYS: says})


def later_by(view: ClusterView, last: int, *hours: int) -> ClusterView:
    """Each broker has started again in these hours, and each time another controller was elected."""
    begun = [(last + number * HOUR, f"{number} h later") for number in hours]
    starts = {broker_id: (*known, *begun) for broker_id, known in view.process_starts.items()}
    tenures = [Tenure(1, 90 + number, at, None, (name,), "TRACE") for number, (at, name) in enumerate(begun)]
    return replace(view, process_starts=starts, tenures=(*view.tenures, *tenures))


@pytest.mark.parametrize(
    ("topic", "is_over"),
    [("doomed", True), ("scratch", True), ("orders", False)],
)
def test_what_a_cluster_does_later_is_nothing_to_a_deleted_partition(
    capture: PlainCapture, topic: str, is_over: bool
) -> None:
    facts, view = capture.facts[topic, 0], capture.view
    rows, last = list(rows_of(facts, topic, view.cluster_id)), max(fact.at for fact in facts)
    then, now = later_by(view, last, 1), later_by(view, last, 1, 2)
    first, again = (for_each_key(PARTITION_FOLD, {view.cluster_id: known}) for known in (then, now))
    made = [dict(row) for row in first(rows)]
    assert (list(again([*rows, kept_of(made, view.cluster_id, topic)])) == []) is is_over
    assert ([dict(row) for row in again(rows)] == made) is is_over
    # with all that is known by now its history is the same
    whole = for_each_key(replace(PARTITION_FOLD, over_by=lambda _: None), {view.cluster_id: now})
    assert ([dict(row) for row in whole(rows)][:-1] == made[:-1]) is is_over


def test_a_deleted_partition_that_a_broker_still_has_goes_on_to_the_start_of_that_broker(capture: PlainCapture) -> None:
    """Without the lines of the brokers' own end of it nothing says that they let it go."""
    view = capture.view
    stops = ("stop_replica_received", "stop_replica_handled", "metadata_deleted", "metadata_cached")
    facts = [fact for fact in capture.facts["doomed", 0] if fact.kind not in stops]
    rows, last = list(rows_of(facts, "doomed", view.cluster_id)), max(fact.at for fact in facts)
    for hours, ends in (((), {None}), ((1,), {last + HOUR}), ((1, 2), {last + HOUR})):
        made = for_each_key(PARTITION_FOLD, {view.cluster_id: later_by(view, last, *hours)})(rows)
        roles = [row for row in made if row[TABLE] == "silver.replica_role_timeline" and row["role"] != "none"]
        acted = {row["broker_id"]: row["valid_to"] for row in roles}
        assert acted
        assert {end and to_micros(end) for end in acted.values()} == ends


def test_a_partition_that_lives_on_after_a_deletion_is_not_over(capture: PlainCapture) -> None:
    """Its znode shows it later than the line: a topic of that name was deleted before, or is there again."""
    first, *others = capture.facts["orders", 0]
    deleted = replace(first, kind="topic_deletion_completed", evidence_id="deleted")
    assert PARTITION_FOLD.over_by(list(rows_of([deleted, first, *others], "orders", "c"))) is None
    logs = [fact for fact in others if not fact.kind.startswith("znode")]
    assert PARTITION_FOLD.over_by(list(rows_of([deleted, *logs], "orders", "c"))) is not None
    assert PARTITION_FOLD.over_by(list(rows_of(logs, "orders", "c", end=max(fact.at for fact in logs)))) is not None
