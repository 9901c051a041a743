"""Questions of ``dashboards/questions/offsets``."""

from __future__ import annotations

from typing import Final

from tests.spark.dashboards.kraft_answers.asked import END, Asked, of

#: What server.log says that was cut off: of orders-2 what only broker 3 had when it was stopped.
TRUNCATED: Final = {("orders", 2, 3, 519), ("ledger", 0, 1, 82), ("ledger", 1, 1, 82)}


@of("acks-losses")
def acks_losses(ask: Asked) -> None:
    rows = [row for row in ask("acks-losses") if row.truncated_to]
    assert {(row.topic, row.partition_id, row.replica_id, row.truncated_to) for row in rows} == TRUNCATED


@of("lost-records")
def lost_records(ask: Asked) -> None:
    assert ask("lost-records") == []  # 221 were lost of each of two partitions, but no segment is in the capture


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
