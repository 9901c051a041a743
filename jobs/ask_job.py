"""``ask NAME``: a saved question with its parameters; ``ask --list``: which there are."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dashboards.questions.question import PARAMETERS, TIMES, Question, questions
from jobs.command.execution import main
from jobs.command.job import PROGRAM, Common, Job, RunReport, ShowProgress, UsageError, require_lake
from jobs.explain_job import span_of
from jobs.session.progress import silent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_METAVARS: Final = {"cluster": "ID", "topic": "T", "partition": "P", "broker": "ID", **dict.fromkeys(TIMES, "TIME")}


@dataclass(frozen=True)
class Params:
    """``question`` is None for the list; ``given`` holds the parameters by their names, times as instants."""

    lake: str
    question: Question | None
    given: Mapping[str, Any]
    format: str = "table"
    with_evidence: bool = False
    shows_itself: bool = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="the question; --list names them")
    parser.add_argument("--list", action="store_true", help="every question, by subject")
    parser.add_argument("--show", action="store_true", help="what the question means and its SQL, without asking it")
    for name, meaning in PARAMETERS.items():
        kind = int if name in ("partition", "broker") else str
        parser.add_argument(f"--{name}", dest=f"given_{name}", type=kind, metavar=_METAVARS[name], help=meaning)
    parser.add_argument(
        "--evidence", action="store_true", help="also the ids of the records that say so (bronze.log_records.record_id)"
    )
    parser.add_argument(
        "--format", choices=("table", "csv", "json", "markdown"), default="table", help="default: table"
    )


def to_params(options: argparse.Namespace, common: Common) -> Params:
    if options.list or options.name is None:
        if options.name is not None:
            raise UsageError("give NAME or --list, not both")
        return Params(common.lake, None, {})
    question = question_named(options.name)
    given = {name: getattr(options, f"given_{name}") for name in PARAMETERS}
    bound = bound_to(question, given, may_lack=options.show)
    if not options.show:
        require_lake(common)
    return Params(common.lake, question, bound, options.format, options.evidence, options.show)


def bound_to(question: Question, given: Mapping[str, Any], *, may_lack: bool = False) -> Mapping[str, Any]:
    """A value, or None, for each parameter of the question: of a time the first instant that it may mean.
    :class:`UsageError` where one is given that it does not know, or one that it needs is missing and may not be."""
    named = {name: value for name, value in given.items() if value is not None}
    for name in question.give:
        if name not in named and not may_lack:
            raise UsageError(f"{question.name} needs --{name}: {PARAMETERS[name]}")
    for name in named:
        if name not in question.parameters:
            takes = ", ".join(f"--{parameter}" for parameter in question.parameters)
            raise UsageError(f"{question.name} knows no --{name}: it takes {takes}")
    return {name: _value(name, named.get(name)) for name in question.parameters}


def question_named(name: str) -> Question:
    """The question; :class:`UsageError` with the nearest names where there is none."""
    found = questions().get(name)
    if found is None:
        near = difflib.get_close_matches(name, questions(), n=3, cutoff=0.5)
        meant = f"did you mean {' or '.join(near)}? " if near else ""
        raise UsageError(f"there is no question {name!r}: {meant}`{PROGRAM} ask --list` names them all")
    return found


def _value(name: str, given: Any) -> Any:
    return span_of(given, f"--{name}")[0] if name in TIMES and given is not None else given


def run(spark: SparkSession | None, params: Params, progress: ShowProgress = silent) -> RunReport:
    """Print the answer, then what the evidence cannot say of it."""
    if params.question is None:
        print(listed(), end="")
        return RunReport()
    if params.shows_itself or spark is None:
        print(described(params.question), end="")
        return RunReport()
    from jobs.ask.answer import answer

    return answer(
        spark,
        params.lake,
        params.question,
        params.given,
        style=params.format,
        with_evidence=params.with_evidence,
        progress=progress,
    )


def listed() -> str:
    """Every question under its subject, with the parameters that it must be given."""
    lines: list[str] = []
    subject = ""
    width = max(map(len, questions()))
    for question in questions().values():
        if question.subject != subject:
            lines += ["", question.subject] if lines else [question.subject]
            subject = question.subject
        needed = "".join(f" --{name} {_METAVARS[name]}" for name in question.give)
        lines.append(f"  {question.name:<{width}}  {question.title}{needed}")
    return "\n".join([*lines, "", f"{PROGRAM} ask NAME --show says how to read its answer, and prints its SQL.", ""])


def described(question: Question) -> str:
    """What the question means, as words and SQL."""
    options = " ".join(
        f"--{name} {_METAVARS[name]}" if name in question.give else f"[--{name} {_METAVARS[name]}]"
        for name in question.parameters
    )
    return (
        f"{question.title}\n\n{PROGRAM} ask {question.name} {options}\n\nHow to read it: {question.read}\n"
        f"Evidence: {', '.join(question.needs)}\nAsk next: {', '.join(question.next)}\n\n{question.sql}\n"
    )


JOB: Final = Job(
    "ask",
    "ask one of the saved questions of a postmortem: who led, what was lost, what is stuck",
    add_arguments,
    to_params,
    run,
    needs_spark=lambda params: params.question is not None and not params.shows_itself,
)


if __name__ == "__main__":
    sys.exit(main(JOB))
