"""What cannot be said, from what the evidence covers."""

from __future__ import annotations

import pytest

from reconstruct.coverage.limits import CAUSES, AvailableEvidence, Hole, Limit, NodeRole, limits
from reconstruct.coverage.questions import QUESTIONS
from reconstruct.rule_book import RULES

LOGS = ("state_change_log", "controller_log", "server_log")
#: Everything that a broker may leave.
WHOLE = (*LOGS, "replication_offset_checkpoint", "leader_epoch_checkpoint", "log_segment", "server_properties")
FLOORS = {"state_change_log": "TRACE", "controller_log": "DEBUG", "server_log": "INFO"}
ZNODES = [AvailableEvidence(-1, "znode_snapshot"), AvailableEvidence(-1, "znode_transaction_log")]


def held(*brokers: int, without: tuple[str, ...] = ()) -> list[AvailableEvidence]:
    return [
        AvailableEvidence(b, kind, FLOORS.get(kind), 0, 1000) for b in brokers for kind in WHOLE if kind not in without
    ]


def told(found: list[Limit]) -> list[tuple[str, tuple[int, ...], str]]:
    return [(limit.cause, limit.brokers, limit.source_kind) for limit in found]


def test_where_everything_is_there_nothing_is_left_open():
    assert limits([1, 2], [*held(1, 2), *ZNODES], []) == []


def test_a_missing_log_is_told_once_for_all_brokers_that_lack_it():
    evidence = [*held(1), *held(2, 3, without=("state_change_log",)), *ZNODES]
    [limit] = limits([1, 2, 3], evidence, [])
    assert told([limit]) == [("missing", (2, 3), "state_change_log")]
    assert {"R20", "R21", "R22"} <= set(limit.rules)
    assert "R01" not in limit.rules
    assert 13 in limit.questions


def test_a_broker_without_any_log_is_told_in_one_sentence():
    found = limits([1, 4], [*held(1), *held(4, without=LOGS), *ZNODES], [])
    assert told(found) == [("no_logs", (4,), "logs")]
    assert set(found[0].rules) >= {"R20", "R11", "R38"}


def test_a_broker_that_is_only_named_lacks_everything():
    found = limits([1, 4], [*held(1), *ZNODES], [])
    assert [limit.source_kind for limit in found] == [
        "logs",
        "replication_offset_checkpoint",
        "leader_epoch_checkpoint",
        "log_end",
        "server_properties",
    ]
    assert {limit.brokers for limit in found} == {(4,)}


def test_probes_or_segments_tell_where_logs_ended():
    evidence = [*held(1, without=("log_segment",)), *ZNODES]
    assert told(limits([1], evidence, [])) == [("missing", (1,), "log_end")]
    assert limits([1], [*evidence, AvailableEvidence(1, "offset_probe")], []) == []


@pytest.mark.parametrize(
    ("versions", "is_told"), [(["0.8.2.2"], False), (["0.10.2.2", "0.11.0.3"], True), ([], True), (["3.9.1"], True)]
)
def test_leader_epochs_are_not_missed_where_kafka_kept_none(versions, is_told):
    evidence = [*held(1, without=("leader_epoch_checkpoint",)), *ZNODES]
    assert [limit.source_kind for limit in limits([1], evidence, [], versions)] == (
        ["leader_epoch_checkpoint"] if is_told else []
    )


def test_a_log_of_no_known_broker_is_not_called_missing():
    evidence = [*held(1, without=("server_log",)), AvailableEvidence(-1, "server_log", "INFO"), *ZNODES]
    assert told(limits([1, 2], [*evidence, *held(2)], [])) == [("unknown_broker", (), "server_log")]


@pytest.mark.parametrize(
    ("znodes", "kind"), [([], "znodes"), (ZNODES[:1], "znode_transaction_log"), (ZNODES[1:], None)]
)
def test_znodes_are_missed_by_the_cluster(znodes, kind):
    found = limits([1], [*held(1), *znodes], [])
    assert told(found) == ([("missing", (), kind)] if kind else [])


def test_a_metadata_log_is_there_in_place_of_znodes() -> None:
    quorum = AvailableEvidence(1, "metadata_log")
    assert limits([1, 2], [*held(1, 2), quorum], []) == []


#: What nodes of KRaft leave that have one role.
OF_A_CONTROLLER = ("controller_log", "server_log", "server_properties")
OF_A_BROKER = tuple(kind for kind in WHOLE if kind != "controller_log")
ROLES = [NodeRole(1, "broker"), NodeRole(101, "controller"), NodeRole(7, "broker"), NodeRole(7, "controller")]


def test_a_node_of_kraft_is_not_missed_what_its_role_never_writes() -> None:
    quorum = AvailableEvidence(1, "metadata_log")
    alone = held(101, without=tuple(kind for kind in WHOLE if kind not in OF_A_CONTROLLER))
    evidence = [*held(1, without=("controller_log",)), *alone, *held(7), quorum]
    assert limits([1, 7, 101], evidence, [], roles=ROLES) == []
    # what it does write is missed, of a node with both roles all, and all where only voters are known
    for kind in OF_A_CONTROLLER:
        left = [one for one in evidence if (one.broker_id, one.source_kind) != (101, kind)]
        assert told(limits([1, 7, 101], left, [], roles=ROLES)) == [("missing", (101,), kind)]
    for kind in OF_A_BROKER:
        left = [one for one in evidence if (one.broker_id, one.source_kind) not in ((1, kind), (7, kind))]
        [limit] = limits([1, 7, 101], left, [], roles=ROLES)
        assert (limit.cause, limit.brokers) == ("missing", (1, 7))
    voters = [one for one in ROLES if one.role == "controller"]
    missed = [limit.source_kind for limit in limits([1, 101], evidence, [], roles=voters)]
    assert missed == [
        "state_change_log",
        "controller_log",
        "replication_offset_checkpoint",
        "leader_epoch_checkpoint",
        "log_end",
    ]


def test_a_level_throughout_is_told_without_a_span_and_for_all_brokers():
    coarse = [AvailableEvidence(b, "state_change_log", "INFO", 10 * b, 900 + b) for b in (1, 2)]
    holes = [Hole("too_coarse", b, "state_change_log", 10 * b, 900 + b, "INFO") for b in (1, 2)]
    [limit] = limits([1, 2], [*held(1, 2, without=("state_change_log",)), *coarse, *ZNODES], holes)
    assert told([limit]) == [("too_coarse", (1, 2), "state_change_log")]
    assert (limit.level_floor, limit.from_ms, limit.to_ms) == ("INFO", None, None)
    assert "TRACE" in limit.why
    assert "R14" in limit.rules
    assert "R20" not in limit.rules


def test_a_level_for_a_while_is_told_with_its_span():
    holes = [Hole("too_coarse", 1, "state_change_log", 100, 300, "WARN")]
    [limit] = limits([1], [*held(1), *ZNODES], holes)
    assert (limit.from_ms, limit.to_ms) == (100, 300)
    assert "R20" in limit.rules


def test_a_log_in_a_stream_with_others_has_a_level_of_its_own():
    stream = [AvailableEvidence(1, "state_change_log", "INFO", 0, 10)]
    [limit] = limits([1], [*held(1, without=("state_change_log",)), *stream, *ZNODES], [])
    assert told([limit]) == [("too_coarse", (1,), "state_change_log")]


def test_gaps_of_several_brokers_at_one_time_are_one():
    holes = [Hole("gap", b, "server_log", 100, 300, reason="missing_number") for b in (2, 1)]
    holes.append(Hole("gap", 1, "server_log", 500, 600, reason="unread_file"))
    found = limits([1, 2], [*held(1, 2), *ZNODES], holes)
    assert [(limit.cause, limit.brokers, limit.reason, limit.from_ms) for limit in found] == [
        ("gap", (1, 2), "missing_number", 100),
        ("gap", (1,), "unread_file", 500),
    ]
    assert "R38" in found[0].rules


def test_a_silence_leaves_no_rule_open_by_itself_and_gives_way_to_a_gap():
    silence = Hole("silence", 1, "server_log", 100, 300)
    [limit] = limits([1], [*held(1), *ZNODES], [silence])
    assert (limit.cause, limit.rules, limit.questions) == ("silence", (), ())
    gap = Hole("gap", 1, "server_log", 150, 250, reason="unread_file")
    assert [limit.cause for limit in limits([1], [*held(1), *ZNODES], [silence, gap])] == ["gap"]


def test_every_rule_and_question_named_exists_and_every_question_is_named():
    holes = [Hole("too_coarse", 1, "state_change_log", 1, 2, "INFO")]
    evidence = [*held(1, without=()), AvailableEvidence(9, "server_log")]
    found = [*limits([1, 9], evidence, holes), *limits([1], [AvailableEvidence(1, kind) for kind in LOGS[:1]], [])]
    found += limits([1], [AvailableEvidence(1, "server_log"), ZNODES[0]], []) + limits(
        [5], [AvailableEvidence(1, "meta_properties")], []
    )
    assert {limit.cause for limit in found} <= set(CAUSES)
    assert {rule for limit in found for rule in limit.rules} <= set(RULES)
    assert {question for limit in found for question in limit.questions} == set(QUESTIONS)


def test_the_order_of_the_evidence_does_not_matter():
    evidence = [*held(1), *held(2, 3, without=("server_log",)), AvailableEvidence(-1, "znode_snapshot")]
    holes = [Hole("gap", 1, "server_log", 5, 6, reason="unread_file"), Hole("silence", 2, "controller_log", 7, 9)]
    assert limits([3, 2, 1], evidence[::-1], holes[::-1]) == limits([1, 2, 3], evidence, holes)


def test_what_a_file_out_of_order_leaves_open() -> None:
    found = limits([1], [*held(1), *ZNODES], [Hole("out_of_order", 1, "state_change_log", 100, 300)])
    (limit,) = [one for one in found if one.cause == "out_of_order"]
    assert (limit.brokers, limit.source_kind) == ((1,), "state_change_log")
    assert {"R12", "R15", "R16"} <= set(limit.rules)
    assert "order" in limit.why


def test_a_time_that_a_file_tells_twice_is_said_without_leaving_a_rule_open() -> None:
    found = limits([1], [*held(1), *ZNODES], [Hole("clock_set_back", 1, "server_log", 100, 300)])
    (limit,) = [one for one in found if one.cause == "clock_set_back"]
    assert (limit.brokers, limit.source_kind, limit.from_ms, limit.to_ms) == ((1,), "server_log", 100, 300)
    assert limit.rules == ()


def test_an_outage_of_the_capture_leaves_open_what_it_would_have_told():
    outages = [
        Hole("not_captured", 2, "offset_probe", 10.0, 20.0),
        Hole("not_captured", -1, "znode_snapshot", 10.0, 20.0),
    ]
    found = [one for one in limits([1, 2], [*held(1, 2), ZNODES[0]], outages) if one.cause == "not_captured"]
    assert [(one.source_kind, one.brokers, one.from_ms, one.to_ms) for one in found] == [
        ("log_end", (2,), 10.0, 20.0),
        ("znodes", (), 10.0, 20.0),
    ]
    assert all(one.rules and one.questions for one in found)


def test_znodes_that_were_not_captured_limit_nothing_where_zookeeper_s_log_is_there():
    outage = Hole("not_captured", -1, "znode_snapshot", 10.0, 20.0)
    assert limits([1, 2], [*held(1, 2), *ZNODES], [outage]) == []
