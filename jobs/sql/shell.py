"""The shell of ``sql``: statements ended by a semicolon, history kept in the cache."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jobs.command.job import UsageError
from jobs.session.caches import cache_dir
from jobs.session.printable import printable
from jobs.sql.answer import answer
from jobs.sql.text import split_statements, statements_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PROMPT: Final = "sql> "
_CONTINUED: Final = "  -> "
_LEAVING: Final = ("exit", "quit", "\\q")
_HELP: Final = "End a statement with ; and leave with exit or Ctrl-D. SHOW TABLES IN gold; names tables."


def interact(spark: SparkSession, style: str) -> None:
    """Read statements until the end of input. On a terminal an error is printed and the shell goes on; otherwise the
    first one ends it with :class:`UsageError`."""
    if not sys.stdin.isatty():
        for statement in statements_of(sys.stdin.read()):
            answer(spark, statement, style)
        return
    history = _history()
    print(_HELP, file=sys.stderr)
    pending = ""
    while True:
        try:
            line = input(_CONTINUED if pending else _PROMPT)
        except EOFError:
            print(file=sys.stderr)
            break
        except KeyboardInterrupt:
            print(file=sys.stderr)
            pending = ""
            continue
        if not pending and line.strip().rstrip(";").lower() in _LEAVING:
            break
        complete, pending = split_statements(f"{pending}\n{line}" if pending else line)
        for statement in complete:
            _answer_or_say(spark, statement, style)
    _save(history)


def _answer_or_say(spark: SparkSession, statement: str, style: str) -> None:
    try:
        count = answer(spark, statement, style)
        print(f"({count} row{'' if count == 1 else 's'})", file=sys.stderr)
    except UsageError as error:
        print(printable(str(error)), file=sys.stderr)
    except KeyboardInterrupt:
        spark.sparkContext.cancelAllJobs()
        print("interrupted", file=sys.stderr)


def _history() -> Path | None:
    """Arrow keys and the statements of earlier shells, where this Python has readline."""
    try:
        import readline
    except ImportError:
        return None
    path = cache_dir() / "sql_history"
    with contextlib.suppress(OSError):
        readline.read_history_file(path)
    readline.set_history_length(1000)
    return path


def _save(path: Path | None) -> None:
    if path is None:
        return
    import readline

    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        readline.write_history_file(path)
