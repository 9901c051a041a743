"""Questions of ``dashboards/questions/controllers``."""

from __future__ import annotations

from collections import Counter

from tests.spark.dashboards.kraft_answers.asked import Asked, of


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
