"""``sql``: what is run, what is refused, and how rows are printed."""

from __future__ import annotations

import csv
import io
import json
import shutil
import signal
import threading
import time
from pathlib import Path

import pytest

from jobs import cli

EVERY_KIND = """
SELECT 1 AS a, 'x' AS a, array(1, NULL) AS isr, CAST(NULL AS STRING) AS nothing,
       TIMESTAMP '2026-11-21T01:02:03.123456Z' AS at, array(TIMESTAMP '2026-11-21T03:02:03+02:00') AS ats,
       map('k', 'v') AS m, 'line\nend "quoted", \\u001b[31m' AS text
"""


@pytest.fixture
def ask(lake, capsys):
    """Run ``sql`` on an empty lake: (exit code, standard output, standard error)."""

    def run(*argv: str) -> tuple[int, str, str]:
        code = cli.main(["sql", "--lake", lake.root, "-q", *argv])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_json_is_one_array_of_whole_objects(ask):
    code, out, err = ask(EVERY_KIND, "--format", "json")
    assert (code, err) == (0, "")
    assert json.loads(out) == [
        {
            "a": 1,
            "a_2": "x",
            "isr": [1, None],
            "nothing": None,
            "at": "2026-11-21T01:02:03.123456Z",
            "ats": ["2026-11-21T01:02:03.000000Z"],
            "m": {"k": "v"},
            "text": 'line\nend "quoted", \x1b[31m',
        }
    ]


def test_json_of_no_row_is_an_empty_array(ask):
    assert ask("SELECT * FROM gold.divergences", "--format", "json") == (0, "[]\n", "")


def test_json_holds_every_row_in_order(ask):
    _, out, _ = ask("SELECT id FROM range(0, 3000, 1, 7) ORDER BY id DESC", "--format", "json")
    assert [row["id"] for row in json.loads(out)] == list(range(2999, -1, -1))


def test_a_terminal_gets_the_first_rows_of_a_table_and_a_file_all(ask, monkeypatch):
    many = "SELECT id FROM range(0, 3000, 1, 7) ORDER BY id"
    assert len(ask(many)[1].splitlines()) == 3002
    monkeypatch.setattr("sys.stdout", terminal := io.StringIO())
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    assert ask(many)[0] == 0
    lines = terminal.getvalue().splitlines()
    assert (len(lines), lines[-2].strip()) == (1003, "999")
    assert "more than 1,000 rows" in lines[-1]


def test_csv_runs_nothing_in_a_spreadsheet(ask):
    _, out, _ = ask(
        "SELECT '=cmd|calc' AS `=x`, '@a' AS b, -1 AS c, '-1' AS d, ' +1+2' AS e, 'a=b' AS f", "--format", "csv"
    )
    assert out == "'=x,b,c,d,e,f\n'=cmd|calc,'@a,-1,-1,' +1+2,a=b\n"


def test_csv_reads_back(ask):
    _, out, _ = ask(EVERY_KIND, "--format", "csv")
    header, row = csv.reader(io.StringIO(out))
    assert header == ["a", "a", "isr", "nothing", "at", "ats", "m", "text"]
    assert row[2:5] == ["[1,null]", "", "2026-11-21T01:02:03.123456Z"]
    assert row[7] == 'line\nend "quoted", \x1b[31m'


def test_a_table_is_aligned_and_holds_no_control_character(ask):
    _, out, _ = ask("SELECT 7 AS number, 'a\n\\u001b[31mb' AS text UNION ALL SELECT 1000, NULL ORDER BY number")
    assert out == "number  text\n------  ------------\n     7  a\\n\\x1b[31mb\n  1000  NULL\n"


def test_tables_are_named_by_schema(ask):
    code, out, _ = ask("SHOW TABLES IN silver", "--format", "csv")
    assert code == 0
    assert "silver,leader_and_isr_timeline,false" in out.splitlines()


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("SELECT nope FROM gold.divergences", "`nope` cannot be resolved"),
        ("SELECT * FROM gold.nope", "`gold`.`nope`, which is no table of the lake"),
        ("SELECT * FROM divergences", "no table of the lake (did you mean gold.divergences?)"),
        ("SELECT * FROM gold.replica_lg", "(did you mean silver.replica_lag?)"),
        ("SELECT 1 +", "Syntax error"),
        ("SELECT 1 / (id - 1) FROM range(3)", "Division by zero"),
        ("SELECT CAST(concat('x', id) AS INT) FROM range(3)", "cannot be cast"),
        ("DROP TABLE gold.divergences", "read-only"),
    ],
)
def test_bad_sql_is_one_line_and_exit_code_2(ask, statement, words):
    code, _, err = ask(statement, "--format", "csv")
    assert code == 2
    assert words in err
    assert err.count("\n") == 1


def test_a_refused_statement_leaves_the_table(ask, lake):
    from ingest.lake.tables import TABLES

    ask("DROP TABLE gold.divergences")
    assert lake.exists(TABLES["gold.divergences"])


def test_a_file_s_statements_are_run_in_order(ask, tmp_path):
    (tmp_path / "two.sql").write_text("SELECT 1 AS one; -- and\nSELECT ';' AS two", encoding="utf-8")
    assert ask("-f", str(tmp_path / "two.sql"), "--format", "csv") == (0, "one\n1\ntwo\n;\n", "")


def test_of_several_statements_each_answer_is_labelled_and_the_wrong_one_named(ask, tmp_path):
    file = tmp_path / "three.sql"
    file.write_text("SELECT 1 AS one; SELECT\n 2 AS two; SELECT 1 / 'x'; SELECT 3", encoding="utf-8")
    code, out, err = ask("-f", str(file))
    assert out.startswith(
        "-- statement 1 of 4: SELECT 1 AS one\n\none\n---\n  1\n\n-- statement 2 of 4: SELECT 2 AS two"
    )
    assert code == 2
    assert "statement 3 of 4: SELECT 1 / 'x': [" in err
    assert "SELECT 3" not in out


def test_without_a_terminal_the_shell_reads_standard_input(ask, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT 1 AS one;\nSELECT 2 AS two\n"))
    assert ask("--format", "csv") == (0, "one\n1\ntwo\n2\n", "")


def test_ctrl_c_ends_what_runs_and_the_shell_goes_on(ask, spark, monkeypatch):
    monkeypatch.setattr("sys.stdin", stdin := io.StringIO())
    monkeypatch.setattr(stdin, "isatty", lambda: True)
    monkeypatch.setattr("jobs.sql.shell._line_editing", lambda: None)
    # a process that a script starts in the background ignores interrupts
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    lines = iter(["SELECT count(*) FROM range(1000000000000) WHERE id % 7 = sqrt(id);", "SELECT 41 + 1 AS x;", "exit"])
    main, tracker = threading.main_thread().ident, spark.sparkContext.statusTracker()

    def interrupt() -> None:
        while not tracker.getActiveJobsIds():
            time.sleep(0.05)
        signal.pthread_kill(main, signal.SIGINT)

    monkeypatch.setattr("builtins.input", lambda _: next(lines))
    waiting = threading.Thread(target=interrupt)
    waiting.start()
    try:
        code, out, err = ask()
    finally:
        signal.signal(signal.SIGINT, before)
        waiting.join()
    assert code == 0
    assert "interrupted" in err
    assert out.split() == ["x", "--", "42"]
    until = time.monotonic() + 60
    while tracker.getActiveJobsIds() and time.monotonic() < until:
        time.sleep(0.1)
    assert tracker.getActiveJobsIds() == []


def test_a_folder_that_is_no_lake(spark, tmp_path, capsys):
    assert cli.main(["sql", "--lake", str(tmp_path), "-q", "SELECT 1"]) == 2
    assert "holds no table of a lake" in capsys.readouterr().err


def test_a_column_s_name_controls_no_terminal(ask):
    _, out, _ = ask("SELECT 1 AS `\x1b[31mred`")
    assert out.splitlines()[0] == "\\x1b[31mred"


def test_a_file_that_vanishes_is_told_in_one_sentence(spark, ask, lake, capsys):
    from ingest.lake.tables import TABLES
    from jobs.sql.names import LakeNames
    from jobs.sql.shell import _answer_or_say

    folder = Path(lake.path(TABLES["gold.divergences"]))
    shutil.rmtree(folder)
    spark.range(3).write.format("delta").save(str(folder))
    (whole, *_) = sorted(folder.glob("*.parquet"))
    whole.write_bytes(whole.read_bytes()[:-9])
    code, _, err = ask("SELECT * FROM gold.divergences ORDER BY id")
    assert (code, err.count("\n")) == (1, 1)
    assert err.startswith(f"kafka-state-replay: {whole} cannot be read, it is cut or damaged: put it back")

    whole.unlink()
    for statement in ("SELECT * FROM gold.divergences", "SELECT count(id + 1) FROM gold.divergences"):
        code, _, err = ask(statement)
        assert (code, err.count("\n")) == (1, 1)
        assert err.startswith(f"kafka-state-replay: {whole} is gone: where another job was tidying the lake")

    _answer_or_say(spark, LakeNames(spark, lake.root), "SELECT * FROM gold.divergences", "csv")
    assert capsys.readouterr().err.startswith(f"{whole} is gone: ")
