"""The main measure: what the timelines hold of the truth in ZooKeeper's own transaction log, capture by capture.

All captures, each with several sets of sources, go into one lake and are reconstructed in one go; see
``tests/support/truth/score.py`` for the measure. The figures are printed at the end of the run and kept in
``.cache/capture-scores.txt``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

import pytest
from pyspark.sql import functions as F

from checks.results import CheckReport
from ingest.lake.tables.bronze import INGESTED_FILES
from ingest.lake.tables.events import STATE_CHANGE_EVENTS
from reconstruct.requests.spark.evidence import matched_requests
from tests.support.budget import IS_HARD
from tests.support.captures.lake import (
    ALL,
    NO_ZNODES,
    TRANSACTIONS,
    WRONG_BY,
    WRONG_CLOCKS,
    Given,
    Sources,
    row_texts,
    rows_by_cluster,
)
from tests.support.lakes.shared import SharedLake
from tests.support.truth.alignment import Score
from tests.support.truth.decisions import Truth
from tests.support.truth.score import (
    score_assignments,
    score_controllers,
    score_existence,
    score_liveness,
    score_states,
    table,
)
from tests.table_hashes import table_hashes

#: The first test pays for the lake of all captures.
pytestmark = pytest.mark.timeout(1800)

#: Captures folded again in plain Python, one of each protocol era, deletions and elections of all kinds among them;
#: with HYPOTHESIS_PROFILE=hard every one.
FOLDED: Final = ("lifecycle-0.8.2.2", "failover-1.1.1", "lifecycle-3.9.1", "unclean-3.9.1-info")
LOWEST_RECALL: Final = 0.97
HIGHEST_EXTRAS: Final = 0.03
LOWEST_RECALL_OF_ALL: Final = 0.99
HIGHEST_EXTRAS_OF_ALL: Final = 0.01
LONGEST_MEDIAN_TIME_ERROR_MS: Final = 50
LOWEST_RECALL_WITHOUT_ZNODES: Final = 0.95
HIGHEST_EXTRAS_WITHOUT_ZNODES: Final = 0.05

#: What is scored: the table, the columns it is scored by, and how.
PARTITION: Final = ("topic", "topic_incarnation", "partition_id")
STATE: Final = ("leader", "leader_epoch", "isr", "partition_epoch", "valid_from", "evidence", "inferred_from")


@dataclass(frozen=True)
class Subject:
    """One timeline and its scorer."""

    table: str
    columns: tuple[str, ...]
    score: Callable[[Truth, list[dict[str, Any]]], Score]


SUBJECTS: Final = {
    "leader and ISR": Subject("leader_and_isr_timeline", (*PARTITION, "sequence", *STATE), score_states),
    "assignment": Subject("assignment_timeline", (*PARTITION, "sequence", "replicas", "valid_from"), score_assignments),
    "controller epochs": Subject(
        "controller_epoch_timeline", ("controller_id", "controller_epoch", "valid_from"), score_controllers
    ),
    "broker liveness": Subject(
        "broker_liveness_timeline", ("broker_id", "sequence", "valid_from", "valid_to"), score_liveness
    ),
    "partition existence": Subject(
        "partition_state_timeline", (*PARTITION, "state", "valid_from", "valid_to"), score_existence
    ),
}


@dataclass(frozen=True)
class Measured:
    """The lake of all captures, and every score."""

    shared: SharedLake
    clusters: Mapping[Given, str]
    scores: Mapping[tuple[str, Given], Score]

    @property
    def lake(self) -> Any:
        return self.shared.lake


def figures(scores: Mapping[tuple[str, Given], Score]) -> str:
    """The tables of all subjects, by the sources that gave them."""
    parts = []
    for name in SUBJECTS:
        for sources in Sources:
            chosen = {
                given.capture: score
                for (subject, given), score in sorted(scores.items(), key=lambda item: (item[0][0], item[0][1].capture))
                if subject == name and given.sources is sources
            }
            if chosen and (name == "leader and ISR" or sources not in (Sources.CONTROLLER, Sources.BROKERS)):
                total = Score(tuple(alignment for score in chosen.values() for alignment in score.alignments))
                parts.append(f"{name} from {sources.value}\n{table(chosen | {'all captures': total})}")
    return "\n\n".join(parts)


class FiguresPlugin:
    """Prints the figures at the end of the run."""

    def __init__(self, text: str) -> None:
        self.text = text

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        terminalreporter.section("reconstruction against ZooKeeper's transaction log")
        terminalreporter.write_line(self.text)


@pytest.fixture(scope="module")
def measured(captures: SharedLake, truths: Mapping[str, Truth], pytestconfig: pytest.Config) -> Measured:
    from ingest.lake.delta import PinnedLake
    from ingest.lake.tables import TABLES

    lake, clusters = captures.lake, captures.clusters
    scores = {}
    for name, subject in SUBJECTS.items():
        rows = rows_by_cluster(PinnedLake(lake).read(TABLES[f"silver.{subject.table}"]), *subject.columns)
        for given, cluster_id in clusters.items():
            scores[name, given] = subject.score(truths[given.capture], rows.get(cluster_id, []))
    text = figures(scores)
    kept = Path(pytestconfig.rootpath) / ".cache" / "capture-scores.txt"
    kept.parent.mkdir(exist_ok=True)
    differences = [
        f"{name}, {given.capture}, {given.sources.value}:\n{difference}"
        for (name, given), score in scores.items()
        if (difference := score.diff())
    ]
    kept.write_text("\n\n".join([text, *differences]) + "\n")
    pytestconfig.pluginmanager.register(FiguresPlugin(text), "capture-scores")
    return Measured(captures, clusters, scores)


def names(given: Given) -> str:
    return given.capture


@pytest.mark.parametrize("given", ALL, ids=names)
def test_a_capture_is_known_as_one_cluster_of_its_own(given: Given, measured: Measured) -> None:
    cluster = measured.clusters[given]
    assert cluster
    assert list(measured.clusters.values()).count(cluster) == 1


@pytest.mark.parametrize("given", ALL, ids=names)
def test_states_that_the_truth_holds_are_found_and_others_are_not(given: Given, measured: Measured) -> None:
    score = measured.scores["leader and ISR", given]
    assert score.recall >= LOWEST_RECALL, score.diff()
    assert score.extras <= HIGHEST_EXTRAS, score.diff()


def test_over_all_captures_nearly_every_state_is_found_at_its_time(measured: Measured) -> None:
    scores = [measured.scores["leader and ISR", given] for given in ALL]
    together = Score(tuple(alignment for score in scores for alignment in score.alignments))
    assert together.recall >= LOWEST_RECALL_OF_ALL
    assert together.extras <= HIGHEST_EXTRAS_OF_ALL
    errors = [abs(error) for alignment in together.alignments for error in alignment.start_errors_ms]
    assert len(errors) > 100
    assert median(errors) <= LONGEST_MEDIAN_TIME_ERROR_MS


@pytest.mark.parametrize("given", NO_ZNODES, ids=names)
def test_logs_alone_give_nearly_as_much(given: Given, measured: Measured) -> None:
    score = measured.scores["leader and ISR", given]
    assert score.recall >= LOWEST_RECALL_WITHOUT_ZNODES, score.diff()
    assert score.extras <= HIGHEST_EXTRAS_WITHOUT_ZNODES, score.diff()


@pytest.mark.parametrize("given", ALL, ids=names)
@pytest.mark.parametrize("subject", [name for name in SUBJECTS if name != "leader and ISR"])
def test_the_other_timelines_hold_the_truth_too(subject: str, given: Given, measured: Measured) -> None:
    score = measured.scores[subject, given]
    assert score.recall >= LOWEST_RECALL, score.diff()
    assert score.extras <= HIGHEST_EXTRAS, score.diff()


@pytest.mark.parametrize("given", TRANSACTIONS, ids=names)
@pytest.mark.parametrize("subject", SUBJECTS)
def test_transaction_logs_alone_tell_every_decision(subject: str, given: Given, measured: Measured) -> None:
    score = measured.scores[subject, given]
    assert score.recall == 1.0, score.diff()
    assert score.extras == 0.0, score.diff()


@pytest.mark.parametrize("given", TRANSACTIONS, ids=names)
def test_snapshots_show_the_writes_of_the_log_and_say_how_many_they_hide(given: Given, measured: Measured) -> None:
    from ingest.lake.tables import TABLES

    columns = ("path", "change", "czxid", "mzxid", "version", "data", "hidden_writes_count")
    instants = ("changed_at", "changed_at_upper")
    rows = rows_by_cluster(measured.lake.read(TABLES["silver.znode_changes"]), *columns, *instants)
    shown, logged = rows[measured.clusters[Given(Sources.ALL, given.capture)]], rows[given.cluster_id]
    writes: dict[tuple[str, int], dict[int, dict[str, Any]]] = {}
    deleted = {(row["path"], row["czxid"]): row["changed_at"] for row in logged if row["change"] == "deleted"}
    for row in logged:
        if row["change"] == "written":
            writes.setdefault((row["path"], row["czxid"]), {})[row["mzxid"]] = row
    compared = hidden = gone = 0
    last: dict[tuple[str, int], int] = {}
    for row in sorted(shown, key=lambda row: row["mzxid"]):
        znode = (row["path"], row["czxid"])
        if row["path"].startswith("/zookeeper") or znode not in writes:
            continue  # ZooKeeper's own, created by no transaction
        if row["change"] == "deleted":
            gone += 1
            assert row["changed_at"] <= deleted[znode] <= row["changed_at_upper"], row
            continue
        own = writes[znode][row["mzxid"]]
        assert (own["version"], own["data"], own["changed_at"]) == (row["version"], row["data"], row["changed_at"])
        between = [zxid for zxid in writes[znode] if last.get(znode, 0) < zxid < row["mzxid"]]
        if not row["path"].startswith("/brokers/ids/"):  # registered by two writes of one transaction since 2.8
            assert row["hidden_writes_count"] == len(between), row
        last[znode] = row["mzxid"]
        compared += 1
        hidden += len(between)
    assert compared > 50
    assert gone > 0 or hidden > 0


@pytest.mark.parametrize("given", WRONG_CLOCKS, ids=names)
def test_wrong_clocks_are_found_and_corrected(given: Given, measured: Measured) -> None:
    from pyspark.sql import functions as F

    from ingest.lake.tables import TABLES

    rows = (
        measured.lake.read(TABLES["quality.evidence_coverage"])
        .where((F.col("cluster_id") == given.cluster_id) & (F.col("source_kind") == "clock"))
        .collect()
    )
    clocks = {row["broker_id"]: row for row in rows}
    assert len(clocks) == len(rows) == 3
    assert {broker: row["clock_verdict"] for broker, row in clocks.items()} == {
        1: "agrees",
        2: "other_zone",
        3: "skewed",
    }
    for broker, shift in WRONG_BY.items():
        wrong_ms = shift.total_seconds() * 1000
        assert clocks[broker]["clock_offset_lower_ms"] <= wrong_ms <= clocks[broker]["clock_offset_upper_ms"]
    score = measured.scores["leader and ISR", given]
    assert score.recall >= LOWEST_RECALL_WITHOUT_ZNODES, score.diff()
    assert score.extras <= HIGHEST_EXTRAS_WITHOUT_ZNODES, score.diff()
    findings = measured.lake.read(TABLES["gold.divergences"]).where(F.col("cluster_id") == given.cluster_id)
    assert findings.where("severity != 'info'").collect() == []


def test_plain_python_folds_the_evidence_to_the_same_rows(measured: Measured) -> None:
    from ingest.lake.tables import TABLES
    from ingest.lake.tables.gold import DIVERGENCES
    from reconstruct.cluster.spark.incarnations import stored_incarnations
    from reconstruct.cluster.spark.step import cluster_histories
    from reconstruct.engine.rows import evidence_row
    from reconstruct.partitions.spark.evidence import partition_evidence
    from reconstruct.partitions.spark.step import FOLDED_TABLES, history_of, history_rows
    from reconstruct.rule_book import RULES

    folded = [measured.clusters[given] for given in ALL if IS_HARD or given.capture in FOLDED]
    lake = measured.shared.of(*folded)
    clusters = {history.cluster_id: history.view for history in cluster_histories(lake)}
    incarnations = stored_incarnations(lake.read(TABLES["silver.topic_incarnations"]))
    kinds = ("state_change_events", "replication_events", "controller_events", "znode_changes", "metadata_changes")
    read = [lake.read(TABLES[f"silver.{kind}"]) for kind in kinds]
    partitions: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in partition_evidence(*read, incarnations).collect():
        key = (row["cluster_id"], row["topic"], row["topic_incarnation"], row["partition_id"])
        partitions.setdefault(key, []).append(evidence_row(row.asDict()))
    made_of = (*FOLDED_TABLES, DIVERGENCES)
    plain: dict[str, list[dict[str, Any]]] = {spec.full_name: [] for spec in made_of}
    for key, rows in partitions.items():
        named = dict(zip(("cluster_id", "topic", "topic_incarnation", "partition_id"), key, strict=True))
        for made in history_rows(history_of(rows, clusters)):
            if made["table_name"] in plain:
                plain[made["table_name"]].append({**made, **named})
    for finding in plain[DIVERGENCES.full_name]:
        finding["rule_source"] = RULES[finding["rule_id"]].source
    assert len(partitions) > 30
    for spec in made_of:
        # what all steps together know of a finding is added to it when all have judged
        later = ("divergence_id", "severity", "harm", "explanation", "alternatives") if spec is DIVERGENCES else ()
        columns = [name for name in spec.column_names if name not in later]
        tuples = [tuple(row.get(name) for name in spec.column_names) for row in plain[spec.full_name]]
        ours = row_texts(lake.spark.createDataFrame(tuples, spec.struct).select(*columns), ())
        theirs = row_texts(lake.read(spec).select(*columns), ())
        if spec is DIVERGENCES:  # it also holds the findings of clusters, requests, offsets and checkpoints
            known = set(ours)
            theirs = [text for text in theirs if text in known]
        assert sorted(theirs) == sorted(ours), spec.full_name


def test_requests_of_a_controller_do_not_rest_on_lines_of_others(captures: SharedLake) -> None:
    """Those of controllers of which nothing is new stay: the lines of each half of them give what all lines do."""
    changes, files = captures.lake.read(STATE_CHANGE_EVENTS), captures.lake.read(INGESTED_FILES)
    unordered = changes.select("cluster_id", F.col("broker_id").alias("unordered_broker_id")).where("broker_id = 2")
    unordered = unordered.distinct()
    half = F.coalesce(F.col("controller_id") % 2, F.lit(0))
    halves = [matched_requests(changes.where(half == n), files, unordered) for n in (0, 1)]
    hashes = table_hashes(
        {"all": matched_requests(changes, files, unordered), "halves": halves[0].unionByName(halves[1])}
    )
    assert hashes["all"] == hashes["halves"]
    assert all(table_hashes({"": each})[""][1] > 100 for each in halves)


def test_a_decision_is_explained_from_the_lake(measured: Measured, truths: Mapping[str, Truth]) -> None:
    from reconstruct.explain.explain import Span
    from reconstruct.explain.spark.step import NothingKnown, Question, explain

    name = "unclean-3.9.1-info"
    cluster = measured.clusters[Given(Sources.ALL, name)]
    elected = next(
        state
        for state in truths[name].states_by_partition()["ledger", 0]
        if state.state[0] == 2 and state.state[1] == 2
    )
    at = int(elected.write.time_ms) * 1000
    text = explain(measured.lake, Question("ledger", 0, Span(at, at + 1000), cluster))
    assert "leader 2 elected, uncleanly, leader epoch 2" in text
    assert "1: not live." in text
    of_broker = explain(measured.lake, Question("ledger", 0, Span(at, at + 1000), cluster, 2))
    assert "leader 2 elected, uncleanly, leader epoch 2" in of_broker
    assert "Leader 2, uncleanly, ISR 2, leader epoch 2; told: 2." in text
    for question, sentence in (
        (Question("nothing", 0, Span(at, at + 1), cluster), "no topic nothing is known"),
        (Question("ledger", 7, Span(at, at + 1), cluster), "nothing is known of partition 7"),
        (Question("ledger", 0, Span(at, at + 1)), "clusters have that topic: say --cluster"),
        (
            Question("ledger", 0, Span(at, at + 1), cluster, 7),
            "nothing shows a replica of ledger-0 at broker 7: of brokers 1, 2 it is known",
        ),
    ):
        with pytest.raises(NothingKnown, match=sentence):
            explain(measured.lake, question)


def test_the_suites_hold_on_every_capture(measured: Measured, shared_checks: CheckReport) -> None:
    """Gates fail of damaged copies alone: numbers that no column holds are NULL in an event's lists, and the share of
    messages that no shape knows is judged. Of a capture with all its sources there is not even a warning, but where a
    broken file was read."""
    report = shared_checks
    failed = {
        result.check_id: {example["cluster_id"] for example in json.loads(result.examples or "[]")}
        for result in report.results
        if result.severity == "critical" and result.verdict != "kept"
    }
    assert len(failed) == len(report.failed_gates)
    of_damages = {
        f"silver.state_change_events.{name}_elements_not_null": {"numbers-that-no-column-holds"}
        for name in ("isr", "replicas", "to_broker_ids")
    } | {
        "quality.run_metrics.typed_state_changes_by_version_ratio_critical": {"state-changes-that-no-shape-knows"},
    }
    unexpected = {name: clusters - of_damages.get(name, set()) for name, clusters in failed.items()}
    assert {name: clusters for name, clusters in unexpected.items() if clusters} == {}
    whole = {measured.clusters[given] for given in ALL}
    broken = {
        (result.check_id, example["cluster_id"])
        for result in report.results
        if result.verdict == "broken" and result.severity != "info"
        for example in json.loads(result.examples or "[]")
    }
    corrupted = measured.clusters[Given(Sources.ALL, "checkpoints-1.1.1")]
    assert {(check_id, cluster) for check_id, cluster in broken if cluster in whole} == {
        ("quality.run_metrics.rejected_records_ratio_warning", corrupted)
    }
