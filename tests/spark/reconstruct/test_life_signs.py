"""Signs of life around the ends of registrations, and those that a run takes from the one before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pytest
from pyspark.sql import DataFrame, SparkSession

from ingest.lake.delta import Lake
from ingest.lake.tables.kept import LIFE_SIGNS
from ingest.shapes.broker_settings import BrokerSetting
from reconstruct.cluster.evidence import BrokerFact, ClusterFacts
from reconstruct.cluster.settings import OwnSettings
from reconstruct.cluster.spark.life_signs import KeptSigns, add_life_signs, told_lines
from reconstruct.time.instants import to_micros
from tests.support.lakes.rows import at

Line = tuple[int, float, str, dict[str, str]]
Logs = tuple[Sequence[Line], Sequence[Line], Sequence[Line]]
_EVENTS: Final = (
    "cluster_id string, broker_id int, corrected_time timestamp, record_id string, event_type string,"
    " fields map<string,string>, cause string"
)
_WRITES: Final = (
    "cluster_id string, change string, written_by_broker_id int, changed_at timestamp, evidence array<string>"
)
_TO_1: Final = {"leader": "1"}
#: Of state-change logs, controllers' logs and server logs.
LOGS: Final[Logs] = (
    [(1, 20, "other", {}), (1, 90, "other", {}), (2, 99.5, "other", {})],
    [(1, 98, "other", {}), (1, 149, "other", {}), (1, 151, "other", {})],
    [
        (1, 95, "controlled_shutdown_started", {}),
        (2, 30, "broker_unreachable", _TO_1),
        (2, 99, "broker_unreachable", _TO_1),
        (1, 99, "broker_unreachable", {"leader": "2"}),
        (2, 96, "fetch_failed", _TO_1 | {"error": "Connection to 1 was disconnected before the response was read"}),
        (2, 97, "fetch_failed", _TO_1 | {"error": "java.nio.channels.ClosedSelectorException."}),
    ],
)
NONE: Final[Logs] = ([], [], [])
OF_LINES: Final = {
    (1, "line", "controlled_shutdown_started@95"),  # the last before its silence, half a timeout before the end
    (1, "line", "broker_unreachable@99"),  # its own line, about another broker
    (1, "line", "other@149"),
    (1, "leaving", "controlled_shutdown_started@95"),
    (1, "controlled_shutdown_started", "controlled_shutdown_started@95"),
    (1, "unreachable", "fetch_failed@96"),
    (1, "unreachable", "broker_unreachable@99"),
}
WRITTEN: Final = (1, "written", "z")


def micros(second: float) -> int:
    return to_micros(at(second))


def registered(until: float = 100, again: float | None = None) -> ClusterFacts:
    """Broker 1, which was registered from 0 s on, expired, and started again at 150 s; ``again`` is when it registered
    then, which it is to this day."""
    facts = ClusterFacts(own_settings=OwnSettings({1: {BrokerSetting.SESSION_TIMEOUT: ["6000"]}}))
    facts.brokers = [
        BrokerFact(1, "registered", micros(0), "r1", czxid=1),
        BrokerFact(1, "unregistered", micros(until), "u1", czxid=1, at_upper=micros(until)),
    ]
    if again is not None:
        facts.brokers.append(BrokerFact(1, "registered", micros(again), "r2", czxid=2))
    facts.process_starts = [(1, micros(-1), "s1"), (1, micros(150), "s2")]
    return facts


def frames(spark: SparkSession, logs: Logs) -> list[DataFrame]:
    def made(lines: Sequence[Line]) -> DataFrame:
        rows = [("c", broker, at(when), f"{kind}@{when}", kind, fields, None) for broker, when, kind, fields in lines]
        return spark.createDataFrame(rows, _EVENTS)

    return [made(lines) for lines in logs]


def found(facts: ClusterFacts, lines: list[DataFrame], kept: KeptSigns | None = None) -> set[tuple[int, str, str]]:
    spark = lines[0].sparkSession
    znodes = spark.createDataFrame([("c", "written", 1, at(97.5), ["z"])], _WRITES)
    add_life_signs({"c": facts, "other": ClusterFacts()}, *lines, znodes, kept)
    assert len(facts.life_signs) == len(set(facts.life_signs)), "each once"
    return {(sign.broker_id, sign.kind, sign.evidence_id) for sign in facts.life_signs}


def test_signs_of_life_are_gathered_around_the_end_of_a_registration(spark: SparkSession) -> None:
    assert found(registered(), frames(spark, LOGS)) == OF_LINES | {WRITTEN}


def unread(spark: SparkSession) -> list[DataFrame]:
    """Logs that fail whoever goes through them."""
    return [rows.where("raise_error('read') IS NULL") for rows in frames(spark, LOGS)]


@pytest.fixture
def after_a_run(spark: SparkSession, lake: Lake) -> Lake:
    lake.ensure([LIFE_SIGNS])
    assert found(registered(), frames(spark, LOGS), KeptSigns(lake, lambda: None)) == OF_LINES | {WRITTEN}
    return lake


def since(lake: Lake, changed: Logs) -> KeptSigns:
    """What was kept, where these lines came or went since."""
    return KeptSigns(lake, lambda: told_lines(*frames(lake.spark, changed)))


@pytest.mark.parametrize(
    "changed",
    [
        NONE,
        ([], [], [(2, 30, "other", {})]),  # another broker's
        ([(1, 151, "other", {})], [], []),  # of the process after it
        ([], [], [(2, 39, "broker_unreachable", _TO_1)]),  # earlier than a minute before the end
        ([], [], [(2, 101, "broker_unreachable", _TO_1)]),  # after it
    ],
)
def test_lines_are_not_gone_through_where_none_came_that_an_end_has_to_do_with(
    after_a_run: Lake, changed: Logs
) -> None:
    lines = unread(after_a_run.spark)
    with pytest.raises(Exception, match="read"):
        found(registered(), lines)
    assert found(registered(), lines, since(after_a_run, changed)) == OF_LINES | {WRITTEN}


@pytest.mark.parametrize(
    ("changed", "more"),
    [
        (([(1, 99.5, "other", {})], [], []), {(1, "line", "other@99.5")}),
        (([], [], [(1, 152, "logs_loading", {})]), {(1, "starts", "logs_loading@152")}),
        (([], [], [(2, 98, "broker_unreachable", _TO_1)]), {(1, "unreachable", "broker_unreachable@98")}),
    ],
)
def test_a_line_that_came_is_looked_at_with_all_others_and_kept(
    after_a_run: Lake, changed: Logs, more: set[tuple[int, str, str]]
) -> None:
    logs = tuple([*before, *came] for before, came in zip(LOGS, changed, strict=True))
    assert len(logs) == 3
    now = found(registered(), frames(after_a_run.spark, logs), since(after_a_run, changed))
    assert more <= now
    assert now == found(registered(), frames(after_a_run.spark, logs))
    assert found(registered(), unread(after_a_run.spark), since(after_a_run, NONE)) == now


def test_another_end_is_looked_for_anew(after_a_run: Lake) -> None:
    lines = frames(after_a_run.spark, LOGS)
    now = found(registered(until=98.5), lines, since(after_a_run, NONE))
    assert now == found(registered(until=98.5), lines)
    assert now != OF_LINES | {WRITTEN}


def test_that_there_was_no_sign_is_kept_too(spark: SparkSession, lake: Lake) -> None:
    lake.ensure([LIFE_SIGNS])
    assert found(registered(), frames(spark, NONE), KeptSigns(lake, lambda: None)) == {WRITTEN}
    assert found(registered(), unread(spark), since(lake, NONE)) == {WRITTEN}


def test_what_comes_after_the_next_registration_is_not_gone_through(spark: SparkSession, lake: Lake) -> None:
    """Though that one has not ended."""
    lake.ensure([LIFE_SIGNS])
    logs = (*LOGS[:2], [*LOGS[2], (1, 170, "logs_loading", {})])
    assert found(registered(again=160), frames(spark, logs), KeptSigns(lake, lambda: None)) == OF_LINES | {WRITTEN}
    assert found(registered(again=160), unread(spark), since(lake, ([], [], logs[2][-1:]))) == OF_LINES | {WRITTEN}
    assert (1, "starts", "logs_loading@170") in found(registered(), frames(spark, logs))
