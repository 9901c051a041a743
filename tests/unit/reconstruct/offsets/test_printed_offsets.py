"""What lines print of offsets, as each release words them: high watermarks, log ends, where fetchers begin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from ingest.shapes import match
from ingest.shapes.broker_settings import BrokerSetting
from reconstruct.cluster.settings import Configuration
from reconstruct.model.versions import ANY_VERSION, KafkaVersion, VersionRange
from reconstruct.offsets import evidence as oe
from reconstruct.offsets.evidence import OffsetEvidence, OffsetObservation, ReplicaEvent, ReplicaEventKind
from reconstruct.offsets.fetch_offsets import with_fetch_offsets
from reconstruct.offsets.messages import logged_replica_events, printed_offsets

SECOND = 1_000_000
PARTITION = "kafka.cluster.Partition"
FETCHER = "kafka.server.ReplicaFetcherThread"
MANAGER = "kafka.server.ReplicaFetcherManager"


def printed(text: str, logger: str) -> list[tuple[str, int, str, int]]:
    """(topic, partition, offset kind, offset) of one line of broker 3's server.log."""
    matched = match("server_log", logger, text)
    assert matched is not None, text
    found = printed_offsets(3, SECOND, "line", matched.event_type, matched.fields)
    return [(*partition, seen.offset_kind, seen.offset) for partition, seen in found]


@pytest.mark.parametrize(
    ("text", "logger"),
    [
        ("Partition [orders,4] on broker 3: Highwatermark for partition [orders,4] updated to 1500", PARTITION),
        (
            "Partition [orders,4] on broker 3: Old hw for partition [orders,4] is 1500. New hw is 1400. All leo's are"
            " 1523,1400",
            PARTITION,
        ),
        (
            "Partition [orders,4] on broker 3: High watermark for partition [orders,4] updated to 1500 [1000 : 4096]",
            PARTITION,
        ),
        (
            "Partition [orders,4] on broker 3: Skipping update high watermark since Old hw 1500 [1000 : 4096] is larger"
            " than new hw 1400 [1000 : 96] for partition [orders,4]. All leo's are 1523 [1000 : 5000]",
            PARTITION,
        ),
        ("Partition [orders,4] on broker 3: High watermark updated to 1500 [1000 : 4096]", PARTITION),
        ("[Partition orders-4 broker=3] High watermark updated to 1500 [1000 : 4096]", PARTITION),
        (
            "[Partition orders-4 broker=3] Skipping update high watermark since new hw 1400 [0 : 96] is not larger than"
            " old hw 1500 [1000 : 4096].All LEOs are 1523 [1000 : 5000],1400 [0 : 96]",
            PARTITION,
        ),
        (
            "[Partition orders-4 broker=3] High watermark updated from (offset=1400 segment=[0:96]) to (offset=1500"
            " segment=[1000:4096])",
            PARTITION,
        ),
        (
            "[UnifiedLog partition=orders-4, dir=/d] Non-monotonic update of high watermark from (offset=1600,"
            " segment=[0:96]) to (offset=1500, segment=[0:90])",
            "kafka.log.UnifiedLog",
        ),
    ],
)
def test_a_leader_s_high_watermark_is_read_from_each_release_s_line(text: str, logger: str) -> None:
    assert printed(text, logger) == [("orders", 4, oe.HIGH_WATERMARK, 1500)]


@pytest.mark.parametrize(
    ("text", "logger"),
    [
        ("Truncating orders-4 to 1600 has no effect as the largest offset in the log is 1522.", "kafka.log.Log"),
        (
            "[UnifiedLog partition=orders-4, dir=/d] Truncating to 1600 has no effect as the largest offset in the log"
            " is 1522",
            "kafka.log.UnifiedLog",
        ),
        (
            "[ReplicaFetcher replicaId=3, leaderId=2, fetcherId=0] Reset fetch offset for partition orders-4 from 1523"
            " to current leader's latest offset 1510",
            FETCHER,
        ),
        (
            "[ReplicaFetcherThread-0-2], Exiting because log truncation is not allowed for partition orders-4, Current"
            " leader 2's latest offset 1510 is less than replica 3's latest offset 1523",
            FETCHER,
        ),
        (
            "[ReplicaFetcher replicaId=3, leaderId=2, fetcherId=0] Exiting because log truncation is not allowed for"
            " partition orders-4, current leader's latest offset 1510 is less than replica's latest offset 1523",
            FETCHER,
        ),
        (
            "[ReplicaFetcher replicaId=3, leaderId=2, fetcherId=0] Based on follower's leader epoch, leader replied"
            " with an offset 1600 >= the follower's log end offset 1523 in orders-4. No truncation needed.",
            FETCHER,
        ),
    ],
)
def test_a_follower_s_log_end_is_read_where_it_is_to_be_cut(text: str, logger: str) -> None:
    assert printed(text, logger) == [("orders", 4, oe.LOG_END_OFFSET, 1523)]


@pytest.mark.parametrize(
    "text",
    [
        "Log for partition orders-4 is marked as stray and renamed to /d/orders-4.8c6929e28d24-stray",
        "Log in /d/orders-4 marked stray and renamed to /d/orders-4.8c6929e28d24-stray",
    ],
)
def test_a_log_that_is_set_aside_is_the_replica_s_no_more(text: str) -> None:
    matched = match("server_log", "kafka.log.LogManager", text)
    assert matched is not None
    ((partition, event),) = logged_replica_events(3, SECOND, "line", matched.event_type, matched.fields)
    assert (partition, event.kind) == (("orders", 4), ReplicaEventKind.DELETED)


def test_a_copy_that_moves_between_directories_is_not_the_replica() -> None:
    text = (
        "[ReplicaAlterLogDirsThread-0]: Future replica for partition orders-4 reset its fetch offset from 1523 to"
        " current replica's latest offset 1510"
    )
    assert printed(text, "kafka.server.ReplicaAlterLogDirsThread") == []


@pytest.mark.parametrize(
    "text",
    [
        "[ReplicaFetcherManager on broker 3] Added fetcher for partitions List([[orders,4], initOffset 1523 to broker"
        " id:2,host:kafka2,port:9092] , [orders,5], initOffset 7 to broker id:1,host:kafka1,port:9092] )",
        "[ReplicaFetcherManager on broker 3] Added fetcher to broker BrokerEndPoint(id=2, host=kafka2:9092) for"
        " partitions Map(orders-4 -> (offset=1523, leaderEpoch=6), orders-5 -> (offset=7, leaderEpoch=6))",
        "[ReplicaFetcherManager on broker 3] Added fetcher to broker 2 for partitions HashMap(orders-4 ->"
        " InitialFetchState(Some(l4Sg4IrvRXSzJUeejx637Q),BrokerEndPoint(id=2, host=kafka2:9092),6,1523), orders-5 ->"
        " InitialFetchState(None,BrokerEndPoint(id=2, host=kafka2:9092),6,7))",
    ],
)
def test_each_partition_of_a_line_has_its_own_fetch_offset(text: str) -> None:
    assert printed(text, MANAGER) == [("orders", 4, oe.FETCH_OFFSET, 1523), ("orders", 5, oe.FETCH_OFFSET, 7)]


def follows(at: int, leader: int = 2, evidence_id: str = "") -> ReplicaEvent:
    return ReplicaEvent(
        3, ReplicaEventKind.FOLLOWS, at * SECOND, None, leader, evidence_id=evidence_id or f"added-{at}"
    )


ADDED = OffsetObservation(3, oe.FETCH_OFFSET, 1523, 9 * SECOND, source="log_record", evidence_id="added-9")
BEGAN = OffsetObservation(3, oe.EPOCH_START, 10, 0, leader_epoch=1, source="leader_epoch_checkpoint")


def read(
    version: VersionRange,
    *before: ReplicaEvent,
    lineage: Sequence[OffsetObservation] = (BEGAN,),
    truncates_on_fetch: bool | None = True,
) -> list[tuple[str, bool]]:
    """(offset kind, whether it is a minimum) of what the fetch offset of second 9 is taken for."""
    evidence = OffsetEvidence([ADDED, *lineage], [*before, follows(9)])
    protocol = {True: "2.7-IV2", False: "2.6"}
    known = (
        {}
        if truncates_on_fetch is None
        else {3: Configuration({BrokerSetting.PROTOCOL: [protocol[truncates_on_fetch]]})}
    )
    found = with_fetch_offsets(evidence, version, known).observations
    return [(seen.offset_kind, seen.is_minimum) for seen in found if seen.offset_kind != oe.EPOCH_START]


def exactly(text: str) -> VersionRange:
    return VersionRange.exactly(KafkaVersion.parse(text) or pytest.fail(text))


EXACT_END, END_AT_LEAST = [(oe.LOG_END_OFFSET, False)], [(oe.LOG_END_OFFSET, True)]
EXACT_MARK = [(oe.HIGH_WATERMARK, False)]


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("0.8.2.2", EXACT_END),
        ("0.10.2.2", EXACT_END),
        ("1.0.2", EXACT_END),
        ("1.1.0", EXACT_MARK),
        ("2.7.2", EXACT_MARK),
        ("2.8.0", EXACT_END),
        ("3.9.1", EXACT_END),
    ],
)
def test_what_a_fetch_offset_is_depends_on_the_version(version: str, expected: list[tuple[str, bool]]) -> None:
    assert read(exactly(version)) == expected


def test_since_2_8_it_is_the_high_watermark_under_an_older_protocol_and_at_most_the_end_without_an_epoch() -> None:
    since_2_8 = exactly("3.2.0")
    assert read(since_2_8, truncates_on_fetch=False) == EXACT_MARK
    assert read(since_2_8, truncates_on_fetch=None) == END_AT_LEAST
    assert read(since_2_8, lineage=()) == END_AT_LEAST
    assert read(since_2_8, lineage=[replace(BEGAN, offset=1523)]) == END_AT_LEAST
    cut = ReplicaEvent(3, ReplicaEventKind.TRUNCATED, 20 * SECOND, 10)
    assert read(since_2_8, cut) == END_AT_LEAST


def test_of_versions_with_different_meanings_it_says_nothing() -> None:
    assert read(ANY_VERSION) == []
    assert read(VersionRange(KafkaVersion((2, 4)), KafkaVersion((3, 0)))) == []


def test_a_fetcher_that_is_added_again_from_the_same_leader_goes_on_where_it_was() -> None:
    """AbstractFetcherManager.resizeThreadPool: num.replica.fetchers was changed."""
    assert read(exactly("2.3.1"), follows(4)) == []
    assert read(exactly("3.9.1"), follows(4)) == END_AT_LEAST
    started = ReplicaEvent(3, ReplicaEventKind.STARTED, 6 * SECOND)
    assert read(exactly("2.3.1"), follows(4), started) == EXACT_MARK
    assert read(exactly("2.3.1"), follows(4, leader=1)) == EXACT_MARK


def test_why_a_log_is_cut_is_read_from_its_lines() -> None:
    said = {
        "[ReplicaFetcher replicaId=3, leaderId=2, fetcherId=0] Truncating partition orders-4 with"
        " TruncationState(offset=1510, completed=true) due to local high watermark 1510": "high_watermark",
        "[ReplicaFetcher replicaId=3, leaderId=2, fetcherId=0] Truncating partition orders-4 with"
        " TruncationState(offset=1510, completed=true) due to leader epoch and offset EpochEndOffset(errorCode=0,"
        " partition=4, leaderEpoch=5, endOffset=1510)": "leader_epoch",
        "[ReplicaFetcher replicaId=3, leaderId=2, fetcherId=0] Based on replica's leader epoch, leader replied with an"
        " unknown offset in orders-4. The initial fetch offset 1510 will be used for truncation.": "high_watermark",
        "[ReplicaFetcher replicaId=3, leaderId=2, fetcherId=0] Reset fetch offset for partition orders-4 from 1523 to"
        " current leader's latest offset 1510": "leader_log_end",
        "[ReplicaFetcher replicaId=3, leaderId=2, fetcherId=0] Reset fetch offset for partition orders-4 from 1523 to"
        " current leader's start offset 1600": "leader_log_start",
        "[ReplicaFetcher replicaId=3, leaderId=2, fetcherId=0] Truncating orders-4 to offset 1510 below high watermark"
        " 1515": None,
    }
    for text, cause in said.items():
        matched = match("server_log", FETCHER, text)
        assert matched is not None, text
        events = [event for _, event in logged_replica_events(3, 1, "x", matched.event_type, matched.fields)]
        assert [event.cause for event in events] == [cause], text


@pytest.mark.parametrize(
    ("renamed", "ends"), [("", [7]), (".0af3-delete", []), (".0af3-stray", []), (".0af3-future", [])]
)
def test_a_log_that_is_not_in_use_says_nothing_of_the_replica(renamed: str, ends: list[int]) -> None:
    text = f"Completed load of log orders-4{renamed} with log end offset 7"
    assert [offset for *_, kind, offset in printed(text, "kafka.log.Log") if kind == oe.LOG_END_OFFSET] == ends
