"""Files that grow, followed by a stream: each record once, whatever ends the process."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from ingest.lake.tables.bronze import INGESTED_FILES, LOG_RECORDS
from ingest.run import following
from ingest.run.accounting import IngestError
from ingest.run.pipeline import IngestOptions, ingest_paths
from tests.support.captures.lake import row_texts

LINE = "[2026-11-21 03:00:{:02},000] INFO [KafkaServer id=1] started ({}) (kafka.server.KafkaServer)\n"
PATIENCE_SECONDS = 120


def silent(message: str) -> None:
    """No progress."""


def lines(*seconds: int) -> str:
    return "".join(LINE.format(second, second) for second in seconds)


def append(log: Path, text: str) -> None:
    with log.open("a") as file:
        file.write(text)


class Follower:
    """A stream over one folder, and what it said."""

    def __init__(self, lake: Any, folder: Path) -> None:
        self.reports: list[Any] = []
        self.failures: list[Exception] = []
        self.lake = lake
        self.query = following.follow(
            lake,
            [str(folder)],
            IngestOptions(cluster_id="c"),
            silent,
            interval_seconds=0.2,
            each=self.reports.append,
            failed=self.failures.append,
        )

    def wait_for(self, records: int) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.lake.rows_count(LOG_RECORDS) != records or self.query.status["isTriggerActive"]:
            assert self.query.isActive, f"the stream ended: {self.failures}"
            assert time.monotonic() < deadline, f"{self.lake.rows_count(LOG_RECORDS)} records, not {records}"
            time.sleep(0.2)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "broker-1" / "logs"
    folder.mkdir(parents=True)
    return folder


def test_what_a_log_gets_is_taken_as_it_gets_it(lake: Any, folder: Path) -> None:
    log = folder / "server.log"
    append(log, lines(1, 2) + "[2026-11-21 03:00:03,000] INFO not fin")
    follower = Follower(lake, folder)
    try:
        follower.wait_for(2)
        append(log, "ished (kafka.server.KafkaServer)\n\tat a stack trace\n")
        follower.wait_for(3)
        log.rename(folder / "server.log.2026-11-21-03")
        append(log, lines(59))
        follower.wait_for(4)
    finally:
        follower.query.stop()
    rows = lake.read(LOG_RECORDS).orderBy("event_time").select("message", "continuation").collect()
    assert [row["message"] for row in rows][2:] == ["not finished", "[KafkaServer id=1] started (59)"]
    assert rows[2]["continuation"] == "\tat a stack trace"
    assert lake.read(INGESTED_FILES).count() == 2
    assert sum(report.records_kept for report in follower.reports) >= 4


def test_a_batch_that_died_after_it_had_written_adds_nothing_when_repeated(
    lake: Any, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = folder / "server.log"
    append(log, lines(1, 2))
    run = following.Ingest.run

    def dying(ingest: Any) -> Any:
        run(ingest)
        raise RuntimeError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(following.Ingest, "run", dying)
        follower = Follower(lake, folder)
        with pytest.raises(Exception, match="killed"):
            follower.query.awaitTermination(PATIENCE_SECONDS)
    assert [str(failure) for failure in follower.failures] == ["killed"]
    append(log, lines(3))
    again = Follower(lake, folder)
    try:
        again.wait_for(3)
    finally:
        again.query.stop()
    at_once = type(lake)(lake.spark, str(tmp_path / "at-once"))
    ingest_paths(at_once, [str(folder)], IngestOptions(cluster_id="c"), silent)
    assert row_texts(lake.read(LOG_RECORDS)) == row_texts(at_once.read(LOG_RECORDS))
    assert row_texts(lake.read(INGESTED_FILES)) == row_texts(at_once.read(INGESTED_FILES))


def test_a_file_that_changes_while_it_is_read_is_read_again(
    lake: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(folder / "server.log", lines(1))
    run = following.Ingest.run
    refusals = iter([IngestError("the file may have changed while it was read"), None])

    def changing(ingest: Any) -> Any:
        refusal = next(refusals, None)
        if refusal is not None:
            raise refusal
        return run(ingest)

    monkeypatch.setattr(following.Ingest, "run", changing)
    follower = Follower(lake, folder)
    try:
        follower.wait_for(1)
    finally:
        follower.query.stop()
    assert follower.failures == []
