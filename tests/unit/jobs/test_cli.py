"""The command line without Spark: options, errors before the start, what is printed."""

from __future__ import annotations

import subprocess
import sys
import time
from datetime import UTC, datetime

import pytest

from dashboards.questions.question import questions
from dashboards.views import QUESTION_FUNCTIONS, QUESTION_VIEWS, VIEWS
from ingest.lake.tables import TABLES
from ingest.run.pipeline import IngestReport
from jobs import cli, demo_job, ingest_job, reconstruct_job
from jobs.command import job
from jobs.sql import output as sql_output
from jobs.sql import read_only as sql_read_only
from jobs.sql.names import meant_by
from jobs.sql.text import split_statements


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(job.LAKE_VARIABLE, raising=False)


def params_of(command: str, argv: list[str]):
    """The parameters that the command line makes of these options."""
    return cli.parse([command, *argv])[2]


def error_of(capsys, *argv: str) -> str:
    """The one line that a wrong use prints, with exit code 2."""
    assert cli.main(argv) == job.WRONG_USE
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("kafka-state-replay: ")
    assert captured.err.count("\n") == 1
    return captured.err


def test_starting_takes_no_spark():
    code = "import sys, jobs.cli; jobs.cli.build_parser(); sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_version(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("kafka-state-replay 0.")


@pytest.mark.parametrize(
    "argv", [[], ["nonsense"], ["run", "--nonsense"], ["sql", "--format", "xml", "SELECT 1"], ["run", "-q", "-v"]]
)
def test_wrong_options_exit_with_2(argv):
    with pytest.raises(SystemExit) as ended:
        cli.main(argv)
    assert ended.value.code == 2


def test_a_missing_path_is_named(capsys, tmp_path):
    assert f"there is no file or folder {tmp_path}/nowhere" in error_of(capsys, "run", "nowhere")


def test_no_path_at_all(capsys):
    assert "no PATH given" in error_of(capsys, "ingest")


@pytest.mark.parametrize("command", ["reconstruct", "check", "report", "sql"])
def test_reading_a_lake_that_is_not_there(capsys, command, tmp_path):
    sentence = error_of(capsys, command, "--lake", "nolake")
    assert f"there is no lake at {tmp_path}/nolake" in sentence
    assert "kafka-state-replay ingest PATH" in sentence


def test_the_lake_comes_from_the_option_then_the_environment_then_here(monkeypatch, tmp_path):
    options = cli.build_parser().parse_args(["reconstruct"])
    assert job.common_of(options).lake == str(tmp_path / "lake")
    monkeypatch.setenv(job.LAKE_VARIABLE, "elsewhere")
    assert job.common_of(options).lake == str(tmp_path / "elsewhere")
    options = cli.build_parser().parse_args(["reconstruct", "--lake", "s3a://bucket/lake"])
    assert job.common_of(options).lake == "s3a://bucket/lake"


def test_a_cluster_s_path_is_left_alone():
    options = cli.build_parser().parse_args(["reconstruct", "--lake", "/lake", "--master", "yarn"])
    common = job.common_of(options)
    assert (common.lake, common.is_on_this_machine) == ("/lake", False)
    job.require_lake(common)


def test_an_output_folder_that_is_a_file(capsys, tmp_path):
    (tmp_path / "a.log").write_text("x")
    assert "is a file: --out takes a folder" in error_of(capsys, "run", "a.log", "--out", "a.log")
    assert "is a file: --lake takes a folder" in error_of(capsys, "run", "a.log", "--lake", "a.log")


@pytest.mark.parametrize("option", [("--format", "markdown"), ("--topic", "orders"), ("--from", "2026-11-21")])
def test_run_takes_no_option_of_the_report_that_it_would_drop(capsys, option):
    with pytest.raises(SystemExit):
        cli.main(["run", "a.log", *option])
    assert f"unrecognized arguments: {' '.join(option)}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            ("--at", "2026-11-21", "--from", "2026-11-21", "--to", "2026-11-22"),
            "give --at TIME, or --from TIME and --to",
        ),
        (("--from", "2026-11-21"), "give --at TIME, or --from TIME and --to TIME"),
        (("--to", "2026-11-21"), "--at not given: give --topic T --partition P --at TIME"),
        (("--from", "2026-11-22", "--to", "2026-11-21"), "--to must be later than --from"),
    ],
)
def test_explain_takes_one_time_or_two(capsys, tmp_path, given, sentence):
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "bronze").mkdir()
    assert sentence in error_of(capsys, "explain", "--topic", "t", "--partition", "0", *given)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (("--incident", "1d00"), "an incident is told whole: leave out --broker"),
        (("--at", "2026-11-21"), "--topic, --partition not given: give --topic T --partition P --at TIME, or"),
        (("--at", "2026-11-21"), "of a broker alone `report --broker ID` and `ask broker-lives` tell"),
    ],
)
def test_explain_says_where_a_broker_makes_no_sense(capsys, tmp_path, given, sentence):
    (tmp_path / "lake" / "bronze").mkdir(parents=True)
    assert sentence in error_of(capsys, "explain", "--broker", "2", *given)


def test_explain_takes_a_broker_as_report_does(tmp_path):
    where = ["--topic", "t", "--partition", "0", "--at", "2026-11-21", "--broker", "2"]
    (tmp_path / "lake" / "bronze").mkdir(parents=True)
    assert params_of("explain", where).broker_id == 2


def test_ingest_options(tmp_path):
    (tmp_path / "logs" / "b1").mkdir(parents=True)
    (tmp_path / "b2").mkdir()
    argv = ["logs", "--broker", "1=logs/b1", "--broker", "2=b2", "--cluster", "c", "--timezone", "Europe/Berlin"]
    params = params_of("ingest", [*argv, "--kafka-version", "0.8.2.2"])
    assert params.paths == (str(tmp_path / "logs"), str(tmp_path / "b2"))
    assert params.options.brokers == {str(tmp_path / "logs/b1"): 1, str(tmp_path / "b2"): 2}
    options = params.options
    assert (options.cluster_id, options.time_zone, options.kafka_version) == ("c", "Europe/Berlin", "0.8.2.2")


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--broker", "one=.", "--broker 1=logs/first"),
        ("--broker", "1", "--broker 1=logs/first"),
        ("--broker", "1=nowhere", "there is no file or folder"),
        ("--timezone", "Mars/Olympus", "no such zone"),
        ("--kafka-version", "three", "give numbers"),
    ],
)
def test_ingest_options_that_cannot_be(capsys, option, value, words):
    assert words in error_of(capsys, "ingest", ".", option, value)


def test_an_offset_is_a_time_zone():
    assert params_of("ingest", [".", "--timezone", "+02:00"]).options.time_zone == "+02:00"


def test_run_takes_the_options_of_its_parts():
    params = params_of("run", [".", "--out", "o", "--title", "T"])
    assert (params.title, params.out_dir.endswith("/o")) == ("T", True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[metrics.nothing]\nwarning = 1", "there is no metric 'nothing'"),
        ("[metrics.rejected_records_ratio]\nwarning = 'much'", "give a number, or false for none"),
        (
            "[metrics.rejected_records_ratio]\ncritical = 0.001",
            "critical = 0.001 is below warning = 0.01 (the default)",
        ),
        ("[metrics.rejected_records_ratio", "no valid TOML"),
    ],
)
def test_thresholds_that_cannot_be(capsys, tmp_path, text, words):
    (tmp_path / "lake").mkdir()
    (tmp_path / "t.toml").write_text(text)
    for command in (("check",), ("run", ".")):
        sentence = error_of(capsys, *command, "--thresholds", "t.toml")
        assert words in sentence
        assert "--thresholds: t.toml: " in sentence
    assert "cannot read none.toml" in error_of(capsys, "check", "--thresholds", "none.toml")


def test_check_and_run_take_thresholds(tmp_path):
    (tmp_path / "lake").mkdir()
    (tmp_path / "t.toml").write_text("[metrics.rejected_records_ratio]\ncritical = 0.5\n")
    for params in (
        params_of("check", ["--thresholds", "t.toml"]),
        params_of("run", [".", "--thresholds", "t.toml"]),
    ):
        assert params.thresholds.given["rejected_records_ratio"].critical == 0.5
    assert params_of("check", []).thresholds is None
    assert params_of("run", ["."]).thresholds is None


def test_maintain_keeps_a_week_unless_told(tmp_path):
    _, common, params = cli.parse(["maintain", "--lake", str(tmp_path)])
    assert (params.lake, params.keep_days, common.wait_seconds) == (str(tmp_path), 7, 0)
    _, common, params = cli.parse(["maintain", "--lake", str(tmp_path), "--keep-days", "0.5", "--wait", "60"])
    assert (params.keep_days, common.wait_seconds) == (0.5, 60)


@pytest.mark.parametrize("option", ["--keep-days", "--wait"])
def test_no_days_or_seconds_below_0(capsys, tmp_path, option):
    assert cli.main(["maintain", "--lake", str(tmp_path), option, "-1"]) == 2
    assert f"{option} -1: give" in capsys.readouterr().err


def test_only_commands_that_write_the_lake_wait_for_it():
    waiting = {job.name for job in cli.JOBS if job.writes_lake is not None}
    assert waiting == {"ingest", "reconstruct", "check", "run", "maintain", "undo"}


def test_demo_uses_a_folder_of_its_own_unless_one_is_given(tmp_path):
    assert params_of("demo", []).lake is None
    assert params_of("demo", ["--lake", "here"]).lake == str(tmp_path / "here")


def test_the_demo_capture_is_package_data_and_holds_its_logs():
    import tarfile
    from importlib import resources

    with resources.as_file(resources.files("jobs") / demo_job.CAPTURE) as folder:
        (archive,) = list(folder.iterdir())
        with tarfile.open(archive) as opened:
            names = opened.getnames()
    for broker in (1, 2, 3):
        for log in ("state-change", "controller", "server"):
            assert f"unclean-3.9.1-info/broker-{broker}/logs/{log}.log" in names
    assert any("/znodes/" in name for name in names)
    assert not any("zk-version-2" in name or "probes" in name or "events.jsonl" in name for name in names)


def ingest_report(**changes):
    values = {"files_new": 2, "files_known": 1, "clusters": ("c",), "warnings": ("odd",)}
    records = {"records_read": 10, "records_kept": 9, "records_rejected": 1}
    return IngestReport(**(values | records | changes))


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["offset-at"], "there is no question 'offset-at': did you mean offsets-at"),
        (["offsets-at"], "offsets-at needs --at: the instant asked about"),
        (["isr-flapping", "--at", "2026-11-21"], "isr-flapping knows no --at: it takes --cluster, --topic"),
        (["leader-at", "--at", "noon"], "--at 'noon' is no time"),
        (["findings", "--list"], "give NAME or --list, not both"),
        (["findings"], "there is no lake"),
    ],
)
def test_questions_that_cannot_be_asked(capsys, argv, words):
    assert words in error_of(capsys, "ask", *argv, "--lake", "nolake")


def test_questions_are_listed_and_shown_without_spark(capsys):
    assert cli.main(["ask", "--list"]) == job.DONE
    listed = capsys.readouterr().out
    assert all(f"  {name} " in listed for name in questions())
    assert cli.main(["ask", "leader-at", "--show"]) == job.DONE
    shown = capsys.readouterr().out
    assert "ask leader-at [--cluster ID] [--topic T] [--partition P] [--broker ID] --at TIME" in shown
    assert shown.endswith(f"{questions()['leader-at'].sql}\n")


def test_a_question_s_parameters_are_values_and_null_where_not_given():
    _, _, params = cli.parse(["ask", "leader-at", "--show", "--topic", "a' OR 1=1", "--at", "2026-11-21T03:28"])
    at = datetime(2026, 11, 21, 3, 28, tzinfo=UTC)
    none = dict.fromkeys(("cluster", "partition", "broker"))
    assert params.given == {**none, "topic": "a' OR 1=1", "at": at}
    assert ":topic" in params.question.sql


def test_the_ingest_summary_accounts_for_every_record():
    report = ingest_job.summary_of(ingest_report())
    assert "records   10 read = 9 kept + 1 rejected" in report.summary
    assert (report.exit_code, report.problems) == (0, ("warning: odd",))


def test_nothing_recognised_is_a_failure():
    report = ingest_job.summary_of(ingest_report(files_new=0, files_known=0, warnings=()))
    assert report.exit_code == job.FAILED
    assert report.problems[0].startswith("nothing recognised")


def test_findings_are_counted_by_severity():
    line = reconstruct_job.findings_line({"info": 3, "error": 1})
    assert line == "findings  1 error, 0 warning, 3 info"


@pytest.mark.parametrize(
    ("statements", "named"),
    [
        (["SELECT 1 FROM silver.Znode_Changes"], ["znode_changes"]),
        (["USE gold", "SELECT * FROM divergences"], ["divergences"]),
        (["SELECT * FROM bronze.evidence_lines"], ["evidence_lines"]),
        (["SELECT * FROM questions.elections"], ["elections"]),
        (["SELECT * FROM `gold`.`incidents`"], ["incidents"]),
        (["SELECT 1"], []),
    ],
)
def test_sql_names_the_tables_that_statements_may_mean(statements, named):
    assert [one.name for one in meant_by(statements)] == named


def test_sql_names_every_table_where_a_statement_may_list_them_or_make_a_name():
    every = [*TABLES, *VIEWS]
    for statement in ("SHOW TABLES IN gold; SELECT * FROM divergences", "SELECT * FROM IDENTIFIER('gold.' || 'x')"):
        assert [one.full_name for one in meant_by([statement])] == every
    with_questions = [*every, *QUESTION_VIEWS, *(one.full_name for one in QUESTION_FUNCTIONS.values())]
    assert [one.full_name for one in meant_by(["SHOW TABLES IN questions"])] == with_questions
    assert [one.full_name for one in meant_by(None)] == with_questions


@pytest.mark.parametrize(
    ("text", "statements", "rest"),
    [
        ("SELECT 1", [], "SELECT 1"),
        ("SELECT 1; SELECT 2;", ["SELECT 1", "SELECT 2"], ""),
        ("SELECT ';'; x", ["SELECT ';'"], "x"),
        ("SELECT 'it''s;'; x", ["SELECT 'it''s;'"], "x"),
        (r"SELECT '\';'; x", [r"SELECT '\';'"], "x"),
        ("SELECT `a;b`; x", ["SELECT `a;b`"], "x"),
        ("SELECT 1 -- a;b\n; x", ["SELECT 1 -- a;b"], "x"),
        ("/* ; */ SELECT 1; x", ["/* ; */ SELECT 1"], "x"),
        (";; -- nothing\n;", [], ""),
    ],
)
def test_statements_are_cut_at_semicolons_that_end_them(text, statements, rest):
    assert split_statements(text) == (statements, rest)


def test_sql_takes_one_source(capsys, tmp_path):
    (tmp_path / "lake").mkdir()
    (tmp_path / "two.sql").write_text("SELECT 1; SELECT 2")
    assert "not both" in error_of(capsys, "sql", "SELECT 1", "-f", "two.sql")
    assert "cannot read none.sql" in error_of(capsys, "sql", "-f", "none.sql")
    assert "one statement" in error_of(capsys, "sql", "SELECT 1; SELECT 2")
    assert "one array" in error_of(capsys, "sql", "-f", "two.sql", "--format", "json")
    assert "no SQL statement" in error_of(capsys, "sql", " -- nothing")
    assert params_of("sql", ["-f", "two.sql"]).statements == ("SELECT 1", "SELECT 2")
    assert params_of("sql", []).statements is None


def test_the_first_word_is_found_behind_comments_and_parentheses():
    assert sql_read_only.first_word("/* a */ -- b\n ((select 1))") == "SELECT"
    assert sql_read_only.first_word("-- only a comment") == ""


def test_doubled_column_names_are_told_apart():
    assert sql_output.unique_names(["a", "a", "a_2", "a"]) == ["a", "a_3", "a_2", "a_4"]


CAPTURE = ("capture", "--out", "c")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ((), "nothing to capture: give --zookeeper, --bootstrap-server, --logs or --log-dirs"),
        (("--bootstrap-server", "host"), "'host' is no HOST:PORT of a bootstrap server"),
        (("--logs", "/var/log/kafka"), "--logs takes ID=PATH, as --logs 1=/var/lib/kafka: not '/var/log/kafka'"),
        (("--log-dirs", "1=/nowhere"), "there is no /nowhere, which --log-dirs names"),
        (("--zookeeper", "h:1", "--interval", "0"), "--interval takes a time such as 500ms, 1s or 10m"),
        (("--zookeeper", "h:1", "--for", "soon"), "--for takes a time such as 500ms, 1s or 10m"),
        (("--zookeeper", "h:1", "--rounds", "0"), "--rounds takes a number above 0"),
        (("--zookeeper", "h:1", "--kafka-version", "new"), "--kafka-version takes a version such as 0.8.2 or 3.9"),
        (
            ("--zookeeper", "h:1", "--client-properties", "no.properties"),
            "cannot read the client properties no.propert",
        ),
    ],
)
def test_what_capture_cannot_be_asked_for(capsys, options, sentence):
    assert sentence in error_of(capsys, *CAPTURE, *options)


def test_capture_says_in_one_sentence_that_nobody_is_there(capsys, tmp_path):
    assert cli.main([*CAPTURE, "-q", "--bootstrap-server", "127.0.0.1:1"]) == job.FAILED
    assert capsys.readouterr().err == (
        "kafka-state-replay: no broker can be asked: nothing listens at 127.0.0.1:1; see --bootstrap-server\n"
    )


def test_capture_stops_on_sigterm_with_a_summary_and_without_spark(tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/server.log").write_text("[2026-11-21 03:32:49,000] INFO one (kafka.server.KafkaServer)\n")
    code = (
        "import sys, jobs.cli; code = jobs.cli.main(sys.argv[1:]);"
        " from pyspark import SparkContext; sys.exit(code if SparkContext._gateway is None else 9)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, *CAPTURE, "--logs", "1=logs", "--interval", "100ms"],
        stdout=subprocess.PIPE,
        text=True,
    )
    copy = tmp_path / "c/broker-1/logs/server.log"
    until = time.monotonic() + 60
    while not copy.exists() and time.monotonic() < until:
        time.sleep(0.05)
    process.terminate()
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "62 bytes of logs" in output
    assert copy.read_bytes() == (tmp_path / "logs/server.log").read_bytes()
