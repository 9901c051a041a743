"""How a job is run: what is printed and written, how it fails, and the session that it is given."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from types import SimpleNamespace

import pytest

from ingest.lake.tables.kept import RUNS
from ingest.run.pipeline import IngestReport
from jobs import cli, ingest_job, reconstruct_job, run_job
from jobs.command import execution, job
from jobs.command.lost_files import lost_file
from jobs.session import java, java_ended, run_configs
from jobs.session.pinned_jars import JarsMissing
from jobs.session.planning import PLANNED_WITH_CARE


def fake_job(run):
    return job.Job("fake", "", lambda parser: None, lambda options, common: None, run, reads=lambda params: None)


@pytest.fixture
def no_spark(monkeypatch, tmp_path):
    session = SimpleNamespace(stop=lambda: None, sparkContext=SimpleNamespace(_gateway=None))
    monkeypatch.setattr(execution, "_session", lambda *_: (session, True))
    monkeypatch.setattr(execution, "default_log_file", lambda: tmp_path / "spark.log")


@pytest.mark.usefixtures("no_spark")
def test_results_go_to_standard_output_and_problems_to_standard_error(capsys):
    report = job.RunReport(("a line",), ("gate failed: it did",), job.GATE_FAILED)
    assert execution.execute(fake_job(lambda *_: report), job.Common("lake"), None) == job.GATE_FAILED
    captured = capsys.readouterr()
    assert captured.out == "a line\n"
    assert "kafka-state-replay: gate failed: it did\n" in captured.err


@pytest.mark.usefixtures("no_spark")
def test_a_job_begins_when_all_of_its_modules_are_read_and_what_it_prepares_is_done(monkeypatch, tmp_path):
    """Read by two threads at once, a package may be gone from under one of them (``KeyError``)."""
    (tmp_path / "read_slowly.py").write_text("import time\ntime.sleep(0.3)\nIS_WHOLE = True\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = []

    def run(*_):
        found.append("run")
        return job.RunReport()

    def prepare() -> None:
        found.append(getattr(sys.modules.get("read_slowly"), "IS_WHOLE", False))
        raise RuntimeError("whoever needs it says so")

    reading = dataclasses.replace(fake_job(run), modules=("is_not_there", "read_slowly"), prepare=prepare)
    assert execution.execute(reading, job.Common("lake", quiet=True), None) == job.DONE
    assert found == [True, "run"]


@pytest.mark.usefixtures("no_spark")
def test_quiet_prints_problems_only(capsys):
    report = job.RunReport(("a line",), ("a problem",), 1)
    assert execution.execute(fake_job(lambda *_: report), job.Common("lake", quiet=True), None) == 1
    assert capsys.readouterr() == ("", "kafka-state-replay: a problem\n")


@pytest.mark.usefixtures("no_spark")
@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (job.UsageError("bad SQL"), 2, "bad SQL"),
        (java.JavaMissing("Java is missing: install it"), 1, "Java is missing: install it"),
        (JarsMissing("no jars"), 1, "no jars"),
        (KeyError("x"), 1, "failed with KeyError: 'x'; Spark's log is"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_an_error_is_one_line_and_an_exit_code(capsys, error, code, words):
    def run(*_):
        raise error

    assert execution.execute(fake_job(run), job.Common("lake", quiet=True), None) == code
    captured = capsys.readouterr()
    assert words in captured.err
    assert captured.err.count("\n") == 1


NO_ROOM = [
    OSError(errno.ENOSPC, "No space left on device", "/lake/x.parquet"),
    OSError(errno.EDQUOT, "Disk quota exceeded"),
    RuntimeError(
        "An error occurred while calling o7.parquet.\n: org.apache.spark.SparkException: Job aborted\n"
        "Caused by: java.io.IOException: No space left on device\n\tat sun.nio"
    ),
    RuntimeError("java.nio.file.FileSystemException: /lake/_delta_log/0.json: No space left on device"),
    RuntimeError("java.io.FileNotFoundException: /tmp/blockmgr/0c/shuffle.data (No space left on device)"),
    RuntimeError(
        "PythonException: Traceback\n  File x\nOSError: [Errno 28] Error writing bytes to file. Detail: "
        "[errno 28] No space left on device"
    ),
]


@pytest.mark.usefixtures("no_spark")
@pytest.mark.parametrize("error", NO_ROOM)
def test_a_full_disk_is_told_with_the_room_that_there_is(capsys, tmp_path, error):
    def run(*_):
        raise error

    assert execution.execute(fake_job(run), job.Common(str(tmp_path), quiet=True), None) == 1
    told = capsys.readouterr().err
    assert told.startswith("kafka-state-replay: a disk is full (free now: ")
    assert f"MiB for the lake ({tmp_path})" in told
    assert told.count("\n") == 1


@pytest.mark.usefixtures("no_spark")
@pytest.mark.parametrize(
    "error",
    [
        "An error occurred while calling o1.collectToPython.\n: org.apache.spark.SparkException: Job aborted due to"
        " stage failure: Task 1 in stage 155.0 failed 1 times: org.apache.spark.memory.SparkOutOfMemoryError:"
        " [UNABLE_TO_ACQUIRE_MEMORY] Unable to acquire 308 bytes of memory, got 0. SQLSTATE: 53200\n\tat x",
        "An error occurred while calling o1.parquet.\n: java.lang.OutOfMemoryError: Java heap space\n\tat x",
    ],
)
def test_too_little_memory_of_spark_is_told_with_what_gives_it_more(capsys, error):
    def run(*_):
        raise RuntimeError(error)

    assert execution.execute(fake_job(run), job.Common("lake", quiet=True), None) == 1
    told = capsys.readouterr().err
    assert told.startswith("kafka-state-replay: Spark's memory is too little for this: give it more by KAFKA_STATE_")
    assert told.count("\n") == 1


@pytest.mark.usefixtures("no_spark")
def test_a_java_whose_heap_was_full_is_not_given_less(capsys, monkeypatch):
    with subprocess.Popen(["sh", "-c", "exit 52"]) as java:
        java.wait()
        session = SimpleNamespace(stop=lambda: None, sparkContext=SimpleNamespace(_gateway=SimpleNamespace(proc=java)))
        monkeypatch.setattr(execution, "_session", lambda *_: (session, True))

        def run(*_):
            raise ConnectionResetError("by peer")

        assert execution.execute(fake_job(run), job.Common("lake", quiet=True), None) == 1
    assert "Spark's memory is too little for this: give it more" in capsys.readouterr().err


@pytest.mark.usefixtures("no_spark")
@pytest.mark.parametrize("line", ["No space left on device", "java.lang.OutOfMemoryError", "Permission denied"])
def test_a_line_of_a_log_about_a_disk_memory_or_permissions_is_not_ours(capsys, line):
    def run(*_):
        raise ValueError(f"cannot cast '{line}' to int")

    execution.execute(fake_job(run), job.Common("lake", quiet=True), None)
    assert "failed with ValueError" in capsys.readouterr().err


LOST_FILES = [
    (
        "An error occurred while calling o7.next.\n: org.apache.spark.SparkException: Job aborted: "
        "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file file:///the%20lake/part-0.c000.parquet."
        " File does not exist. It is possible the underlying files have been updated. SQLSTATE: KD001\n\tat x",
        "is gone: ",
    ),
    ("[PATH_NOT_FOUND] Path does not exist: file:/the%20lake/part-0.c000.parquet. SQLSTATE: 42K03", "is gone: "),
    ("[Errno 2] No such file or directory: '/the lake/part-0.c000.parquet'", "is gone: "),
    (
        "[Errno 2] Failed to open local file '/the lake/part-0.c000.parquet'. Detail: [errno 2] No",
        "is gone: ",
    ),
    (
        "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///the%20lake/part-0.c000.parquet. x",
        "cannot be read, ",
    ),
    (
        "x\n  File y\nOSError: no rows can be read from: /the lake/part-0.c000.parquet: Couldn't deserialize thrift",
        "cannot be read, ",
    ),
]


@pytest.mark.usefixtures("no_spark")
@pytest.mark.parametrize(("error", "what"), LOST_FILES)
def test_a_lost_file_of_the_lake_is_named(capsys, error, what):
    def run(*_):
        raise RuntimeError(error)

    assert execution.execute(fake_job(run), job.Common("lake", quiet=True), None) == 1
    told = capsys.readouterr().err
    assert told.startswith(f"kafka-state-replay: /the lake/part-0.c000.parquet {what}")
    assert told.endswith("put it back as it was, or make the lake anew from its sources\n")
    assert told.count("\n") == 1


def test_of_a_lost_file_of_what_reconstruct_makes_it_is_said_so():
    told = lost_file(OSError("No such file or directory: '/lake/silver/fetcher_timeline/part-0.parquet'"))
    assert told is not None
    assert told.endswith("delete that table's folder and let `reconstruct` make it anew")
    gone = "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file"
    told = lost_file(OSError(f"{gone} file:/lake/gold/divergences/_delta_log/50.checkpoint.parquet. x"))
    assert told is not None
    assert told.startswith("/lake/gold/divergences/_delta_log/50.checkpoint.parquet is gone: ")
    assert told.endswith("let `reconstruct` make it anew")
    assert lost_file(OSError("No such file or directory: '/lake/silver/fetcher_timeline/x.parquet'")) is None


NO_ACCESS = [
    (PermissionError(errno.EACCES, "Permission denied", "/lake/x"), "/lake/x"),
    (OSError(errno.EROFS, "Read-only file system", "/lake/x"), "/lake/x"),
    (
        RuntimeError(
            "An error occurred while calling o7.write.\n: java.io.FileNotFoundException: /the lake/_writing/0.tmp"
            " (Read-only file system)\n\tat java.base"
        ),
        "/the lake/_writing/0.tmp",
    ),
    (RuntimeError("java.nio.file.FileSystemException: /lake/a.json: Operation not permitted"), "/lake/a.json"),
    (
        RuntimeError("x: java.nio.file.AccessDeniedException: s3a://b/lake/0.json: PutObject on x: 403"),
        "s3a://b/lake/0.json",
    ),
    (RuntimeError("java.nio.file.AccessDeniedException: /lake/bronze\n\tat x"), "/lake/bronze"),
    (RuntimeError("java.io.IOException: Mkdirs failed to create file:/lake/gold (exists=false, cwd=x)"), "/lake/gold"),
    (
        RuntimeError(
            "org.apache.hadoop.security.AccessControlException: Permission denied: user=me, access=WRITE,"
            ' inode="/lake":hdfs:drwxr-xr-x'
        ),
        "/lake",
    ),
    (
        RuntimeError("PythonException: Traceback\nPermissionError: [Errno 13] Permission denied: '/logs/a.log'"),
        "/logs/a.log",
    ),
]


@pytest.mark.usefixtures("no_spark")
@pytest.mark.parametrize(("error", "place"), NO_ACCESS)
def test_a_place_that_may_not_be_written_is_named(capsys, error, place):
    def run(*_):
        raise error

    assert execution.execute(fake_job(run), job.Common("lake", quiet=True), None) == 1
    told = capsys.readouterr().err
    assert told.startswith(f"kafka-state-replay: {place} may not be written, or not be read (")
    assert told.count("\n") == 1


@pytest.mark.usefixtures("no_spark")
def test_a_java_that_was_killed_is_told_as_such_whatever_broke_then(capsys, monkeypatch, tmp_path):
    stopped = []
    with subprocess.Popen(["sleep", "60"]) as java:
        session = SimpleNamespace(
            stop=lambda: stopped.append(1), sparkContext=SimpleNamespace(_gateway=SimpleNamespace(proc=java))
        )
        monkeypatch.setattr(execution, "_session", lambda *_: (session, True))

        def run(*_):
            raise KeyError("x") from ConnectionResetError("by peer")

        def killed(*_):
            java.kill()
            run()

        monkeypatch.setattr(java_ended, "_ENDS_WITHIN_S", 0.01)
        assert execution.execute(fake_job(run), job.Common("lake", quiet=True), None) == 1
        assert "failed with KeyError" in capsys.readouterr().err
        assert stopped == [1]
        monkeypatch.setattr(java_ended, "_ENDS_WITHIN_S", 60)
        assert execution.execute(fake_job(killed), job.Common("lake", quiet=True), None) == 1
    told = capsys.readouterr().err
    assert told.startswith(
        "kafka-state-replay: Spark's Java ended (killed by signal 9), as it does where the machine's memory"
    )
    assert told.endswith(f"Spark's log is {tmp_path / 'spark.log'}\n")
    assert told.count("\n") == 1
    assert stopped == [1]


def test_java_is_not_waited_for_where_who_reads_our_output_has_left():
    java = SimpleNamespace(poll=lambda: None)  # that it has no ``wait`` would be an error
    session = SimpleNamespace(sparkContext=SimpleNamespace(_gateway=SimpleNamespace(proc=java)))
    assert java_ended.how_it_ended(session, BrokenPipeError()) is None
    with pytest.raises(AttributeError):
        java_ended.how_it_ended(session, ConnectionResetError())


@pytest.mark.usefixtures("no_spark")
def test_nothing_of_others_controls_the_terminal(capsys):
    def run(spark, params, progress):
        progress("reading \x1b]0;owned\x07.log")
        return job.RunReport(("a topic \x1b[31m\u202e\rgone", "two\nlines"), ("cluster \x9b2J of \udcff",), 1)

    execution.execute(fake_job(run), job.Common("lake"), None)
    captured = capsys.readouterr()
    assert captured.out == "a topic \\x1b[31m\\u202e\\rgone\ntwo\nlines\n"
    assert "reading \\x1b]0;owned\\x07.log\n" in captured.err
    assert captured.err.endswith("kafka-state-replay: cluster \\x9b2J of \\udcff\n")


@pytest.mark.usefixtures("no_spark")
@pytest.mark.parametrize("verbose", [False, True])
def test_an_error_that_quotes_others_controls_no_terminal(capsys, verbose):
    def run(*_):
        raise ValueError("'\x1b[2J' is no number")

    execution.execute(fake_job(run), job.Common("lake", quiet=True, verbose=verbose), None)
    told = capsys.readouterr().err
    assert "\\x1b[2J" in told
    assert "\x1b" not in told


class TestShortRuns:
    @pytest.fixture
    def folder(self, tmp_path, monkeypatch):
        monkeypatch.setattr(run_configs, "MOST_BYTES", 100)
        monkeypatch.setattr(run_configs, "MOST_FILES", 5)
        (tmp_path / "logs").mkdir()
        return tmp_path / "logs"

    def test_little_is_read_in_a_short_run(self, folder):
        (folder / "server.log").write_bytes(b"x" * 100)
        assert run_configs.is_short([str(folder)], 100)
        assert run_configs.is_short([str(folder / "server.log"), str(folder / "none yet")], 100)

    def test_much_is_not(self, folder):
        (folder / "a").write_bytes(b"x" * 60)
        (folder / "b").write_bytes(b"x" * 60)
        assert not run_configs.is_short([str(folder)], 100)
        assert not run_configs.is_short([str(folder / "a"), str(folder / "b")], 100)

    def test_an_archive_holds_more_than_its_size(self, folder):
        (folder / "logs.tar.gz").write_bytes(b"x" * 11)
        assert not run_configs.is_short([str(folder)], 100)

    def test_many_files_take_long_however_small(self, folder):
        for number in range(8):
            (folder / str(number)).touch()
        assert not run_configs.is_short([str(folder)], 100)

    def test_who_knows_what_lies_elsewhere(self):
        assert not run_configs.is_short(["s3a://bucket/logs"], 100)

    def test_the_session_of_a_job_is_made_for_what_it_reads(self, folder, monkeypatch):
        _, common, params = cli.parse(["run", str(folder), "--lake", str(folder / "lake")])
        assert execution._config_of(run_job.JOB, common, params) == run_configs.TINY_RUN_CONFIG
        monkeypatch.setattr(run_configs, "TINY_BYTES", 10)
        (folder / "server.log").write_bytes(b"x" * 11)
        assert execution._config_of(run_job.JOB, common, params) == run_configs.SHORT_RUN_CONFIG
        (folder / "server.log").write_bytes(b"x" * 101)
        assert execution._config_of(run_job.JOB, common, params) == run_configs.LONG_RUN_CONFIG
        _, common, params = cli.parse(["ingest", str(folder), "--follow", "--lake", str(folder / "lake")])
        assert execution._config_of(ingest_job.JOB, common, params) == {}

    def test_a_lake_is_as_much_as_it_has_of_bronze(self, folder):
        for schema, size in (("bronze", 10), ("silver", 1000)):
            (folder / schema).mkdir()
            (folder / schema / "part.parquet").write_bytes(b"x" * size)
        _, common, params = cli.parse(["reconstruct", "--lake", str(folder)])
        assert execution._config_of(reconstruct_job.JOB, common, params) == run_configs.TINY_RUN_CONFIG
        (folder / "bronze" / "more.parquet").write_bytes(b"x")
        assert execution._config_of(reconstruct_job.JOB, common, params) == run_configs.LONG_RUN_CONFIG

    def test_what_the_last_run_knew_counts_less(self, folder):
        def config(*command: str) -> Mapping[str, str]:
            ran, common, params = cli.parse([*command, "--lake", str(folder)])
            return execution._config_of(ran, common, params)

        def is_first_compiler_alone(*command: str) -> bool:
            chosen = config(*command)
            options = "spark.driver.extraJavaOptions"
            assert PLANNED_WITH_CARE.items() <= chosen.items(), "as for so much text"
            assert chosen[options] in (run_configs.SHORT_RUN_CONFIG[options], run_configs.LONG_RUN_CONFIG[options])
            return chosen[options] == run_configs.SHORT_RUN_CONFIG[options]

        notes = folder / RUNS.schema / RUNS.name / "_delta_log"
        for made in (folder / "bronze", notes):
            made.mkdir(parents=True)
        most = 10 * run_configs.KNOWN_COUNTS
        (folder / "bronze" / "part.parquet").write_bytes(b"x" * most)
        (notes / "00000000000000000000.json").touch()  # the table, and no run yet
        assert not is_first_compiler_alone("reconstruct")
        assert not is_first_compiler_alone("ingest", str(folder / "kept"))
        assert is_first_compiler_alone("report"), "it looks into what is there"
        assert not is_first_compiler_alone("maintain")

        note = notes / "00000000000000000001.json"
        note.touch()
        later = note.stat().st_mtime + 10
        os.utime(note, (later, later))
        for command in (["reconstruct"], ["ingest", str(folder / "kept")], ["run", str(folder / "kept")]):
            assert is_first_compiler_alone(*command), command
        assert not is_first_compiler_alone("reconstruct", "--full")
        earlier = note.stat().st_mtime - 20
        os.utime(note, (earlier, earlier))
        os.utime(folder / "bronze" / "part.parquet", (earlier - 1, earlier - 1))
        assert not is_first_compiler_alone("reconstruct"), "as old as it says it is, and new here"
        assert not is_first_compiler_alone("run", str(folder / "kept"))
        assert is_first_compiler_alone("check")

        (folder / "bronze" / "part.parquet").write_bytes(b"x" * (most + 3))
        assert not is_first_compiler_alone("report")


@pytest.mark.usefixtures("no_spark")
class TestTheRecordOfARun:
    @pytest.fixture
    def record(self, tmp_path):
        """Runs a job and reads what it wrote as JSON."""

        def of(run):
            path = tmp_path / "run.json"
            code = execution.execute(fake_job(run), job.Common("lake", quiet=True, json_file=str(path)), None)
            written = json.loads(path.read_text())
            assert written["exit_code"] == code
            return written

        return of

    def test_tells_what_was_done_and_how_long_each_stage_took(self, record):
        def run(spark, params, progress):
            progress("one")
            progress("two")
            return ingest_job.summary_of(
                IngestReport(files_new=2, records_read=10, records_kept=10, clusters=("c",), warnings=("odd",))
            )

        written = record(run)
        assert [stage["name"] for stage in written["stages"]] == ["starting Spark", "opening the lake", "one", "two"]
        assert all(stage["seconds"] >= 0 for stage in written["stages"])
        assert written["ingest"]["records_read"] == 10
        assert written["ingest"]["clusters"] == ["c"]
        assert written["problems"] == ["warning: odd"]
        assert written["versions"]["pyspark"].startswith("4.")
        assert written["started_at"] <= written["ended_at"]

    @pytest.mark.parametrize(("error", "code"), [(job.UsageError("bad SQL"), 2), (KeyError("x"), 1)])
    def test_tells_of_a_failure_too(self, record, error, code):
        def run(*_):
            raise error

        written = record(run)
        assert written["exit_code"] == code
        assert len(written["problems"]) == 1

    def test_that_cannot_be_written_fails_the_job(self, tmp_path, capsys):
        (tmp_path / "folder").mkdir()
        common = job.Common("lake", quiet=True, json_file=str(tmp_path / "folder"))
        assert execution.execute(fake_job(lambda *_: job.RunReport()), common, None) == job.FAILED
        assert "cannot be written" in capsys.readouterr().err

    def test_needs_a_folder_that_is_there(self, tmp_path):
        (tmp_path / "lake").mkdir()
        with pytest.raises(job.UsageError, match="no such folder"):
            cli.parse(["check", "--lake", str(tmp_path / "lake"), "--json", str(tmp_path / "none" / "run.json")])


@pytest.mark.usefixtures("no_spark")
def test_the_lake_s_and_the_ingest_s_own_errors_are_sentences(capsys):
    import ingest.run.pipeline  # noqa: F401 - the job that raised has imported it
    from ingest.lake.delta import LakeError
    from ingest.run.accounting import IngestError

    for error in (LakeError("another version: do this"), IngestError("an empty folder: do that")):

        def run(*_, raised=error):
            raise raised

        assert execution.execute(fake_job(run), job.Common("lake", quiet=True), None) == 1
        assert capsys.readouterr().err == f"kafka-state-replay: {error}\n"
