"""An operator points at whatever is left after an incident: all of it goes in, and is accounted for to the byte."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from ingest.lake.delta import Lake, PinnedLake
from ingest.lake.tables import TABLES
from ingest.lake.tables.bronze import (
    BRONZE_TABLES,
    CAPTURE_GAPS,
    CLUSTER_DESCRIPTIONS,
    GROWING_KINDS,
    INGESTED_FILES,
    LOG_RECORDS,
    REJECTED_RECORDS,
)
from ingest.readers.sources import KEPT_TABLES
from ingest.run.pipeline import IngestOptions, IngestReport, ingest_paths
from reconstruct.explain.explain import Span
from reconstruct.explain.spark.step import NothingKnown, Question, explain
from reconstruct.time.instants import to_micros
from tests.support.captures.lake import row_texts, rows_by_cluster
from tests.support.captures.packed import unpack
from tests.support.files import incident_folder
from tests.support.files.incident_folder import COPIES, LINK, MADE_UP, Expected, Incident, LogLine
from tests.support.files.wrapped_logs import compose
from tests.support.lakes.shared import INCIDENT, SharedLake
from tests.support.truth.decisions import read_truth
from tests.support.truth.score import score_states

#: What says where a file lay, which its identity leaves out.
NAME: Final = "source_file"
SNAPSHOT: Final = "znodes/1795232118367.jsonl"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

Row = dict[str, Any]


def silent(message: str) -> None:
    """No progress."""


def ingest(lake: Lake, path: Path, **options: Any) -> IngestReport:
    report = ingest_paths(lake, [str(path)], IngestOptions(**options), silent)
    assert report.records_read == report.records_kept + report.records_rejected
    return report


def rows(lake: Lake, spec: Any) -> list[Row]:
    return [row.asDict(recursive=True) for row in PinnedLake(lake).read(spec).collect()]


def bronze(lake: Lake, *without: str) -> dict[str, list[str]]:
    """Every bronze row as text, by table, without our clock."""
    pinned = PinnedLake(lake)
    return {spec.name: row_texts(pinned.read(spec), without) for spec in BRONZE_TABLES}


def assert_accounted(files: list[Row], records: Mapping[str, list[Row]]) -> None:
    """Records read are those kept and rejected; the bytes of files that grow each belong to one of them."""
    found: dict[tuple[str, str], list[Row]] = {}
    for name, table in records.items():
        for row in table:
            found.setdefault((row["cluster_id"], row["file_id"]), []).append(row | {"table": name})
    for file in files:
        of_file = found.pop((file["cluster_id"], file["file_id"]), [])
        rejected = [row for row in of_file if row["table"] == REJECTED_RECORDS.name]
        assert file["records_read_count"] == len(of_file), file["source_file"]
        assert file["records_rejected_count"] == len(rejected), file["source_file"]
        if file["source_kind"] in GROWING_KINDS and file["status"] == "ingested":
            assert file["ingested_bytes"] == sum(row["byte_length"] for row in of_file), file["source_file"]
    assert not found, "records of files that have no row"
    ids = Counter((row["cluster_id"], row["record_id"]) for table in records.values() for row in table)
    assert ids.most_common(1)[0][1] == 1, "a record is there twice"


@pytest.fixture(scope="module")
def new_lake(spark: Any, empty_lake_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Lake]:
    def make() -> Lake:
        folder = tmp_path_factory.mktemp("every-source") / "lake"
        shutil.copytree(empty_lake_dir, folder)
        return Lake(spark, str(folder))

    return make


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(incident_folder.CAPTURE, tmp_path_factory.mktemp("capture"))


@pytest.fixture(scope="module")
def incident(capture: Path, tmp_path_factory: pytest.TempPathFactory) -> Incident:
    return incident_folder.left(capture, tmp_path_factory.mktemp("left"))


class Ingested:
    """The incident's folder, ingested once."""

    def __init__(self, lake: Lake, incident: Incident) -> None:
        self.lake = lake
        self.report = ingest(lake, incident.folder)
        self.files = rows(lake, INGESTED_FILES)
        self.records = {spec.name: rows(lake, spec) for spec in (*KEPT_TABLES, REJECTED_RECORDS)}


@pytest.fixture(scope="module")
def ingested(new_lake: Callable[[], Lake], incident: Incident) -> Ingested:
    return Ingested(new_lake(), incident)


class TestTheFolder:
    def test_every_file_and_member_has_one_row_that_says_what_it_is(
        self, ingested: Ingested, incident: Incident
    ) -> None:
        files = Counter(row["source_file"] for row in ingested.files)
        assert files.most_common(1)[0][1] == 1
        found = {row["source_file"]: Expected(*(row[name] for name in Expected._fields)) for row in ingested.files}
        link = found.pop(LINK)
        assert (link.source_kind, link.status) == ("unrecognised", "rejected")
        expected = incident.expected()
        for original, copy in COPIES.items():
            # of a file and its copy the one whose name sorts first has the row
            first, last = sorted((incident.real(original), incident.real(copy)))
            assert last not in found
            expected[first] = expected.pop(incident.real(original))._replace(compression=found[first].compression)
        assert found == expected

    def test_the_report_counts_them(self, ingested: Ingested) -> None:
        status = Counter(row["status"] for row in ingested.files)
        report = ingested.report
        assert (report.files_rejected, report.files_not_read) == (status["rejected"], 2)
        assert report.passed_over == ".md 1"
        assert json.loads(json.dumps(asdict(report)))["not_of_kafka"] == {".md": 1}
        assert report.files_known == len(COPIES)
        assert len(report.clusters) == 1
        assert len({row["cluster_id"] for row in ingested.files}) == 1
        (unfinished,) = report.warnings
        assert unfinished.startswith("broker-3/logs/cut.log: the last line is not finished")

    def test_every_byte_is_accounted_for(self, ingested: Ingested) -> None:
        assert_accounted(ingested.files, ingested.records)
        assert ingested.report.records_read == sum(len(table) for table in ingested.records.values())

    def test_every_rejection_says_in_a_sentence_what_is_wrong(self, ingested: Ingested, incident: Incident) -> None:
        rejected = {
            (row["source_file"], row["source_line"]): row["reason"] for row in ingested.records[REJECTED_RECORDS.name]
        }
        for sentence in rejected.values():
            assert len(sentence.split()) > 4
        wanted = {
            ("brokers.tar.gz!../outside.log", 1): "points outside of the archive",
            (LINK, 1): "leads out of the folder given",
            ("broker-1/data/cleaner-offset-checkpoint", 4): "2 entries were announced, 1 are there",
            ("broker-1/data/recovery-point-offset-checkpoint", 4): "not a number in range",
            ("broker-1/data/recovery-point-offset-checkpoint", 5): "may be cut off",
            ("broker-1/data/replication-offset-checkpoint.tmp", 1): "unfinished write",
            ("broker-1/logs/long.log", 1): "longer than 8 MiB",
            ("broker-2/logs/damaged.log", 3): "zeros and no text",
            ("core.4711", 1): "binary data of a kind that is not known",
            ("notes.txt", 1): "neither a log of a known layout",
            ("prober/log-dirs.jsonl", 6): "no JSON",
        }
        assert set(rejected) == set(wanted)
        for place, part in wanted.items():
            assert part in rejected[place]

    def test_the_records_are_those_of_the_capture_whatever_they_are_packed_in(
        self, ingested: Ingested, capture: Path
    ) -> None:
        found = sorted(
            LogLine(
                row["broker_id"],
                (row["event_time"].astimezone(UTC) - _EPOCH) // timedelta(milliseconds=1),
                row["log_level"],
                row["message"].split("\n")[0],
            )
            for row in ingested.records[LOG_RECORDS.name]
            if row["source_file"] not in MADE_UP
        )
        assert found == incident_folder.records_of(capture)

    def test_partition_directories_give_the_end_of_each_log(self, ingested: Ingested) -> None:
        segments = {
            (row["broker_id"], row["directory"], row["base_offset"]): (row["next_offset"], row["size_bytes"])
            for row in ingested.records["log_segments"]
            if row["file_kind"] == "log_segment"
        }
        assert segments == {
            (1, "orders-0", 0): (12, 424),
            (1, "orders-0", 12): (12, 0),
            (1, "orders-1", 0): (1, 145),
            (2, "orders-1", 0): (None, 1024),
            (2, "metrics-1", 42): (None, 0),
        }

    def test_what_brokers_described_is_there_as_they_said_it(self, ingested: Ingested) -> None:
        told = sorted(
            ingested.records["cluster_descriptions"], key=lambda row: (row["source_file"], row["source_line"])
        )
        assert Counter(row["description_type"] for row in told) == {
            "cluster": 3,
            "topic": 3,
            "topic_gone": 1,
            "log_dir": 3,
            "log_dir_topic": 2,
            "reassignments": 2,
        }
        views = [
            (row["broker_id"], one["partition_id"], one["leader"], one["isr"])
            for row in told
            for one in row["partitions"] or ()
        ]
        assert views == [(1, 0, 1, [1, 2, 3]), (2, 0, 1, [1, 2, 3]), (2, 0, 2, [2, 3])]
        assert [one["offset_lag"] for row in told for one in row["replicas"] or ()] == [0, 7]
        moves = [row["reassignments"] for row in told if row["description_type"] == "reassignments"]
        assert [[one["adding_replicas"] for one in each] for each in moves] == [[[3]], []]
        gaps = [(row["broker_id"], row["missed_to"] is None) for row in ingested.records["capture_gaps"]]
        assert sorted(gaps) == [(1, False), (1, True)]

    def test_sql_can_explode_what_is_nested(self, ingested: Ingested) -> None:
        table = ingested.lake.path(CLUSTER_DESCRIPTIONS)
        found = ingested.lake.spark.sql(
            "SELECT broker_id, p.leader, size(p.isr) AS isr_size"
            f" FROM delta.`{table}` LATERAL VIEW explode(partitions) AS p WHERE p.partition_id = 0 ORDER BY sent_at"
        )
        assert [tuple(row) for row in found.collect()] == [(1, 1, 3), (2, 1, 3), (2, 2, 2)]

    def test_ingesting_it_again_adds_no_row(self, ingested: Ingested, incident: Incident) -> None:
        before = bronze(ingested.lake)
        again = ingest(ingested.lake, incident.folder)
        assert (again.files_new, again.files_grown, again.records_read) == (0, 0, 0)
        assert bronze(ingested.lake) == before

    def test_the_folder_in_one_archive_gives_the_same_records(
        self, ingested: Ingested, incident: Incident, new_lake: Callable[[], Lake], tmp_path: Path
    ) -> None:
        archive = tmp_path / "incident.tar.zst"
        archive.write_bytes(incident_folder.packed(incident.folder))
        lake = new_lake()
        ingest(lake, archive)
        for spec in (*KEPT_TABLES, REJECTED_RECORDS):
            here = {row["record_id"]: row["source_file"] for row in ingested.records[spec.name]}
            there = {row["record_id"]: row["source_file"] for row in rows(lake, spec)}
            only_here = {here[name] for name in here.keys() - there.keys()}
            only_there = {there[name] for name in there.keys() - here.keys()}
            if spec is REJECTED_RECORDS:
                # what must not be read is known by its name; an archive has no links that lead out of it
                assert only_here == {LINK, "brokers.tar.gz!../outside.log"}
                assert only_there == {"incident.tar.zst!brokers.tar.gz!../outside.log"}
            elif spec is LOG_RECORDS:
                # nothing follows the last line of a log that was packed
                assert (only_here, only_there) == (set(), {"incident.tar.zst!broker-3/logs/cut.log"})
            else:
                assert (only_here, only_there) == (set(), set())

    def test_reconstruct_gives_the_decided_states(self, incident_lake: SharedLake, capture: Path) -> None:
        timeline = incident_lake.of(INCIDENT).read(TABLES["silver.leader_and_isr_timeline"])
        columns = [name for name in timeline.columns if name != "cluster_id"]
        (states,) = rows_by_cluster(timeline, *columns).values()
        score = score_states(read_truth(capture), states)
        assert (score.recall, score.extras) == (1.0, 0.0), score.diff()

    def test_a_partition_is_explained_with_what_brokers_described_of_it(self, incident_lake: SharedLake) -> None:
        told = incident_lake.of(INCIDENT).read(CLUSTER_DESCRIPTIONS)
        asked = [row["sent_at"] for row in told.select("sent_at").collect()]
        began = to_micros(min(asked).astimezone(UTC))
        text = explain(incident_lake.lake, Question("orders", 0, Span(began + 1000, began + 1_500_000), INCIDENT))
        shown = text[text.index("what brokers described") :].splitlines()
        before, then = shown.index("Last before"), next(n for n, line in enumerate(shown) if line.startswith("Changes"))
        assert [line.split("UTC  ")[1] for line in shown[before + 1 : then]] == [
            "broker 1: leader 1, leader epoch 1, ISR 1,2,3, replicas 1,2,3"
        ]
        missed = shown.index("Not recorded")
        assert [line.split(maxsplit=1)[1] for line in shown[then + 1 : missed]] == [
            "broker 2: replica, 0 behind the high watermark, in /data",
            "broker 1: being reassigned, replicas 1,2,3, adding 3, removing 1",
            "broker 2: leader 1, leader epoch 1, ISR 1,2,3, replicas 1,2,3",
            "broker 2: replica, 7 behind the high watermark, in /data",
            "broker 1: not being reassigned any more",
            "broker 2: leader 2, leader epoch 2, ISR 2,3, replicas 1,2,3",
            "broker 2: the topic is no longer described",
        ]
        assert "the capture missed probes of broker 1 from" in shown[missed + 1]


def test_a_capture_of_brokers_alone_knows_its_cluster_and_tells_what_they_described(
    capture: Path, new_lake: Callable[[], Lake], tmp_path: Path
) -> None:
    for name, data in incident_folder.described(capture).items():
        (tmp_path / name).write_bytes(data)
    lake = new_lake()
    report = ingest(lake, tmp_path)
    told = rows(lake, CLUSTER_DESCRIPTIONS)
    (cluster_id,) = {row["metadata_cluster_id"] for row in told} - {None}
    assert {row["cluster_id"] for row in (*told, *rows(lake, CAPTURE_GAPS))} == {cluster_id}
    assert (report.files_not_read, report.records_rejected) == (0, 1)
    began = to_micros(min(row["sent_at"] for row in told).astimezone(UTC))
    lines = explain(lake, Question("orders", 0, Span(began, began + 1))).splitlines()
    assert lines[0] == f"orders-0 of cluster {cluster_id}"
    assert lines[2] == "No log and no znode tells what was decided: there is what brokers described."
    assert "leader 2, leader epoch 2, ISR 2,3" in "".join(lines)
    for topic, partition_id in (("orders", 1), ("other", 0)):
        with pytest.raises(NothingKnown):
            explain(lake, Question(topic, partition_id, Span(began, began + 1)))


class Live:
    """A folder whose files grow, are rotated and truncated, in three steps; the last one is all there ever was."""

    def __init__(self, capture: Path, folder: Path) -> None:
        self.folder = folder
        logs = {name: (capture / "broker-1" / "logs" / f"{name}.log").read_bytes() for name in ("server", "controller")}
        self._server = logs["server"]
        self._controller = logs["controller"]
        self._state_change = (capture / "broker-2" / "logs" / "state-change.log").read_bytes()
        self._transactions = (capture / "zk-version-2" / "log.1").read_bytes()
        self._znodes = capture / SNAPSHOT
        self._equal = incident_folder.line("04:00,000", "a line that names no broker") * 3
        controllers = {
            f"kafka-{broker}": (capture / f"broker-{broker}" / "logs" / "controller.log").read_bytes()
            for broker in incident_folder.BROKERS
        }
        self._console = compose(controllers)
        self._probes = (capture / "probes-3.jsonl").read_bytes()
        told = incident_folder.described(capture)
        self._log_dirs, self._missed = told["log-dirs.jsonl"], told["missed.jsonl"]

    def first(self) -> None:
        """Nothing says yet of which broker and cluster most of it is; what is there ends in the middle of things."""
        self._put("one/server.log", self._server[:200])
        self._put("two/state-change.log", self._state_change[: len(self._state_change) // 3])
        self._put("one/controller.log", self._controller)
        self._put("zookeeper/log.1", self._transactions[: self._middle_of_a_transaction()])
        self._put("console/compose.log", self._console[: self._console.index(b"kafka-2")])
        self._put("one/kafkaServer-gc.log", b"[0.012s][info][gc] Using G1\n")
        self._put("three/later.log", b"")
        self._put(SNAPSHOT, self._snapshot()[:700])
        self._put("broker-2/equal.log", self._equal)
        self._put("broker-3/equal.log", self._equal[: len(self._equal) // 3])
        self._put("broker-3/again.log", self._equal)
        self._put("prober/probes-3.jsonl", self._probes[:5000])
        self._put("prober/log-dirs.jsonl", self._log_dirs[: self._log_dirs.index(b"\n") + 60])
        self._put("prober/missed.jsonl", self._missed[:80])

    def second(self) -> None:
        """Logs have grown, in the middle of a record; one was rotated by name, one is about to be truncated."""
        self._put("one/server.log", self._server[: self._server.index(b"\tat ") + 3])
        self._put("two/state-change.log.1", self._state_change[: len(self._state_change) // 2])
        (self.folder / "two/state-change.log").unlink()
        self._put("one/controller.log.1", self._controller)
        self._put("one/controller.log", b"")
        self._put("zookeeper/log.1", self._transactions[: len(self._transactions) // 4])
        self._put("console/compose.log", self._console[: len(self._console) // 2])
        self._put("one/kafkaServer-gc.log", b"[0.012s][info][gc] Using G1\n[0.9s][info][gc] Pause\n")
        self._put("three/later.log", incident_folder.line("05:00,000", "[KafkaServer id=3] late")[:40])
        self._put(SNAPSHOT, self._snapshot())
        self._put("broker-3/equal.log", self._equal)
        self._put("prober/probes-3.jsonl", self._probes[: len(self._probes) // 2])
        self._put("prober/log-dirs.jsonl", self._log_dirs[: len(self._log_dirs) // 2])
        self._put("prober/missed.jsonl", self._missed[: self._missed.index(b"\n") + 20])

    def third(self) -> None:
        """All of it."""
        rest = self._state_change.index(b"\n[", len(self._state_change) // 2) + 1
        self._put("one/server.log", self._server)
        self._put("prober/probes-3.jsonl", self._probes)
        self._put("prober/log-dirs.jsonl", self._log_dirs)
        self._put("prober/missed.jsonl", self._missed)
        self._put("two/state-change.log.1", self._state_change[:rest])
        self._put("two/state-change.log", self._state_change[rest:])
        again = incident_folder.line("06:00,000", "[Controller id=1] after the truncation")
        self._put("one/controller.log", again.replace(b"server.KafkaServer", b"controller.KafkaController"))
        self._put("zookeeper/log.1", self._transactions)
        self._put("console/compose.log", self._console)
        self._put("one/kafkaServer-gc.log", b"[0.012s][info][gc] Using G1\n[0.9s][info][gc] Pause\n[1s][info][gc] x\n")
        self._put("three/later.log", incident_folder.line("05:00,000", "[KafkaServer id=3] late") + b"[2026-11-21 05:0")

    def _put(self, name: str, data: bytes) -> None:
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_bytes(data)

    def _snapshot(self) -> bytes:
        return self._znodes.read_bytes()

    def _middle_of_a_transaction(self) -> int:
        return self._transactions.index(b"/brokers/topics") + 5


@pytest.fixture(scope="module")
def grown(capture: Path, new_lake: Callable[[], Lake], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The folder in its last state, the lake it was ingested into at each step, and one that saw only the last."""
    live = Live(capture, tmp_path_factory.mktemp("live") / "left")
    lake = new_lake()
    for step in (live.first, live.second, live.third):
        step()
        ingest(lake, live.folder)
    at_once = new_lake()
    ingest(at_once, live.folder)
    return live.folder, lake, at_once


class TestAFolderThatChanges:
    @pytest.mark.parametrize("table", [spec.name for spec in BRONZE_TABLES])
    def test_what_was_taken_step_by_step_is_what_is_taken_at_once(self, grown: Any, table: str) -> None:
        _, lake, at_once = grown
        (spec,) = (spec for spec in BRONZE_TABLES if spec.name == table)
        assert row_texts(PinnedLake(lake).read(spec), (NAME,)) == row_texts(PinnedLake(at_once).read(spec), (NAME,))

    def test_every_byte_is_accounted_for(self, grown: Any) -> None:
        _, lake, _ = grown
        assert_accounted(
            rows(lake, INGESTED_FILES), {spec.name: rows(lake, spec) for spec in (*KEPT_TABLES, REJECTED_RECORDS)}
        )

    def test_two_brokers_equal_files_are_two_and_two_names_of_one_are_one(self, grown: Any) -> None:
        _, lake, _ = grown
        found = [row for row in rows(lake, LOG_RECORDS) if row["message"] == "a line that names no broker"]
        assert Counter(row["broker_id"] for row in found) == {2: 3, 3: 3}

    def test_final_takes_a_last_line_without_its_end(self, grown: Any) -> None:
        folder, _, lake = grown
        files = {row[NAME]: row for row in rows(lake, INGESTED_FILES)}
        assert files["three/later.log"]["ingested_bytes"] < files["three/later.log"]["size_bytes"]
        report = ingest(lake, folder, is_final=True)
        assert (report.files_new, report.files_grown, report.warnings) == (0, 1, ())
        for row in rows(lake, INGESTED_FILES):
            if row["layout"]:
                assert row["ingested_bytes"] == row["size_bytes"]
