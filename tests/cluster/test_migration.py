"""A cluster that leaves ZooKeeper (KIP-866), played to its end: one history of both worlds, and nobody is accused.

The truth is ZooKeeper's own transaction log up to the take-over, and the controllers' metadata logs from then on.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest

from dashboards.questions.question import questions
from ingest.lake.delta import Lake
from ingest.lake.tables import TABLES
from ingest.run.pipeline import IngestOptions, ingest_paths
from jobs.ask.answer import rows_of
from jobs.lab.machines.releases import BY_NAME
from jobs.lab.play import Played, play
from jobs.lab.scenarios.catalogue import SCENARIOS
from jobs.session.progress import silent
from reconstruct.findings.verdicts import Verdicts
from reconstruct.metadata_log.migration import judge_migration
from reconstruct.model.metadata_log.image import applied, replay
from reconstruct.model.metadata_log.values import Image, PartitionState, TopicState
from reconstruct.pipeline import reconstruct
from tests.cluster.conftest import require_jars
from tests.cluster.dump_log import differing_from_kafka
from tests.cluster.processes import processes_of
from tests.cluster.test_kraft_scenarios import nodes_of, not_known
from tests.support.metadata_log import rows_of as records_of
from tests.support.migration import migration_of
from tests.support.truth.decisions import read_truth

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]

VERSION: Final = "3.9.1"
#: States of a migration as records have them since 3.5: PRE_MIGRATION, MIGRATION, POST_MIGRATION.
STATES: Final = [2, 1, 3]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    require_jars(BY_NAME[VERSION])
    folder = tmp_path_factory.mktemp("migration")
    made = play(SCENARIOS["migration"], BY_NAME[VERSION], folder / "lab", say=print)
    assert processes_of(folder) == {}
    return made


@pytest.fixture(scope="module")
def lake(played: Played, spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Of all that the cluster left: what was captured, and ZooKeeper's own files."""
    made = Lake(spark, str(tmp_path_factory.mktemp("migrated") / "lake"))
    ingest_paths(made, [str(played.capture), str(played.truth / "zk-version-2")], IngestOptions(), silent)
    reconstruct(made, progress=silent)
    made.register()
    return made


def test_it_went_to_its_end(played: Played) -> None:
    records = {row.offset: row for row in records_of(nodes_of(played.truth)) if row.snapshot_end is None}
    states = [
        row.record.fields["zkMigrationState"]
        for _, row in sorted(records.items())
        if row.record_type == "ZkMigrationStateRecord"
    ]
    assert states == STATES


def test_records_and_snapshots_are_what_kafka_says(played: Played) -> None:
    records, snapshots, differing = differing_from_kafka(played.release, nodes_of(played.truth))
    assert (records > 500, snapshots > 3, differing) == (True, True, [])


def test_what_the_quorum_took_over_and_wrote_on_is_equal(played: Played) -> None:
    migration, topics = migration_of(played.truth)
    counts: Counter[Any] = Counter()
    for topic, rows in topics.items():
        verdicts = Verdicts()
        judge_migration(topic, rows, migration, verdicts)
        assert verdicts.findings == []
        # created when it was over: no znode is of it
        assert set(verdicts.counts) == {("R60", "cannot_be_judged" if topic == "refunds" else "kept")}
        counts += verdicts.counts
    assert counts["R60", "kept"] > 30


def test_nearly_every_line_has_a_shape(played: Played) -> None:
    assert not_known(played) == []


def test_nobody_is_accused(lake: Lake) -> None:
    """But for what is so: payments has two replicas and wants both, while brokers are restarted."""
    found = lake.read(TABLES["gold.divergences"]).where("severity <> 'info'").collect()
    true = ("R39", "payments")
    wrong = [row for row in found if (row["rule_id"], row["topic"]) != true or "by hand" in row["explanation"]]
    assert [f"{row['rule_id']} {row['divergence_type']}: {row['explanation']}" for row in wrong] == []
    assert lake.read(TABLES["silver.topic_incarnations"]).groupBy("cluster_id").count().count() == 1


def test_each_state_is_one_that_znodes_or_records_had(played: Played, lake: Lake) -> None:
    by_znodes, by_records = read_truth(played.truth), _states(played.truth)
    migration, _ = migration_of(played.truth)
    expected: dict[tuple[str, int], list[tuple[int, int, frozenset[int]]]] = {}
    for key, states in by_znodes.states_by_partition().items():
        expected[key] = [
            (s.state[0], s.state[1], s.state[2]) for s in states if s.write.zxid < migration.taken_over_zxid
        ]
    for key, more in by_records.items():
        expected.setdefault(key, []).extend(more)
    found: dict[tuple[str, int], list[tuple[int, int, frozenset[int]]]] = {}
    for row in lake.read(TABLES["silver.leader_and_isr_timeline"]).orderBy("sequence").collect():
        key = (row["topic"], row["partition_id"])
        found.setdefault(key, []).append((row["leader"], row["leader_epoch"], frozenset(row["isr"])))
    assert {key: _without_repeats(of) for key, of in found.items()} == {
        key: _without_repeats(of) for key, of in expected.items()
    }


def test_the_question_tells_of_its_steps(played: Played, lake: Lake) -> None:
    question = questions()["migration"]
    (row,) = rows_of(lake.spark, question, dict.fromkeys(question.parameters)).collect()
    assert row["differing"] == 0
    assert row["taken_over_by"] in (101, 102, 103)
    assert row["pre_migration_at"] < row["migrated_at"] < row["finished_at"]


def _states(truth: Path) -> dict[tuple[str, int], list[tuple[int, int, frozenset[int]]]]:
    records = {row.offset: row for row in records_of(nodes_of(truth)) if row.snapshot_end is None}
    found: dict[tuple[str, int], list[tuple[int, int, frozenset[int]]]] = {}
    names: dict[str, str] = {}
    image: Image = {}
    for _, row in sorted(records.items()):
        for subject, state in applied(image, row.record).changes:
            if isinstance(state, TopicState):
                names[state.topic_id] = state.name
            if isinstance(state, PartitionState):
                key = (names[subject.name], subject.partition_id)
                found.setdefault(key, []).append((state.leader, state.leader_epoch, frozenset(state.isr)))
        image = replay([row.record], image)
    return found


def _without_repeats(states: list[tuple[int, int, frozenset[int]]]) -> list[tuple[int, int, frozenset[int]]]:
    return [state for number, state in enumerate(states) if number == 0 or states[number - 1] != state]
