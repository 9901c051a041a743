"""Files that an earlier run looked into, and that stayed as they were, are not looked into again."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from ingest.containers.storage import ListedFile
from ingest.lake.delta import Lake
from ingest.lake.tables.kept import INSPECTED_FILES
from ingest.run import known_files, reading
from tests.spark.ingest.test_ingest_pipeline import bronze, ingest, new_lake, record, write_capture

SINCE_1970_S = 1_700_000_000


@pytest.fixture
def looked_into(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of files that runs look into, of folders that are all worth to be noted."""
    names: list[str] = []
    inspect_files = reading.inspect_files

    def counted(spark: Any, found: list[ListedFile], *args: Any, **options: Any) -> Any:
        names.extend(file.source_file for file in found)
        return inspect_files(spark, found, *args, **options)

    monkeypatch.setattr(reading, "inspect_files", counted)
    monkeypatch.setattr(known_files, "WORTH_BYTES", 0)
    monkeypatch.setattr(known_files, "SETTLED_SECONDS", 0)
    return names


def noted(lake: Lake) -> set[str]:
    return {row["source_file"] for row in lake.read(INSPECTED_FILES).collect()}


def test_an_hour_later_only_what_is_new_is_looked_into(
    spark: Any, empty_lake_dir: Path, tmp_path: Path, looked_into: list[str]
) -> None:
    lake = new_lake(spark, empty_lake_dir, tmp_path / "lake")
    capture = write_capture(tmp_path / "capture")
    first = ingest(lake, capture)
    every_name = {path.relative_to(capture).as_posix() for path in capture.rglob("*") if path.is_file()}
    assert set(looked_into) == every_name
    looked_into.clear()

    with (capture / "broker-1/logs/server.log").open("a") as log:
        log.write(record(50, "[Partition t-0 broker=1] Shrinking ISR"))
    (capture / "broker-2/logs/server.log").write_text(record(51, "[KafkaServer id=2] starting"))
    gone = capture / "znodes/1795231841294.jsonl"
    gone.unlink()
    second = ingest(lake, capture)
    assert sorted(looked_into) == ["broker-1/logs/server.log", "broker-2/logs/server.log"]
    assert (second.files_new, second.files_grown) == (1, 1)
    assert second.files_known == first.files_new - 2  # without the one that grew and the one that is gone
    assert noted(lake) == every_name - {"znodes/1795231841294.jsonl"} | {"broker-2/logs/server.log"}

    write_capture(tmp_path / "again")
    anew = new_lake(spark, empty_lake_dir, tmp_path / "anew")
    ingest(anew, tmp_path / "again")
    ingest(anew, capture)
    assert bronze(lake) == bronze(anew)


def test_a_copy_with_the_size_and_the_time_of_another_is_looked_into(
    spark: Any, empty_lake_dir: Path, tmp_path: Path, looked_into: list[str]
) -> None:
    lake = new_lake(spark, empty_lake_dir, tmp_path / "lake")
    log = tmp_path / "logs/server.log"
    log.parent.mkdir()
    log.write_text(record(1, "[KafkaServer id=1] starting"))
    os.utime(log, (SINCE_1970_S, SINCE_1970_S))
    ingest(lake, log.parent)
    looked_into.clear()
    other = tmp_path / "other.log"
    other.write_text(record(1, "[KafkaServer id=2] starting"))
    os.utime(other, (SINCE_1970_S, SINCE_1970_S))
    shutil.copy2(other, log)
    assert ingest(lake, log.parent).files_new == 1
    assert looked_into == ["server.log"]


@pytest.mark.parametrize("options", [{"is_final": True}, {"split_bytes": 64}])
def test_what_was_asked_otherwise_is_looked_into(
    spark: Any, empty_lake_dir: Path, tmp_path: Path, looked_into: list[str], options: dict[str, Any]
) -> None:
    lake = new_lake(spark, empty_lake_dir, tmp_path / "lake")
    capture = write_capture(tmp_path / "capture")
    ingest(lake, capture)
    before = len(looked_into)
    ingest(lake, capture, **options)
    assert len(looked_into) == 2 * before > 0


def test_what_changed_just_now_is_not_noted(
    spark: Any, empty_lake_dir: Path, tmp_path: Path, looked_into: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_files, "SETTLED_SECONDS", 3600)
    lake = new_lake(spark, empty_lake_dir, tmp_path / "lake")
    capture = write_capture(tmp_path / "capture")
    ingest(lake, capture)
    before = len(looked_into)
    ingest(lake, capture)
    assert len(looked_into) == 2 * before > 0
    assert noted(lake) == set()


def test_no_secret_is_noted(spark: Any, empty_lake_dir: Path, tmp_path: Path, looked_into: list[str]) -> None:
    lake = new_lake(spark, empty_lake_dir, tmp_path / "lake")
    capture = write_capture(tmp_path / "capture")
    (capture / "unknown.txt").write_text("db.password=geheim\n")
    assert ingest(lake, capture).files_rejected == 2
    (found,) = [row["found"] for row in lake.read(INSPECTED_FILES).collect() if row["source_file"] == "unknown.txt"]
    assert "db.password=[hidden]" in found
    assert "geheim" not in found


def test_little_is_not_noted(spark: Any, empty_lake_dir: Path, tmp_path: Path) -> None:
    lake = new_lake(spark, empty_lake_dir, tmp_path / "lake")
    ingest(lake, write_capture(tmp_path / "capture"))
    assert not lake.exists(INSPECTED_FILES)


def test_a_file_that_cannot_be_read_is_tried_again(
    spark: Any, empty_lake_dir: Path, tmp_path: Path, looked_into: list[str]
) -> None:
    lake = new_lake(spark, empty_lake_dir, tmp_path / "lake")
    capture = write_capture(tmp_path / "capture")
    (capture / "broken.zip").write_bytes(b"PK\x03\x04 and no more")
    assert ingest(lake, capture).files_rejected == 2
    looked_into.clear()
    assert ingest(lake, capture).files_rejected == 2
    assert looked_into == ["broken.zip"]
