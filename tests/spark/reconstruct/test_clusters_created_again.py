"""Clusters that ended at one instant and were created again in the same logs: nobody is accused of what the end cut
off, and nobody was registered all the time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from ingest.lake.tables.gold import DIVERGENCES, INCIDENTS
from ingest.lake.tables.silver import BROKER_LIVENESS_TIMELINE
from tests.support.lakes.again import Again, clusters
from tests.support.lakes.shared import SharedLake

#: The first test may pay for the lake that all share.
pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Again]:
    return {each.cluster_id: each for each in clusters(Path(tmp_path_factory.mktemp("again")))}


def rows_of(lake: SharedLake, spec: Any, given: dict[str, Again]) -> list[Any]:
    rows = lake.lake.read(spec).where(F.col("cluster_id").isin(*given))
    return rows.collect()


def test_nobody_is_accused_of_what_the_end_cut_off(created_again: SharedLake, given: dict[str, Again]) -> None:
    """The captures themselves are without a finding above info, but for those of what is true of them."""
    true_of = ("again-unclean", "again-checkpoints")
    found = [
        (row.cluster_id, row.severity, row.divergence_type, row.explanation)
        for row in rows_of(created_again, DIVERGENCES, given)
        if row.severity != "info" and not row.cluster_id.startswith(true_of)
    ]
    assert found == []


def test_every_broker_was_away_between(created_again: SharedLake, given: dict[str, Again]) -> None:
    rows = created_again.lake.read(BROKER_LIVENESS_TIMELINE).select(
        "cluster_id", "broker_id", F.unix_micros("valid_from").alias("start"), F.unix_micros("valid_to").alias("end")
    )
    spans = rows.where(F.col("cluster_id").isin(*given)).collect()
    assert {row.cluster_id for row in spans if row.start >= given[row.cluster_id].begins_at} == set(given)
    late = {row for row in spans if row.start < given[row.cluster_id].begins_at}
    assert [row for row in late if row.end is None or row.end > given[row.cluster_id].begins_at + 60_000_000] == []


def test_the_end_is_an_incident(created_again: SharedLake, given: dict[str, Again]) -> None:
    told = {row.cluster_id for row in rows_of(created_again, INCIDENTS, given)}
    assert told == set(given)
