"""At one instant, what we reconstruct is what Kafka's own tools print of the live cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import pytest

from jobs.lab.admin import Partition
from jobs.lab.machines.releases import RELEASES, Release
from jobs.lab.play import Played, play
from reconstruct.offsets.evidence import OffsetBounds
from reconstruct.partitions.case import Case
from reconstruct.time.instants import to_datetime
from tests.cluster.conftest import require_jars
from tests.cluster.kafka_tools import Described
from tests.cluster.live_lake import LiveLake, reconstruct_live
from tests.cluster.printed import HAS_LOG_DIRS, Printed, asks
from tests.cluster.processes import processes_of
from tests.support.evidence.partitions import plain_capture
from tests.support.truth.offsets import bounds_of, read_evidence

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]

Asked = tuple[Played, Printed]
Bounds = tuple[int | None, int | None]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Release], Asked]:
    """``asked(release)``: a cluster of the release that was asked by its own tools, played once for all tests."""

    @cache
    def played(release: Release) -> Asked:
        require_jars(release)
        printed = Printed()
        folder = tmp_path_factory.mktemp(release.version)
        made = play(asks(printed, release), release, folder, say=print)
        assert processes_of(folder) == {}
        return made, printed

    return played


@pytest.fixture(scope="module")
def tables(spark: Any, asked: Callable[[Release], Asked], tmp_path_factory: pytest.TempPathFactory) -> LiveLake[str]:
    played = {release.version: asked(release)[0] for release in RELEASES}
    return reconstruct_live(spark, tmp_path_factory.mktemp("asked"), played)


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.version)
def test_our_timelines_are_what_kafka_s_tools_print(release: Release, asked: Callable[[Release], Asked]) -> None:
    played, printed = asked(release)
    histories = plain_capture(played.capture).fold()
    assert {key: described(history, printed.at) for key, history in histories.items()} == printed.topics
    assert kept(histories, "under_replicated", printed.at) == printed.under_replicated
    assert kept(histories, "offline", printed.at) == printed.unavailable == {("solo", 0)}
    bounds = bounds_of(read_evidence(played.capture, with_probes=True))
    orders = {partition: rows for partition, rows in bounds.items() if partition[0] == "orders"}
    ours = {key: high_watermark(rows, printed.topics[key].leader, printed.at) for key, rows in orders.items()}
    assert ours == exactly(printed.high_watermarks)
    ends = {key: log_end(orders[key[1]], key[0], printed.at) for key in printed.log_ends}
    assert ends == exactly(printed.log_ends)
    assert len(ends) == 6
    lags = {key: lag for key, lag in printed.offset_lags.items() if key in ends}
    our_lags = {key: max(0, printed.high_watermarks[key[1]] - end) for key, end in printed.log_ends.items()}
    assert lags == (our_lags if release.number >= HAS_LOG_DIRS else {})
    assert printed.most_behind == 0


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.version)
def test_our_tables_are_what_kafka_s_tools_print(
    release: Release, asked: Callable[[Release], Asked], tables: LiveLake[str]
) -> None:
    _, printed = asked(release)
    then = f"timestamp '{to_datetime(printed.at).isoformat()}'"
    now = f"valid_from <= {then} AND (valid_to IS NULL OR {then} < valid_to)"
    states = {of(row): row for row in tables.rows("silver.leader_and_isr_timeline", release.version, now)}
    assigned = {
        of(row): tuple(row["replicas"]) for row in tables.rows("silver.assignment_timeline", release.version, now)
    }
    assert {
        key: Described(row["leader"], assigned[key], frozenset(row["isr"])) for key, row in states.items()
    } == printed.topics
    poor = tables.rows("gold.availability_intervals", release.version, now)
    assert {of(row) for row in poor if row["kind"] == "under_replicated"} == printed.under_replicated
    assert {of(row) for row in poor if row["kind"] == "offline"} == printed.unavailable
    offsets = {
        (row["replica_id"], of(row)): row for row in tables.rows("silver.replica_offset_timeline", release.version, now)
    }
    assert {
        key: ends_of(offsets[printed.topics[key].leader, key], "high_watermark") for key in printed.high_watermarks
    } == exactly(printed.high_watermarks)
    assert {key: ends_of(offsets[key], "log_end_offset") for key in printed.log_ends} == exactly(printed.log_ends)


def of(row: Any) -> Partition:
    return row["topic"], row["partition_id"]


def exactly(offsets: Mapping[Any, int]) -> dict[Any, Bounds]:
    """Bounds that meet."""
    return {key: (offset, offset) for key, offset in offsets.items()}


def ends_of(row: Any, name: str) -> Bounds:
    return row[f"{name}_lower"], row[f"{name}_upper"]


def described(history: Case, at: int) -> Described:
    """A partition as our timelines have it at one instant."""
    state = next(interval.value for interval in history.decided if interval.holds_at(at))
    assigned = next(interval.value for interval in history.assignments if interval.holds_at(at))
    return Described(state.leader, assigned.replicas, frozenset(state.isr))


def kept(histories: Mapping[Partition, Case], kind: str, at: int) -> set[Partition]:
    """The partitions that were unavailable in one way at one instant."""
    return {
        key
        for key, history in histories.items()
        for each in history.availability
        if each.kind == kind and each.start <= at and (each.end is None or at < each.end)
    }


def high_watermark(rows: Sequence[OffsetBounds], replica: int, at: int) -> Bounds:
    row = as_of(rows, replica, at)
    return row.high_watermark_lower, row.high_watermark_upper


def log_end(rows: Sequence[OffsetBounds], replica: int, at: int) -> Bounds:
    row = as_of(rows, replica, at)
    return row.log_end_offset_lower, row.log_end_offset_upper


def as_of(rows: Sequence[OffsetBounds], replica: int, at: int) -> OffsetBounds:
    return next(
        row
        for row in rows
        if row.replica_id == replica and row.valid_from <= at and (row.valid_to is None or at < row.valid_to)
    )
