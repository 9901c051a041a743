"""Bounds of offsets and losses as the whole pipeline makes them, against the probes and the plain harness.

The probes, and all else that tells the truth, are left out of what is ingested; but one capture is ingested with its
probes once more, as another cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from ingest.lake.delta import Lake, OfClusters
from ingest.lake.tables.events import OFFSET_OBSERVATIONS
from ingest.lake.tables.gold import DATA_LOSS_BOUNDS, DIVERGENCES
from ingest.lake.tables.silver import REPLICA_OFFSET_TIMELINE
from ingest.shapes import SHAPES
from reconstruct.offsets.bound_steps import EVER_AFTER
from reconstruct.offsets.evidence import FILE_SOURCES, OffsetBounds, OffsetObservation
from reconstruct.offsets.losses import find_losses
from reconstruct.offsets.messages import PRINTED_OFFSETS, REPLICA_EVENTS, logged_replica_events, printed_offsets
from reconstruct.offsets.spark.context import covered_spans
from reconstruct.offsets.spark.messages import statements_of
from reconstruct.offsets.widest_bounds import widest_bounds
from reconstruct.time.instants import to_micros
from tests.support.captures.packed import Unpacker
from tests.support.lakes.offsets import PROBED, WITH_PROBES, OffsetLake
from tests.support.truth.offsets import (
    CaptureEvidence,
    Partition,
    Probe,
    bounds_of,
    measure,
    probes,
    read_evidence,
    unmet,
)

#: Each capture, and what it lost: first and last offset by partition, and whose log differed where afterwards.
CAPTURES: Final[dict[str, dict[Partition, tuple[int, int, list[str]]]]] = {
    "unclean-0.8.2.2": {("ledger", 0): (74, 305, ["74-288"]), ("ledger", 1): (74, 305, ["74-288"])},
    "unclean-3.9.1-info": {("ledger", 0): (68, 304, []), ("ledger", 1): (69, 304, [])},
    "checkpoints-1.1.1": {},
}
CAPTURES_OF: Final = {name: name for name in CAPTURES} | {WITH_PROBES: PROBED}
_BOUNDS: Final = (
    "replica_id",
    "valid_from",
    "valid_to",
    "high_watermark_lower",
    "high_watermark_upper",
    "log_end_offset_lower",
    "log_end_offset_upper",
    "log_start_offset_lower",
    "recovery_point_lower",
)


@dataclass(frozen=True)
class Made:
    """One cluster: its capture's folder with the truth in it, and what the pipeline made of what it was given."""

    folder: Path
    bounds: dict[Partition, list[OffsetBounds]]
    losses: dict[Partition, Any]
    sighted: dict[str, int]


@dataclass(frozen=True)
class Lakeful:
    lake: Lake
    made: dict[str, Made]
    ids: Mapping[str, str]


@pytest.fixture(scope="module")
def lakeful(offset_lake: OffsetLake, unpacked: Unpacker) -> Lakeful:
    lake = OfClusters(offset_lake.lake, tuple(offset_lake.ids.values()))
    timeline = lake.read(REPLICA_OFFSET_TIMELINE).orderBy("cluster_id", "replica_id", "sequence").collect()
    losses = lake.read(DATA_LOSS_BOUNDS).collect()
    sighted = lake.read(OFFSET_OBSERVATIONS).groupBy("cluster_id", "source").count().collect()
    result = {}
    for name, capture in CAPTURES_OF.items():
        cluster_id = offset_lake.ids[name]
        bounds: dict[Partition, list[OffsetBounds]] = {}
        for row in timeline:
            if row["cluster_id"] == cluster_id:
                bounds.setdefault((row["topic"], row["partition_id"]), []).append(_bounds(row))
        lost = [row for row in losses if row["cluster_id"] == cluster_id]
        assert len({(row["topic"], row["partition_id"]) for row in lost}) == len(lost)
        result[name] = Made(
            unpacked(capture),
            bounds,
            {(row["topic"], row["partition_id"]): row for row in lost},
            {row["source"]: row["count"] for row in sighted if row["cluster_id"] == cluster_id},
        )
    return Lakeful(lake, result, offset_lake.ids)


@pytest.fixture(scope="module")
def made(lakeful: Lakeful) -> dict[str, Made]:
    return lakeful.made


def _bounds(row: Any) -> OffsetBounds:
    values = {name: _micros(row[name]) if name.startswith("valid") else row[name] for name in _BOUNDS}
    return OffsetBounds(**values)


def _micros(instant: datetime | None) -> int | None:
    return None if instant is None else to_micros(instant.replace(tzinfo=UTC))


@pytest.mark.parametrize("name", CAPTURES)
def test_every_probe_lies_within_the_bounds_of_its_replica(made: dict[str, Made], name: str) -> None:
    result = measure(made[name].folder, made[name].bounds)
    print(f"{name}: HW width median {result.median_width:g}, of three intervals {result.median_ratio:.2f}")
    assert result.outside == []
    assert result.inside > 300
    assert result.median_ratio <= 1.1


@pytest.mark.parametrize("name", CAPTURES_OF)
def test_the_rows_are_those_of_the_plain_functions(made: dict[str, Made], name: str) -> None:
    plain = {
        partition: [replace(row, evidence=()) for row in rows]
        for partition, rows in bounds_of(_plain_evidence(made[name].folder, with_probes=name == WITH_PROBES)).items()
        if rows
    }
    assert made[name].bounds.keys() == plain.keys()
    for partition, rows in plain.items():
        assert made[name].bounds[partition] == rows, partition


def _plain_evidence(folder: Path, *, with_probes: bool = False) -> CaptureEvidence:
    """What the plain harness reads; but a copy was made before the next round of its broker's copies or of the znodes,
    also where that round found no such file."""
    found = read_evidence(folder, with_probes=with_probes)
    shared = {int(path.stem) for path in folder.glob("znodes/*.jsonl")}
    rounds = {
        int(broker.name.removeprefix("broker-")): sorted(
            shared | {int(path.name) for path in broker.glob("checkpoints/*/*")}
        )
        for broker in folder.glob("broker-*")
    }

    def bounded(observation: OffsetObservation) -> OffsetObservation:
        later = [ms * 1000 for ms in rounds[observation.replica_id] if ms * 1000 > observation.observed_at]
        is_copy = observation.source in FILE_SOURCES and observation.observed_at_upper is not None
        return replace(observation, observed_at_upper=later[0]) if is_copy and later else observation

    for partition, evidence in found.partitions.items():
        found.partitions[partition] = replace(evidence, observations=[bounded(s) for s in evidence.observations])
    return found


@pytest.mark.parametrize("name", CAPTURES)
def test_what_was_lost_is_found_and_nothing_else(made: dict[str, Made], name: str) -> None:
    found, expected = made[name].losses, CAPTURES[name]
    assert found.keys() == expected.keys()
    evidence = _plain_evidence(made[name].folder)
    for partition, (first, last, differ) in expected.items():
        loss = found[partition]
        assert (loss["cause"], loss["previous_leader"], loss["leader"]) == ("unclean_election", 1, 2)
        assert loss["lost_from_offset"] == first
        assert loss["lost_to_offset_lower"] <= last <= loss["lost_to_offset_upper"]
        assert loss["lost_count_lower"] >= 0.8 * (last - first + 1)
        assert (loss["diverging_replicas"], loss["diverging_offsets"]) == ([1] * len(differ), differ)
        (plain,) = find_losses(evidence.partitions[partition], bounds_of(evidence)[partition])
        names = ("lost_to_offset_lower", "lost_to_offset_upper", "lost_count_lower", "lost_count_upper")
        assert [loss[n] for n in names] == [getattr(plain, n) for n in names]
        assert _micros(loss["event_at"]) == plain.event_at


@pytest.mark.parametrize("name", CAPTURES)
def test_an_unclean_election_says_what_the_offsets_prove_it_lost(lakeful: Lakeful, name: str) -> None:
    elections = (
        lakeful.lake.read(DIVERGENCES).where(f"rule_id = 'R08' AND cluster_id = '{lakeful.ids[name]}'").collect()
    )
    losses = lakeful.made[name].losses
    assert len(elections) == len(losses)
    for row in elections:
        loss = losses[row["topic"], row["partition_id"]]
        lost = f"at least {loss['lost_count_lower']} committed records were lost, at most {loss['lost_count_upper']}."
        assert (row["severity"], row["harm"]) == ("warning", "records_lost")
        assert row["explanation"].endswith(f" By the offsets {lost}")


class TestWithTheProbes:
    def test_every_answer_is_kept_and_is_an_observation_between_asking_and_answering(self, lakeful: Lakeful) -> None:
        observed = lakeful.lake.read(OFFSET_OBSERVATIONS).where("source = 'probe'").collect()
        assert {row["cluster_id"] for row in observed} == {WITH_PROBES}
        found = Counter(
            Probe(
                (row["topic"], row["partition_id"]),
                row["replica_id"],
                row["offset_kind"],
                row["offset"],
                _micros(row["observed_at"]) or 0,
                _micros(row["observed_at_upper"]) or 0,
                line=0,
            )
            for row in observed
        )
        assert found == Counter(replace(probe, line=0) for probe in probes(lakeful.made[WITH_PROBES].folder))

    def test_the_bounds_meet_at_every_probe(self, made: dict[str, Made]) -> None:
        with_probes, without = (made[name] for name in (WITH_PROBES, PROBED))
        assert measure(with_probes.folder, with_probes.bounds).outside == []
        assert unmet(with_probes.folder, with_probes.bounds) == []
        assert len(unmet(without.folder, without.bounds)) > 100

    def test_they_narrow_what_was_lost_and_accuse_of_nothing_else(self, made: dict[str, Made]) -> None:
        with_probes, without = (made[name].losses for name in (WITH_PROBES, PROBED))
        assert with_probes.keys() == without.keys()
        for partition, (first, last, _) in CAPTURES[PROBED].items():
            loss = with_probes[partition]
            assert loss["lost_from_offset"] == first
            assert loss["lost_to_offset_lower"] <= last <= loss["lost_to_offset_upper"]
            assert loss["lost_count_lower"] >= without[partition]["lost_count_lower"]


def test_offsets_are_sighted_in_logs_too(made: dict[str, Made]) -> None:
    for name in CAPTURES:
        sighted = made[name].sighted
        assert sighted["replication_offset_checkpoint"] > 100
        assert sighted["server_log"] > 10
    assert made["unclean-3.9.1-info"].sighted["state_change_log"] > 10


# --- without Spark ---------------------------------------------------------------------------------------------------


def test_no_record_that_says_something_of_offsets_is_passed_over() -> None:
    fields = {"topic": "t", "partition_id": "0", "offset": "1", "role": "leader", "leader": "1", "leader_epoch": "1"}
    fields |= {name: "1" for of_type in PRINTED_OFFSETS.values() for _, name in of_type}
    taken = {*PRINTED_OFFSETS, *REPLICA_EVENTS}
    for event_type in sorted({shape.event_type for shape in SHAPES}):
        said = [*printed_offsets(1, 0, "e", event_type, fields), *logged_replica_events(1, 0, "e", event_type, fields)]
        assert bool(said) is (event_type in taken), event_type


def test_a_number_that_kafka_cannot_have_says_nothing() -> None:
    def said(offset: str) -> int:
        fields = [("topic", "t"), ("partition_id", "0"), ("offset", offset)]
        record = {
            "cluster_id": "c",
            "file_id": "f",
            "record_id": "r",
            "source_kind": "server_log",
            "event_type": "log_truncated",
            "fields": fields,
            "speaker": 1,
            "at_us": 0,
        }
        return len(list(statements_of(record)))

    assert (said("7"), said("9" * 30)) == (1, 0)


def test_a_file_that_may_be_missing_ends_what_the_log_covers() -> None:
    second = 1_000_000
    rotated = [(0, 10 * second), (15 * second, 20 * second)]
    assert covered_spans(rotated, []) == [(0, EVER_AFTER)]
    assert covered_spans([*rotated, (500 * second, 600 * second)], [1 * second], told=[0]) == [
        (0, 20 * second),
        (500 * second, EVER_AFTER),
    ]


def test_a_process_of_which_the_log_has_no_line_ends_what_it_covers() -> None:
    assert covered_spans([(0, 10_000_000)], [1_000_000, 300_000_000], told=[0]) == [(0, 10_000_000)]


def test_the_hull_of_two_bounds_claims_what_both_prove() -> None:
    one = [OffsetBounds(1, 0, 10, high_watermark_lower=5, high_watermark_upper=9), OffsetBounds(1, 10, None, 7, 9)]
    other = [OffsetBounds(1, 4, None, high_watermark_lower=6, log_end_offset_lower=8)]
    assert widest_bounds(one, other) == [
        OffsetBounds(1, 4, 10, high_watermark_lower=5),
        OffsetBounds(1, 10, None, high_watermark_lower=6),
    ]
    assert widest_bounds(one, one) == one
    assert widest_bounds(one, []) == []
