"""Questions of ``dashboards/questions/brokers``."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from tests.spark.dashboards.kraft_answers.asked import Asked, of

#: An instant before any broker was killed, all replicas in their ISRs: before offset 159.
CALM: Final = datetime(2026, 11, 25, 10, 12, 5, tzinfo=UTC)
#: Just before broker 1 is killed, while broker 2 is away: between offsets 168 and 187.
WITHOUT_2: Final = datetime(2026, 11, 25, 10, 12, 16, 600_000, tzinfo=UTC)


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
