"""Questions of ``dashboards/questions/availability``."""

from __future__ import annotations

import re
from datetime import timedelta

from tests.spark.dashboards.kraft_answers.asked import Asked, of


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
