"""The shell of ``sql``: statements ended by a semicolon, names completed by Tab, history kept in the cache."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jobs.command.job import UsageError
from jobs.command.lost_files import lost_file
from jobs.session.caches import cache_dir
from jobs.session.printable import printable
from jobs.sql import catalog
from jobs.sql.answer import answer
from jobs.sql.names import LakeNames
from jobs.sql.text import split_statements, statements_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PROMPT: Final = "sql> "
_CONTINUED: Final = "  -> "
_LEAVING: Final = ("exit", "quit", "\\q")
_SHORT_HELP: Final = "End a statement with ; and leave with exit or Ctrl-D. help says more, \\d lists the tables."
_HELP: Final = """\
SELECT ...;   runs a statement, which may go over several lines, to its semicolon
\\d            the tables and views, with what a row of each is
\\d NAME       the columns of one, with their meanings
Tab           completes names; the arrow keys bring earlier statements back
Ctrl-C        stops what runs; exit, quit, \\q or Ctrl-D leave
Saved questions are views: SELECT * FROM questions.unclean_elections;
or functions: SELECT * FROM leader_at(TIMESTAMP '2026-11-21 03:37:00');"""


def interact(spark: SparkSession, names: LakeNames, style: str) -> None:
    """Read statements until the end of input. On a terminal an error is printed and the shell goes on; otherwise the
    first one ends it with :class:`UsageError`."""
    if not sys.stdin.isatty():
        for statement in statements_of(sys.stdin.read()):
            names.name([statement])
            answer(spark, statement, style)
        return
    history = _line_editing()
    print(_SHORT_HELP, file=sys.stderr)
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
        meaning = None if pending else _meaning_of(line)
        if meaning is not None:
            print(meaning)
            continue
        complete, pending = split_statements(f"{pending}\n{line}" if pending else line)
        for statement in complete:
            _answer_or_say(spark, names, statement, style)
    _save(history)


def _meaning_of(line: str) -> str | None:
    """What ``help`` or ``\\d`` says; None for what is SQL."""
    word, _, rest = line.strip().rstrip(";").partition(" ")
    if line.strip().rstrip(";").lower() in ("help", "\\?"):
        return _HELP
    if word != "\\d":
        return None
    name = rest.strip()
    return (
        catalog.description(name) or f"no table or view {printable(name)}: \\d lists them"
        if name
        else catalog.listing()
    )


def _answer_or_say(spark: SparkSession, names: LakeNames, statement: str, style: str) -> None:
    try:
        names.name([statement])
        count = answer(spark, statement, style)
        print(f"({count} row{'' if count == 1 else 's'})", file=sys.stderr)
    except UsageError as error:
        print(printable(str(error)), file=sys.stderr)
    except Exception as error:
        problem = lost_file(error)
        if problem is None:
            raise
        print(printable(problem), file=sys.stderr)
    except KeyboardInterrupt:
        spark.sparkContext.cancelAllJobs()
        print("interrupted", file=sys.stderr)


def _line_editing() -> Path | None:
    """Arrow keys, names completed and the statements of earlier shells, where this Python has readline."""
    try:
        import readline
    except ImportError:
        return None
    path = cache_dir() / "sql_history"
    with contextlib.suppress(OSError):
        readline.read_history_file(path)
    readline.set_history_length(1000)
    readline.set_completer_delims(" \t\n,;()=<>'`")
    readline.set_completer(completion)
    readline.parse_and_bind("tab: complete")
    return path


def completion(begun: str, state: int) -> str | None:
    """The name of that number that begins so; a column may stand behind an alias (``l.valid_f``)."""
    names = [name for name in catalog.words() if name.startswith(begun.lower())]
    if not names and "." in begun:
        alias, _, column = begun.rpartition(".")
        names = [f"{alias}.{name}" for name in catalog.words() if "." not in name and name.startswith(column.lower())]
    return names[state] if state < len(names) else None


def _save(path: Path | None) -> None:
    if path is None:
        return
    import readline

    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        readline.write_history_file(path)
