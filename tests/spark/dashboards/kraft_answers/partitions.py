"""Questions of ``dashboards/questions/partitions``."""

from __future__ import annotations

from tests.spark.dashboards.kraft_answers.asked import END, Asked, of


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
