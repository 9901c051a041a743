"""Every saved question, asked of a cluster without ZooKeeper.

What is expected was read off the raw records of the metadata log (an offset stands for its record: see
``kafka-dump-log`` or ``Recorded.records``), the brokers' lines, and what the scenario did to the cluster; not off what
the program answers. The scenario is ``lifecycle`` of the lab on 4.3.1: see ``docs/lab.md``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from pyspark.sql import Row

from dashboards.questions.question import questions
from dashboards.sections.coverage import limits
from dashboards.source import Limits, Source
from jobs.ask.answer import rows_of
from jobs.sql.names import LakeNames
from reconstruct.time.instants import to_datetime
from tests.support.budget import IS_HARD
from tests.support.lakes.kraft import WHOLE, Recorded
from tests.support.lakes.shared import SharedLake

#: An instant before any broker was killed, all replicas in their ISRs: before offset 159.
CALM: Final = datetime(2026, 11, 25, 10, 12, 5, tzinfo=UTC)
#: Just before broker 1 is killed, while broker 2 is away: between offsets 168 and 187.
WITHOUT_2: Final = datetime(2026, 11, 25, 10, 12, 16, 600_000, tzinfo=UTC)
#: What server.log says that was cut off: of orders-2 what only broker 3 had when it was stopped.
TRUNCATED: Final = {("orders", 2, 3, 519), ("ledger", 0, 1, 82), ("ledger", 1, 1, 82)}
END: Final = datetime(2026, 11, 25, 10, 12, 47, tzinfo=UTC)
#: What is asked in every run: what only a quorum has, and what its records have to tell in place of znodes.
EVERY_RUN: Final = frozenset(
    [
        "active-controllers",
        "broker-lives",
        "clocks",
        "deletions",
        "elections",
        "fenced-brokers",
        "findings",
        "isr-changes",
        "leader-at",
        "metadata-images",
        "missing-voters",
        "non-preferred-leaders",
        "offline-partitions",
        "partition-story",
        "propagation",
        "quorum",
        "reassignments",
        "topics-created-again",
        "two-brokers-down",
        "unclean-elections",
    ]
)


class Asked:
    """The lake's answers, and the recording."""

    def __init__(self, lake: SharedLake) -> None:
        self._spark = lake.lake.spark
        self.recorded = Recorded(lake.folders[WHOLE])

    def __call__(self, name: str, **given: Any) -> list[Any]:
        question = questions()[name]
        bound = dict.fromkeys(question.parameters) | given | {"cluster": WHOLE}
        return [Row(**_aware(row.asDict())) for row in rows_of(self._spark, question, bound).collect()]

    def at(self, offset: int) -> datetime:
        """When the record of that offset was appended."""
        return to_datetime(next(row.at for row in self.recorded.records if row.offset == offset))

    def done(self, what: str, **details: Any) -> datetime:
        """When the scenario did so."""
        return datetime.fromtimestamp(self.recorded.event(what, **details)["ts"], UTC)


def _aware(row: dict[str, Any]) -> dict[str, Any]:
    """Spark gives times as this process's local ones, without their zone."""
    return {name: value.astimezone(UTC) if isinstance(value, datetime) else value for name, value in row.items()}


@pytest.fixture(scope="module")
def ask(kraft_lake: SharedLake) -> Asked:
    LakeNames(kraft_lake.lake.spark, kraft_lake.lake.root).name()
    return Asked(kraft_lake)


ANSWERS: dict[str, Callable[[Asked], None]] = {}


def of(name: str) -> Callable[[Callable[[Asked], None]], Callable[[Asked], None]]:
    """Registers the function as the test of a question's answer."""

    def register(test: Callable[[Asked], None]) -> Callable[[Asked], None]:
        assert name not in ANSWERS
        ANSWERS[name] = test
        return test

    return register


def test_every_question_has_a_known_answer() -> None:
    assert set(ANSWERS) == set(questions())


@pytest.mark.parametrize("name", sorted(questions() if IS_HARD else EVERY_RUN))
def test_answer(name: str, ask: Asked) -> None:
    ANSWERS[name](ask)


def test_nothing_is_called_missing_that_a_node_never_writes(kraft_lake: SharedLake) -> None:
    gathered = limits.gather(Source(kraft_lake.lake, Limits(), (WHOLE,)))[WHOLE]
    said = limits.cannot_be_said(gathered, [1, 2, 3, 101, 102, 103], ["4.3.1"]).sentences
    missing = [one.text.partition(" was given")[0] for one in said if one.text.startswith("No ")]
    assert [text for text in missing if "controller.log" in text] == []
    # of a controller nothing but its server.properties
    assert [text for text in missing if "101" in text and "server.properties" not in text] == []


# --- availability -----------------------------------------------------------------------------------------------------


@of("isr-changes")
def isr_changes(ask: Asked) -> None:
    rows = [
        (row.changed_at, f"{row.topic}-{row.partition_id}", tuple(row.removed), tuple(row.added))
        for row in ask("isr-changes")
    ]
    expected = """
        65 payments-0 2 1 | 79 payments-0 3 - | 80 orders-0 3 - | 90 orders-1 3 - | 91 orders-2 3 -
        114 payments-0 - 3 | 115 orders-1 - 3 | 116 orders-0 - 3 | 117 orders-2 - 3
        159 ledger-1 2 - | 160 safe-0 2 - | 161 ledger-0 2 - | 165 orders-0 2 - | 166 orders-1 2 - | 167 orders-2 2 -
        187 payments-0 1 - | 188 ledger-0 1 - | 189 ledger-1 1 - | 190 safe-0 1 - | 191 orders-0 1 -
        192 orders-1 1 - | 193 orders-2 1 - | 225 ledger-0 - 2 | 226 ledger-1 - 2
        228 orders-0 - 2 | 229 orders-1 - 2 | 230 orders-2 - 2 | 246 safe-0 - 1 | 248 ledger-1 - 1 | 249 ledger-0 - 1
        251 payments-0 - 1 | 252 orders-0 - 1 | 253 orders-1 - 1 | 254 orders-2 - 1 | 256 safe-0 - 2"""
    cells = [cell.split() for cell in re.split(r"\s*[|\n]\s*", expected.strip())]
    ids = {"-": ()} | {str(one): (one,) for one in (1, 2, 3)}
    assert sorted(rows) == sorted((ask.at(int(at)), key, ids[out], ids[into]) for at, key, out, into in cells)


@of("offline-partitions")
def offline_partitions(ask: Asked) -> None:
    rows = ask("offline-partitions")
    offline = {(row.topic, row.partition_id): (row.valid_from, row.valid_to) for row in rows if row.kind == "offline"}
    since = ask.at(188)
    assert offline == {
        ("ledger", 0): (since, ask.at(225)),
        ("ledger", 1): (since, ask.at(226)),
        ("safe", 0): (since, ask.at(246)),
    }
    dead = {(row.topic, row.partition_id) for row in rows if row.kind == "no_live_leader"}
    # what the brokers led that were killed, until another led: the offset that made it leader
    dead = {f"{row.topic}-{row.partition_id}": row for row in rows if row.kind == "no_live_leader"}
    followed = {"orders-1": 166, "payments-0": 187, "orders-0": 191, "ledger-0": 225, "ledger-1": 226, "safe-0": 246}
    assert set(dead) == set(followed)
    for key, offset in followed.items():
        assert timedelta(0) <= dead[key].valid_to - ask.at(offset) < timedelta(seconds=1)
        killed = ask.done("signal", broker=2 if key == "orders-1" else 1, signal="SIGKILL")
        assert dead[key].earliest <= killed <= dead[key].valid_from


@of("under-replicated")
def under_replicated(ask: Asked) -> None:
    rows = [row for row in ask("under-replicated") if row.kind == "under_replicated"]
    assert {(row.topic, row.partition_id, row.valid_from, row.valid_to) for row in rows} == {
        ("payments", 0, ask.at(79), ask.at(114)),
        ("orders", 0, ask.at(80), ask.at(116)),
        ("orders", 1, ask.at(90), ask.at(115)),
        ("orders", 2, ask.at(91), ask.at(117)),
        ("ledger", 1, ask.at(159), ask.at(248)),
        ("safe", 0, ask.at(160), ask.at(256)),
        ("ledger", 0, ask.at(161), ask.at(249)),
        ("orders", 0, ask.at(165), ask.at(252)),
        ("orders", 1, ask.at(166), ask.at(253)),
        ("orders", 2, ask.at(167), ask.at(254)),
        ("payments", 0, ask.at(187), ask.at(251)),
    }


@of("not-leader")
def not_leader(ask: Asked) -> None:
    rows = ask("not-leader")
    assert rows
    # brokers of KRaft log nothing of their metadata caches
    assert {(row.told_count, row.last_cached_at) for row in rows} == {(0, None)}


# --- brokers ----------------------------------------------------------------------------------------------------------


@of("broker-lives")
def broker_lives(ask: Asked) -> None:
    rows = ask("broker-lives")
    assert [(row.broker_id, row.valid_from, row.valid_to, row.end_reason) for row in rows] == [
        (1, ask.at(21), ask.at(194), "registration_lost"),
        (2, ask.at(23), ask.at(168), "registration_lost"),
        (3, ask.at(22), ask.at(95), "controlled_shutdown"),
        (3, ask.at(111), None, None),
        (2, ask.at(224), None, None),
        (1, ask.at(245), None, None),
    ]
    ended = {(row.broker_id, row.end_reason): row.ended_as for row in rows if row.valid_to}
    # its next start finds one log directory cleanly stopped, and not the one that had failed
    assert ended[3, "controlled_shutdown"] is None
    assert {ended[1, "registration_lost"], ended[2, "registration_lost"]} == {"crash"}


@of("disk-failures")
def disk_failures(ask: Asked) -> None:
    rows = ask("disk-failures")
    assert {row.broker_id for row in rows} == {3}
    first = min(row.first_at for row in rows)
    assert ask.done("directory_failed") < first < ask.done("signal", broker=3)
    assert any("data-2" in (row.example or "") for row in rows)


@of("fenced-brokers")
def fenced_brokers(ask: Asked) -> None:
    rows = ask("fenced-brokers")
    assert [(row.offset, row.broker_id, row.what) for row in rows] == [
        (10, 1, "registered"),
        (15, 3, "registered"),
        (16, 2, "registered"),
        (21, 1, "unfenced"),
        (22, 3, "unfenced"),
        (23, 2, "unfenced"),
        (89, 3, "asked to be shut down"),
        (95, 3, "shut down"),
        (110, 3, "registered"),
        (111, 3, "unfenced"),
        (168, 2, "fenced"),
        (194, 1, "fenced"),
        (221, 2, "registered"),
        (224, 2, "unfenced"),
        (243, 1, "registered"),
        (245, 1, "unfenced"),
    ]
    taken = {row.offset: (row.leaders_lost, row.isr_lost) for row in rows}
    assert (taken[89], taken[168], taken[194]) == ((1, 2), (1, 3), (5, 7))


@of("leaders-by-broker")
def leaders_by_broker(ask: Asked) -> None:
    last = {row.broker_id: row.led_partitions for row in ask("leaders-by-broker")}
    # orders-0, -1, -2, payments-0, solo-0; ledger-0, -1; safe-0
    assert last == {3: 5, 2: 2, 1: 1}


@of("short-logs")
def short_logs(ask: Asked) -> None:
    rows = ask("short-logs")
    assert {(row.topic, row.partition_id, row.broker_id, row.at) for row in rows} == {
        ("ledger", 0, 2, ask.at(225)),
        ("ledger", 1, 2, ask.at(226)),
    }
    assert {"broker 2 led from offset 82 on after broker 1"} == {row.explanation for row in rows}


@of("stale-leaders")
def stale_leaders(ask: Asked) -> None:
    lines = [line for _, line in ask.recorded.lines("server.log", "Failed to alter ISR")]
    refused = [line for _, line in ask.recorded.lines("server.log", "INVALID_UPDATE_VERSION")]
    assert ask("stale-leaders") == [] == lines + refused


@of("two-brokers-down")
def two_brokers_down(ask: Asked) -> None:
    rows = ask("two-brokers-down", at=CALM)
    found = {(row.topic, row.partition_id, tuple(row.stopped)): (row.may_lead, row.next_leader) for row in rows}
    assert found == {
        ("orders", 0, (1, 2)): ("isr", 3),
        ("orders", 0, (1, 3)): ("isr", 2),
        ("orders", 0, (2, 3)): ("no_change", 1),
        ("orders", 1, (1, 2)): ("isr", 3),
        ("orders", 1, (1, 3)): ("no_change", 2),
        ("orders", 1, (2, 3)): ("isr", 1),
        ("orders", 2, (1, 2)): ("no_change", 3),
        ("orders", 2, (1, 3)): ("isr", 2),
        ("orders", 2, (2, 3)): ("isr", 1),
        ("payments", 0, (1, 3)): ("offline", None),
        ("ledger", 0, (1, 2)): ("offline", None),
        ("ledger", 1, (1, 2)): ("offline", None),
        ("safe", 0, (1, 2)): ("offline", None),
    }


@of("would-restart")
def would_restart(ask: Asked) -> None:
    rows = ask("would-restart", broker=1, at=WITHOUT_2)
    assert {(row.topic, row.partition_id): row.effect for row in rows} == {
        ("ledger", 0): "offline",
        ("ledger", 1): "offline",
        ("safe", 0): "offline",
        ("payments", 0): "new_leader",
        ("orders", 0): "new_leader",
        ("orders", 1): "fewer_replicas",
        ("orders", 2): "fewer_replicas",
    }
    assert {row.next_leader for row in rows} <= {None, 3}


# --- controllers ------------------------------------------------------------------------------------------------------


@of("active-controllers")
def active_controllers(ask: Asked) -> None:
    first, second = ask("active-controllers")
    assert (first.epoch, first.leader, first.led_from, first.next_leader) == (2, 103, ask.at(0), 102)
    assert (second.epoch, second.leader, second.led_to, second.first_offset) == (3, 102, None, 67)
    # it was killed, and started again
    assert first.end_reason == "process_ended"
    assert first.doubted_at > ask.done("signal", broker=103)


@of("controlled-shutdowns")
def controlled_shutdowns(ask: Asked) -> None:
    (row,) = ask("controlled-shutdowns")
    assert (row.broker_id, row.registration_ended_at, row.ended_as) == (3, ask.at(95), None)
    assert (row.moved, row.left_behind) == (1, [])


@of("controllers")
def controllers(ask: Asked) -> None:
    rows = ask("controllers")
    assert [(row.controller_epoch, row.controller_id, row.elected_at, row.left_leaderless_count) for row in rows] == [
        (2, 103, ask.at(0), 0),
        (3, 102, ask.at(67), 3),  # ledger-0 and -1, safe-0
    ]


@of("controller-procedures")
def controller_procedures(ask: Asked) -> None:
    assert ask("controller-procedures") == []  # what a quorum's controller does, its records say


@of("controller-trouble")
def controller_trouble(ask: Asked) -> None:
    rows = ask("controller-trouble")
    assert [(row.controller_epoch, row.controller_id) for row in rows] == [(2, 103), (3, 102)]


@of("metadata-images")
def metadata_images(ask: Asked) -> None:
    rows = {row.node_id: row for row in ask("metadata-images")}
    assert set(rows) == {1, 2, 3, 101, 102, 103}
    assert {row.snapshots_differing for row in rows.values()} == {0}
    for node_id, row in rows.items():
        folder = ask.recorded.folder / f"broker-{node_id}"
        ends = {int(path.name.partition("-")[0]) for path in folder.glob("__cluster_metadata-0/*-*.checkpoint")}
        assert row.snapshots_compared == len(ends - {0})
        assert row.applied_to >= max(ends)
        assert 0 <= row.lag_ms <= 1_000
        assert row.log_end == 257  # offset 256 is the last that is no NoOp
        assert row.fetched_behind == 0
    # 256 is of safe-0, of which 1 and 2 have replicas: 3 says nothing of it
    assert {node_id: rows[node_id].records_since for node_id in (1, 2, 3)} == {1: 0, 2: 0, 3: 1}


@of("missing-voters")
def missing_voters(ask: Asked) -> None:
    rows = ask("missing-voters")
    assert [(row.voter, row.is_missing, row.to_spare) for row in rows] == [
        (101, False, 1),
        (102, False, 1),
        (103, False, 1),
    ]
    # 103 by itself and 102, then 102 by 101 and itself
    assert [row.votes for row in rows] == [1, 2, 1]


@of("quorum")
def quorum(ask: Asked) -> None:
    rows = ask("quorum")
    assert [(row.epoch, row.leader, row.first_offset, sorted(row.granted_by)) for row in rows] == [
        (2, 103, 0, [102, 103]),
        (3, 102, 67, [101, 102]),
    ]


@of("propagation")
def propagation(ask: Asked) -> None:
    rows = ask("propagation")
    assert {row.request_kind for row in rows} == {"metadata_record"}
    assert all(0 <= row.decided_to_applied_ms < 1_500 for row in rows)
    told = {(row.sent_at, row.to_broker_id) for row in rows}
    # a leader for each of the new partitions, its followers; who took over from broker 1
    assert {(ask.at(26), 1), (ask.at(26), 2), (ask.at(135), 3), (ask.at(191), 3)} <= told
    # one that was down when it was decided learned of it when it came back: that is no delay
    assert (ask.at(191), 1) not in told


@of("propagation-by-broker")
def propagation_by_broker(ask: Asked) -> None:
    rows = ask("propagation-by-broker")
    counted = Counter(row.to_broker_id for row in ask("propagation"))
    assert {row.to_broker_id: row.requests for row in rows} == counted
    assert set(counted) == {1, 2, 3}


@of("ignored-requests")
def ignored_requests(ask: Asked) -> None:
    assert ask("ignored-requests") == []  # a controller of KRaft sends none


@of("zombie-controllers")
def zombie_controllers(ask: Asked) -> None:
    assert ask("zombie-controllers") == []  # 103 was killed: it came back as a follower


# --- evidence ---------------------------------------------------------------------------------------------------------


@of("cache-beliefs")
def cache_beliefs(ask: Asked) -> None:
    assert ask("cache-beliefs") == []


@of("clocks")
def clocks(ask: Asked) -> None:
    rows = ask("clocks")
    # all ran on one machine, whose clock the records have too
    assert {(row.clock_verdict, row.clock_reference) for row in rows} == {("agrees", -1)}
    assert {row.broker_id for row in rows} == {1, 2, 3, 101, 102, 103}
    assert all(row.clock_offset_lower_ms <= 0 <= row.clock_offset_upper_ms for row in rows)


@of("findings")
def findings(ask: Asked) -> None:
    rows = ask("findings")
    found = {(row.rule_id, row.topic, row.partition_id) for row in rows if row.severity != "info"}
    assert found == {(rule, "ledger", number) for rule in ("R08", "R35") for number in (0, 1)}


@of("migration")
def migration(ask: Asked) -> None:
    assert ask("migration") == []  # tests/spark/reconstruct/test_migration.py has one


@of("trust")
def trust(ask: Asked) -> None:
    kinds = {(row.source_kind, row.broker_id) for row in ask("trust") if row.coverage == "covered"}
    assert {("metadata_log", node) for node in (1, 2, 3, 101, 102, 103)} <= kinds


# --- incidents --------------------------------------------------------------------------------------------------------


@of("incidents")
def incidents(ask: Asked) -> None:
    worst = ask("incidents")[0]
    assert (worst.harm, worst.brokers) == ("records_lost", [1, 2])
    assert worst.unclean_elections_count == 3
    assert worst.lost_count_lower <= 2 * 221 <= worst.lost_count_upper


@of("incident-events")
def incident_events(ask: Asked) -> None:
    kinds = {row.event_kind for row in ask("incident-events")}
    assert {"broker_died", "broker_returned", "unclean_election", "records_lost", "offline"} <= kinds


# --- offsets ----------------------------------------------------------------------------------------------------------


@of("acks-losses")
def acks_losses(ask: Asked) -> None:
    rows = [row for row in ask("acks-losses") if row.truncated_to]
    assert {(row.topic, row.partition_id, row.replica_id, row.truncated_to) for row in rows} == TRUNCATED


@of("checkpoint-health")
def checkpoint_health(ask: Asked) -> None:
    rows = {(row.topic, row.partition_id, row.replica_id): row for row in ask("checkpoint-health")}
    # the last records acknowledged were at 351, 794 and 302
    assert {rows["ledger", 0, one].checkpoint for one in (1, 2)} == {352}
    assert rows["solo", 0, 3].checkpoint == 795
    assert {rows["safe", 0, one].checkpoint for one in (1, 2)} == {303}
    assert {row.behind_lower for row in rows.values()} == {0}


@of("diverging-replicas")
def diverging_replicas(ask: Asked) -> None:
    assert ask("diverging-replicas") == []  # each cut its log to where the leader's epoch began


@of("high-watermark-back")
def high_watermark_back(ask: Asked) -> None:
    rows = [row for row in ask("high-watermark-back") if row.what == "truncation" and row.truncated_to]
    assert {(row.topic, row.partition_id, row.replica_id, row.truncated_to) for row in rows} == TRUNCATED


@of("offsets-at")
def offsets_at(ask: Asked) -> None:
    rows = ask("offsets-at", topic="ledger", at=END)
    assert [(row.partition_id, row.replica_id) for row in rows] == [(0, 1), (0, 2), (1, 1), (1, 2)]
    for row in rows:
        assert (row.high_watermark_lower or 0) <= 352 <= (row.high_watermark_upper or 352)
        assert (row.log_end_offset_lower or 0) <= 352 <= (row.log_end_offset_upper or 352)


@of("unclean-elections")
def unclean_elections(ask: Asked) -> None:
    rows = {(row.topic, row.partition_id): row for row in ask("unclean-elections")}
    assert {key: (row.elected_at, row.leader) for key, row in rows.items()} == {
        ("ledger", 0): (ask.at(225), 2),
        ("ledger", 1): (ask.at(226), 2),
        ("safe", 0): (ask.at(246), 1),  # the last known leader, that had every record
    }
    for number in (0, 1):
        row = rows["ledger", number]
        # 82 to 302 had been acknowledged
        assert (row.lost_from_offset, row.lost_count_lower, row.lost_count_upper) == (82, 221, 221)
    assert not rows["safe", 0].lost_count_upper


# --- partitions -------------------------------------------------------------------------------------------------------


@of("deletions")
def deletions(ask: Asked) -> None:
    rows = ask("deletions")
    assert [(row.topic, row.partition_id, row.valid_from, row.valid_to, row.waiting_for) for row in rows] == [
        ("payments", number, ask.at(51), ask.at(51), []) for number in (0, 1)
    ]


@of("elections")
def elections(ask: Asked) -> None:
    rows = [row for row in ask("elections") if row.previous_leader is not None]
    assert [
        (row.elected_at, f"{row.topic}-{row.partition_id}", row.election_kind, row.previous_leader, row.leader)
        for row in rows
    ] == [
        (ask.at(65), "payments-0", "reassigned_partition", 2, 3),
        (ask.at(79), "payments-0", "offline_partition", 3, 1),  # its log directory failed
        (ask.at(91), "orders-2", "controlled_shutdown", 3, 1),
        (ask.at(118), "orders-2", "preferred_replica", 1, 3),
        (ask.at(166), "orders-1", "offline_partition", 2, 3),
        (ask.at(191), "orders-0", "offline_partition", 1, 3),
        (ask.at(187), "payments-0", "offline_partition", 1, 3),
        (ask.at(225), "ledger-0", "offline_partition", -1, 2),
        (ask.at(226), "ledger-1", "offline_partition", -1, 2),
        (ask.at(246), "safe-0", "offline_partition", -1, 1),
    ]
    assert [row.controller_id for row in rows] == [103, *[102] * 9]
    assert (rows[0].assigned_replicas, rows[2].live_brokers) == ([3, 1], [1, 2])


@of("fetchers")
def fetchers(ask: Asked) -> None:
    rows = [row for row in ask("fetchers", topic="ledger", partition=0) if row.state == "fetching"]
    assert [(row.broker_id, row.leader, row.fetch_offset) for row in rows] == [(2, 1, 0), (1, 2, 303)]


@of("leader-at")
def leader_at(ask: Asked) -> None:
    rows = ask("leader-at", at=END)
    assert [(f"{row.topic}-{row.partition_id}", row.leader, row.isr) for row in rows] == [
        ("ledger-0", 2, [1, 2]),
        ("ledger-1", 2, [1, 2]),
        ("orders-0", 3, [1, 2, 3]),
        ("orders-1", 3, [1, 2, 3]),
        ("orders-2", 3, [1, 2, 3]),
        ("payments-0", 3, [1, 3]),
        ("safe-0", 1, [1, 2]),
        ("solo-0", 3, [3]),
    ]


@of("non-preferred-leaders")
def non_preferred_leaders(ask: Asked) -> None:
    rows = ask("non-preferred-leaders")
    assert {(row.topic, row.partition_id, row.valid_from, row.valid_to) for row in rows} == {
        ("payments", 0, ask.at(61), ask.at(65)),
        ("payments", 0, ask.at(79), ask.at(187)),
        ("orders", 2, ask.at(91), ask.at(118)),
        ("orders", 1, ask.at(166), None),
        ("orders", 0, ask.at(191), None),
        ("ledger", 0, ask.at(225), None),
        ("ledger", 1, ask.at(226), None),
    }


@of("partition-story")
def partition_story(ask: Asked) -> None:
    rows = ask("partition-story", topic="safe", partition=0)
    records = [row for row in rows if row.source == "metadata log"]
    offsets = [f"offset {offset}" for offset in (133, 136, 139, 160, 190, 242, 246, 256)]
    assert [row.source_file for row in records] == offsets
    assert {"state-change.log", "server.log", "controller.log", "decided"} <= {row.source for row in rows}


@of("reassignments")
def reassignments(ask: Asked) -> None:
    (row,) = ask("reassignments")
    assert (row.topic, row.partition_id, row.valid_from, row.valid_to) == ("payments", 0, ask.at(61), ask.at(65))


@of("topics-created-again")
def topics_created_again(ask: Asked) -> None:
    first, second = ask("topics-created-again")
    assert (first.topic, first.topic_incarnation, first.valid_from) == (
        "payments",
        "6pjAus2LRvSfxma9mAIqlA",
        ask.at(45),
    )
    assert (second.topic, second.topic_incarnation, second.valid_from) == (
        "payments",
        "eHjFMAECSG2k7dTXQdqHdg",
        ask.at(59),
    )


# --- trends -----------------------------------------------------------------------------------------------------------


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


@of("worst-partitions")
def worst_partitions(ask: Asked) -> None:
    worst = ask("worst-partitions")
    assert (worst[0].topic, worst[0].partition_id) == ("safe", 0)  # the longest without a leader
    assert {(row.topic, row.partition_id): row.unclean_elections for row in worst if row.unclean_elections} == {
        ("ledger", 0): 1,
        ("ledger", 1): 1,
        ("safe", 0): 1,
    }
