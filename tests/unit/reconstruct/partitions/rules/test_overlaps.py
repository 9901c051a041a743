"""Two brokers that act as leader at once (R25)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ingest.lake.tables.gold import LEADERSHIP_OVERLAPS
from reconstruct.cluster.spans import Registration
from reconstruct.cluster.view import ClusterView
from reconstruct.partitions.case import Case
from reconstruct.partitions.evidence import Evidence
from reconstruct.partitions.spark.step import history_rows
from reconstruct.partitions.timeline import fold_partition
from reconstruct.time.intervals import Interval
from tests.support.captures.packed import Unpacker
from tests.unit.reconstruct.partitions.rules.bent_beliefs import Subject, types
from tests.unit.reconstruct.partitions.tables import facts


def shown(history: Case) -> list[tuple[int, int, int, int, float | None, str | None]]:
    """Deposed broker and epoch, leader and epoch, how long in s, how it ended."""
    return [
        (
            o.deposed,
            o.deposed_leader_epoch,
            o.leader,
            o.leader_epoch,
            None if o.end is None else (o.end - o.start) / 1_000_000,
            o.ended_by,
        )
        for o in history.overlaps
    ]


@pytest.mark.parametrize(
    ("name", "number", "expected", "is_told"),
    [
        # broker 2 resp. 3 was paused past its session, and led when it was resumed
        ("failover-0.8.2.2", 0, [(2, 2, 1, 3, 7.809, "became_follower")], True),
        ("failover-3.9.1", 0, [(2, 3, 1, 5, 7.834, "became_follower")], True),
        ("failover-1.1.1", 2, [(3, 1, 1, 2, 8.298, "became_follower")], True),
        # and before, for less than a second
        ("failover-0.8.2.2", 1, [(2, 0, 3, 1, 0.637, "became_follower")], False),
        # broker 1 was killed: nothing shows that it went on
        ("unclean-0.8.2.2", 0, [], False),
    ],
)
def test_a_paused_leader_goes_on_after_its_deposition(
    name: str, number: int, expected: list[object], is_told: bool, unpacked: Unpacker
) -> None:
    subject = Subject.of(unpacked(name), "ledger" if name.startswith("unclean") else "orders", number)
    history = subject.fold()
    assert shown(history) == expected
    told = [(f.divergence_type, f.severity) for f in history.verdicts.findings if f.rule_id == "R25"]
    assert told == [("deposed_leader_went_on", "info")] * is_told


@pytest.mark.parametrize("name", ["lifecycle-0.8.2.2", "lifecycle-1.1.1", "lifecycle-3.9.1"])
def test_two_leaders_at_one_epoch(name: str, unpacked: Unpacker) -> None:
    subject = Subject.of(unpacked(name), "orders", 1)
    done = next(f for f in subject.facts if f.kind == "become_follower_completed" and f.broker_id == 1)
    request = (done.controller_id, done.controller_epoch, done.correlation_id)

    def as_leader(fact: Evidence) -> Evidence:
        if fact.broker_id != 1 or (fact.controller_id, fact.controller_epoch, fact.correlation_id) != request:
            return fact
        return replace(fact, kind=fact.kind.replace("become_follower", "become_leader"))

    found = [f for f in subject.found([as_leader(fact) for fact in subject.facts]) if f.rule_id == "R25"]
    assert types(found) == {"two_acting_leaders"}
    assert found[0].severity == "error"


LED = """
    at | kind                 | broker | leader | epoch | isr | role
    10 | leader_epoch_started | 1      | 1      | 0     | 1,2 | leader
    10 | leader_epoch_started | 2      | 1      | 0     |     | follower
    50 | leader_epoch_started | 2      | 2      | 1     | 2   | leader
    """


def fold(*lines: str, view: ClusterView | None = None) -> Case:
    return fold_partition("t", facts(LED + "\n".join(lines)), view or ClusterView("c"))


def test_how_it_ends() -> None:
    assert shown(fold("60 | leader_epoch_started | 1 | 2 | 1 | | follower")) == [(1, 0, 2, 1, 0.01, "became_follower")]
    assert shown(fold("60 | stop_replica_handled | 1 | | | |")) == [(1, 0, 2, 1, 0.01, "replica_stopped")]
    assert shown(fold("60 | leader_epoch_started | 1 | 1 | 2 | 1 | leader")) == [(1, 0, 2, 1, 0.01, "elected_again")]
    # still at it when its log ends
    assert shown(fold("60 | isr_shrink_proposed | 1 | | | 1 |")) == [(1, 0, 2, 1, None, None)]


def test_a_leader_that_was_deposed_in_time_overlaps_with_nobody() -> None:
    assert shown(fold("40 | leader_epoch_started | 1 | 2 | 1 | | follower")) == []


def test_a_broker_that_just_stops_logging_is_not_said_to_have_gone_on() -> None:
    restarted = ClusterView("c", process_starts={1: ((70_000, "again"),)})
    assert shown(fold()) == []
    assert shown(fold(view=restarted)) == []
    alive = "55 | isr_update_failed | 1 | | | 1 |"
    assert shown(fold(alive, view=restarted)) == [(1, 0, 2, 1, None, "process_ended")]
    shutdown = (Interval(0, 60_000, Registration("controlled_shutdown"), ()),)
    clean = replace(restarted, liveness={1: shutdown})
    assert shown(fold(alive, view=clean)) == [(1, 0, 2, 1, 0.01, "process_ended")]


@pytest.mark.parametrize(
    ("between", "harm"),
    [
        ("55 | isr_shrink_proposed | 1 | | | 1 |", "two_leaders"),
        ("55 | leader_epoch_started | 1 | 2 | 0 | | follower", "two_leaders"),
        ("40 | leader_epoch_started | 1 | 2 | 0 | | follower", "possible"),
        ("", "possible"),  # it may have died before
    ],
)
def test_two_leaders_at_one_epoch_lead_at_once_only_where_the_first_still_does(between: str, harm: str) -> None:
    one_epoch = LED.replace("| 2      | 1     | 2 ", "| 2      | 0     | 2 ")
    case = fold_partition("t", facts(one_epoch + between), ClusterView("c"))
    (finding,) = (one for one in case.verdicts.findings if one.divergence_type == "two_acting_leaders")
    assert finding.harm == harm
    assert ("both take writes" in finding.explanation) == (harm == "two_leaders")


def test_only_a_long_overlap_with_a_known_end_is_told() -> None:
    def told(at_ms: int) -> set[str]:
        return types(fold(f"{at_ms} | leader_epoch_started | 1 | 2 | 1 | | follower").verdicts.findings)

    assert told(1_050) == set()
    assert told(1_051) == {"deposed_leader_went_on"}
    restarted = ClusterView("c", process_starts={1: ((90_000_000, "again"),)})
    assert types(fold("2000 | isr_update_failed | 1 | | | 1 |", view=restarted).verdicts.findings) == set()


def test_a_row_has_the_columns_of_its_table() -> None:
    history = fold("60 | leader_epoch_started | 1 | 2 | 1 | | follower")
    rows = [row for row in history_rows(history) if row.pop("table_name") == LEADERSHIP_OVERLAPS.full_name]
    key = {"cluster_id", "topic", "topic_incarnation", "partition_id"}
    assert [set(row) for row in rows] == [set(LEADERSHIP_OVERLAPS.column_names) - key]
    assert [(row["deposed_leader"], row["leader"], row["ended_by"]) for row in rows] == [(1, 2, "became_follower")]
    assert rows[0]["evidence"] == ["e3", "e1", "e4"]
