"""Questions of ``dashboards/questions/trends``."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.spark.dashboards.kraft_answers.asked import Asked, of
from tests.support.lakes.kraft import WHOLE


@of("common-broker")
def common_broker(ask: Asked) -> None:
    rows = {row.broker_id: row for row in ask("common-broker")}
    assert {one: row.registrations_lost for one, row in rows.items()} == {1: 1, 2: 1, 3: 0}
    # orders-0 and payments-0; orders-1; payments-0, as the log directory failed
    assert {one: row.leaderships_lost for one, row in rows.items()} == {1: 2, 2: 1, 3: 1}


@of("controllers-by-day")
def controllers_by_day(ask: Asked) -> None:
    (row,) = ask("controllers-by-day")
    assert (row.controllers_elected, row.controllers) == (2, 2)


@of("elections-by-day")
def elections_by_day(ask: Asked) -> None:
    rows = ask("elections-by-day")
    assert sum(row.elections for row in rows) == len(ask("elections"))
    assert sum(row.unclean_elections for row in rows) == 3
    assert {row.election_kind: row.leaderless_elections for row in rows if row.leaderless_elections} == {"nobody": 3}


@of("findings-by-day")
def findings_by_day(ask: Asked) -> None:
    assert sum(row.findings for row in ask("findings-by-day")) == len(ask("findings"))


@of("findings-by-run")
def findings_by_run(ask: Asked) -> None:
    assert sum(row.found_first for row in ask("findings-by-run")) == len(ask("findings"))


@of("isr-changes-by-day")
def isr_changes_by_day(ask: Asked) -> None:
    rows = ask("isr-changes-by-day")
    assert {row.broker_id: (row.left_count, row.entered_count) for row in rows} == {1: (7, 8), 2: (7, 6), 3: (4, 4)}


@of("isr-flapping")
def isr_flapping(ask: Asked) -> None:
    rows = ask("isr-flapping")
    # each left once and came back, but for broker 2 where a reassignment took it out
    assert Counter(row.replica_id for row in rows) == {1: 7, 2: 6, 3: 4}
    assert {(row.shrink_count, row.expand_count) for row in rows} == {(1, 1)}
    by_leader = {(row.topic, row.replica_id) for row in rows if row.shrinks_by_leader_count}
    assert by_leader == {("ledger", 2), ("safe", 2)}


@of("outages-by-day")
def outages_by_day(ask: Asked) -> None:
    rows = {(row.topic, row.kind): row.minutes for row in ask("outages-by-day")}
    ledger = 2 * (ask.at(225) - ask.at(188)).total_seconds() / 60
    safe = (ask.at(246) - ask.at(190)).total_seconds() / 60
    assert rows["ledger", "offline"] == pytest.approx(ledger, abs=0.002)
    assert rows["safe", "offline"] == pytest.approx(safe, abs=0.002)


@of("propagation-by-day")
def propagation_by_day(ask: Asked) -> None:
    (row,) = ask("propagation-by-day")
    assert (row.request_kind, row.requests, row.not_applied) == ("metadata_record", len(ask("propagation")), 0)


@of("quality-by-run")
def quality_by_run(ask: Asked) -> None:
    assert {row.cluster_id for row in ask("quality-by-run")} <= {WHOLE}  # of runs of check, which is another test's


@of("quality-by-day")
def quality_by_day(ask: Asked) -> None:
    assert {row.cluster_id for row in ask("quality-by-day")} <= {WHOLE}  # as quality-by-run


@of("worst-partitions")
def worst_partitions(ask: Asked) -> None:
    worst = ask("worst-partitions")
    assert (worst[0].topic, worst[0].partition_id) == ("safe", 0)  # the longest without a leader
    assert {(row.topic, row.partition_id): row.unclean_elections for row in worst if row.unclean_elections} == {
        ("ledger", 0): 1,
        ("ledger", 1): 1,
        ("safe", 0): 1,
    }
