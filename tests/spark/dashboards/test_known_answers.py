"""Saved questions, against what was done to the brokers (`events.jsonl`) and what ZooKeeper's own log says."""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from dashboards.questions.question import questions
from jobs.ask.answer import rows_of
from tests.support.evidence.checkpoints import checkpoint_files
from tests.support.lakes.offsets import BENT, OffsetLake
from tests.support.lakes.shared import SharedLake

UNCLEAN, INFO, STOPPED, QUIET = "unclean-0.8.2.2", "unclean-3.9.1-info", "checkpoints-1.1.1", "quiet-0.8.2.2"
#: Brokers are gone at latest when their session has ended.
SESSION = timedelta(seconds=8)


@pytest.fixture(scope="module")
def ask(offset_lake: OffsetLake, named_lake: SharedLake):
    def asked(name: str, cluster: str, **given: Any) -> list[Any]:
        question = questions()[name]
        given |= {"cluster": offset_lake.ids[cluster]}
        bound = {parameter: given.get(parameter) for parameter in question.parameters}
        return rows_of(offset_lake.lake.spark, question, bound).collect()

    return asked


def done(folder: Path, what: str) -> list[dict[str, Any]]:
    """What was done of that kind, in order, with its instant as ``at``."""
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    return [event | {"at": datetime.fromtimestamp(event["ts"], UTC)} for event in events if event["what"] == what]


def utc(at: datetime) -> datetime:
    return at.replace(tzinfo=UTC)


def log(unpacked: Any, broker: int) -> str:
    """The server.log of a broker of the old capture."""
    return str((unpacked(UNCLEAN) / f"broker-{broker}" / "logs" / "server.log").read_text())


def departures(truth) -> Counter[tuple[str, int, int]]:
    """How often each replica left its partition's ISR."""
    left: Counter[tuple[str, int, int]] = Counter()
    for (topic, partition), states in truth.states_by_partition().items():
        for before, after in pairwise(states):
            left.update((topic, partition, replica) for replica in set(before.isr) - set(after.isr))
    return left


def final_leaders(truth) -> dict[tuple[str, int], int]:
    return {partition: states[-1].leader for partition, states in truth.states_by_partition().items()}


@pytest.mark.parametrize("capture", [UNCLEAN, STOPPED, INFO])
def test_brokers_lived_as_often_as_they_were_started_and_went_as_they_were_signalled(ask, unpacked, capture):
    folder, rows = unpacked(capture), ask("broker-lives", capture)
    assert Counter(row.broker_id for row in rows) == Counter(one["broker"] for one in done(folder, "start_broker"))
    signals = done(folder, "signal")
    ended = [row for row in rows if row.valid_to is not None]
    assert len(ended) == len(signals) > 1
    for signal in signals:
        (row,) = (one for one in ended if one.broker_id == signal["broker"])
        assert signal["at"] <= utc(row.valid_to) <= signal["at"] + SESSION
        stopped = signal["signal"] == "SIGTERM"
        assert row.end_reason == ("controlled_shutdown" if stopped else "registration_lost")
        assert row.ended_as in (("clean_stop",) if stopped else ("crash", None))
        (start,) = (
            one for one in done(folder, "start_broker") if one["broker"] == row.broker_id and one["at"] > signal["at"]
        )
        assert utc(row.valid_to) + timedelta(milliseconds=row.down_ms) > start["at"]


def test_the_common_broker_lost_what_it_was_killed_for(ask, unpacked):
    by_broker = {row.broker_id: row for row in ask("common-broker", UNCLEAN)}
    killed = Counter(one["broker"] for one in done(unpacked(UNCLEAN), "signal"))
    assert {broker: row.registrations_lost for broker, row in by_broker.items() if row.registrations_lost} == killed
    lost = [
        row
        for row in ask("elections", UNCLEAN)
        if row.previous_leader == 1 and row.election_kind == "offline_partition"
    ]
    assert by_broker[1].leaderships_lost == len([row for row in lost if row.leader != 1]) > 0


@pytest.mark.parametrize("capture", [UNCLEAN, INFO, QUIET])
def test_each_broker_leads_at_the_end_what_zookeeper_says(ask, truths, capture):
    last = {row.broker_id: row.led_partitions for row in ask("leaders-by-broker", capture)}
    leaders = final_leaders(truths[capture])
    assert {broker: led for broker, led in last.items() if led} == Counter(one for one in leaders.values() if one >= 0)


@pytest.mark.parametrize("capture", [UNCLEAN, INFO])
def test_who_does_not_lead_though_preferred_at_the_end(ask, truths, capture):
    lasting = {(row.topic, row.partition_id) for row in ask("non-preferred-leaders", capture) if row.valid_to is None}
    preferred = {(one.topic, one.partition_id): one.replicas[0] for one in truths[capture].assignments}
    leaders = final_leaders(truths[capture])
    assert lasting == {one for one, leader in leaders.items() if leader >= 0 and leader != preferred[one]}
    assert lasting


@pytest.mark.parametrize("capture", [UNCLEAN, INFO])
def test_replicas_left_isrs_as_often_as_zookeeper_says(ask, truths, capture):
    flaps = Counter[tuple[str, int, int]]()
    for row in ask("isr-flapping", capture):
        flaps[row.topic, row.partition_id, row.replica_id] += row.shrink_count
        assert row.shrink_count == row.shrinks_by_leader_count + row.shrinks_by_controller_count
    assert flaps == departures(truths[capture])
    assert flaps


@pytest.mark.parametrize("capture", [UNCLEAN, INFO])
def test_partitions_whose_isr_was_smaller_than_their_assignment_were_under_replicated(ask, truths, capture):
    rows = [row for row in ask("under-replicated", capture) if row.kind == "under_replicated"]
    replicas = {(one.topic, one.partition_id): len(one.replicas) for one in truths[capture].assignments}
    small = {one.partition for one in truths[capture].states if len(one.isr) < replicas[one.partition]}
    assert {(row.topic, row.partition_id) for row in rows} == small
    assert {row.high_watermark for row in rows} <= {"moved", "stalled", "unknown"}


def test_clients_learnt_of_a_new_leader_when_the_last_broker_had_cached_it(ask):
    moved = [row for row in ask("not-leader", UNCLEAN) if row.previous_leader != row.leader]
    assert moved
    assert {row.told_count for row in moved} <= {2, 3}, "of three brokers one was down"
    assert all(0 <= row.until_last_cached_ms < 30_000 for row in moved)
    assert {row.told_count for row in ask("not-leader", INFO)} == {0}, "no cache is logged at INFO"


def test_controllers_were_those_that_zookeeper_elected(ask, truths):
    for capture in (UNCLEAN, BENT):
        rows = ask("controller-trouble", capture)
        elected = [(one.controller_id, one.controller_epoch) for one in truths[capture].controllers]
        assert [(row.controller_id, row.controller_epoch) for row in rows] == elected
    assert any(
        "controller_request_not_sent" in each for row in ask("controller-trouble", UNCLEAN) for each in row.trouble
    )


def test_clocks_of_brokers_of_one_machine_agree(ask):
    for capture in (UNCLEAN, INFO, QUIET):
        rows = ask("clocks", capture)
        assert {row.broker_id for row in rows} == {1, 2, 3}
        for row in rows:
            assert row.clock_offset_lower_ms is None or row.clock_offset_lower_ms <= 1
            assert row.clock_offset_upper_ms is None or row.clock_offset_upper_ms >= -1
            assert not row.clock_correction_us


def test_what_a_level_hides_is_a_hole_and_a_quiet_capture_has_none(ask):
    coarse = [row for row in ask("trust", INFO) if row.coverage == "too_coarse"]
    assert {row.level_floor for row in coarse} == {"INFO"}
    assert {row.broker_id for row in coarse} == {1, 2, 3}
    assert {row.coverage for row in ask("trust", QUIET)} & {"too_coarse", "gap"} == set()


@pytest.mark.parametrize("capture", [UNCLEAN, INFO])
def test_what_was_acknowledged_and_cut_lies_between_the_bounds(ask, unpacked, capture):
    (acknowledged, *_) = done(unpacked(capture), "load_done")
    cuts = [row for row in ask("acks-losses", capture, topic="ledger") if row.replica_id == 1]
    assert {row.partition_id for row in cuts} == {0, 1}
    for row in cuts:
        lost = acknowledged["last_acked_offset"][f"ledger-{row.partition_id}"] + 1 - row.truncated_to
        assert row.committed_count_lower <= lost
        if row.committed_count_upper is not None and row.uncommitted_count_upper is not None:
            assert lost <= row.committed_count_upper + row.uncommitted_count_upper
    # up to 0.10 nothing proves how far the high watermark was: 0 is the bound then
    assert capture == UNCLEAN or max(row.committed_count_lower for row in cuts) > 100


def test_a_checkpoint_is_what_the_last_copy_of_the_file_says(ask, unpacked):
    said = {}
    for broker in (1, 2, 3):
        files = checkpoint_files(unpacked(UNCLEAN) / f"broker-{broker}")
        _, content = max(
            (at, content) for (_, name, at), content in files.items() if name == "replication-offset-checkpoint"
        )
        for line in content.decode().splitlines()[2:]:
            topic, partition, offset = line.split()
            said[topic, int(partition), broker] = int(offset)
    rows = {(row.topic, row.partition_id, row.replica_id): row for row in ask("checkpoint-health", UNCLEAN)}
    assert {place: row.checkpoint for place, row in rows.items()} == said
    assert all(row.behind_upper is None or row.behind_lower <= row.behind_upper for row in rows.values())


def test_committed_records_are_gone_where_the_unclean_leader_had_less(ask):
    for capture in (UNCLEAN, INFO):
        back = ask("high-watermark-back", capture)
        lost = {(row.topic, row.partition_id) for row in back if row.cause == "committed_records_lost"}
        assert (
            lost
            == {(row.topic, row.partition_id) for row in ask("unclean-elections", capture)}
            == {("ledger", 0), ("ledger", 1)}
        )
    quiet = ask("high-watermark-back", QUIET)
    assert {row.committed_lower for row in quiet if row.what == "truncation"} <= {0}, "of none is a loss proven"
    assert [row for row in quiet if row.severity in ("error", "warning")] == []


def test_at_the_end_followers_fetch_from_the_leader_that_zookeeper_names(ask, truths):
    rows = ask("fetchers", INFO)
    leaders = final_leaders(truths[INFO])
    lasting = [row for row in rows if row.valid_to is None and row.state == "fetching"]
    assert lasting
    assert all(row.leader != row.broker_id for row in rows if row.leader is not None)
    assert {(row.topic, row.partition_id): row.leader for row in lasting} == {
        place: leader for place, leader in leaders.items() if place[0] != "solo"
    }


def test_delays_of_all_brokers_are_those_of_each(ask):
    each, by_broker, by_day = (
        ask(name, UNCLEAN) for name in ("propagation", "propagation-by-broker", "propagation-by-day")
    )
    assert len(each) > 10
    assert sum(row.requests for row in by_broker) == len(each)
    assert {row.to_broker_id for row in by_broker} == {1, 2, 3}
    for row in by_broker:
        assert row.decided_to_applied_p50_ms is None or row.decided_to_applied_p50_ms <= row.decided_to_applied_max_ms
    assert sum(row.requests for row in by_day) <= len(each)
    refused = [row for row in each if row.outcome in ("ignored_stale", "failed", "not_received")]
    assert sum(row.not_applied for row in by_broker) == len(refused) == len(ask("ignored-requests", UNCLEAN))


def test_leaders_with_an_old_version_are_those_whose_logs_say_so(ask, unpacked):
    said = Counter[tuple[str, int, int]]()
    for broker in (1, 2, 3):
        for topic, partition in re.findall(
            r"Partition \[(\w+),(\d+)\] on broker \d+: Cached zkVersion", log(unpacked, broker)
        ):
            said[topic, int(partition), broker] += 1
    rows = ask("stale-leaders", UNCLEAN)
    assert {(row.topic, row.partition_id, row.broker_id): row.lines for row in rows} == said
    assert said
    assert not any(row.is_finding for row in rows), "it was told of the version within a second"
    assert ask("stale-leaders", QUIET) == []


def test_a_replica_kept_what_it_had_between_the_new_leader_s_end_and_its_own_high_watermark(ask, unpacked):
    loaded = dict(re.findall(r"Completed load of log ledger-(\d) with log end offset (\d+)", log(unpacked, 2)))
    cut = dict(re.findall(r"Truncating log ledger-(\d) to offset (\d+)", log(unpacked, 1)))
    kept = [(partition, 1, f"{loaded[str(partition)]}-{int(cut[str(partition)]) - 1}") for partition in (0, 1)]
    rows = ask("diverging-replicas", UNCLEAN, topic="ledger")
    assert [(row.partition_id, row.replica_id, row.offsets) for row in rows if row.offsets] == kept
    found = {(row.partition_id, row.replica_id) for row in rows if row.what == "replica_diverged_silently"}
    assert found == {(0, 1), (1, 1)}
    assert ask("diverging-replicas", INFO) == [], "since KIP-101 it is cut to where the new leader began"
    assert ask("diverging-replicas", QUIET) == []
