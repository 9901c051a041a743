"""What every job has in common: its options, its report, its exit codes. :mod:`jobs.command.execution` runs it.

A job is a module with a frozen ``Params``, ``add_arguments``, ``to_params``, ``run(spark, params) -> RunReport`` and a
:class:`Job` that holds them: the command line runs it, and so does the module by itself. Exit codes: 0 done, 1 failed
or nothing recognised, 2 wrong use (option, path, SQL), 3 a quality gate failed, 4 another job writes the lake.
"""

from __future__ import annotations

import argparse
import dataclasses
import glob
import math
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from jobs.session.planning import KNOWN_TEXT_COUNTS, suit_to_size

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROGRAM: Final = "kafka-state-replay"
LAKE_VARIABLE: Final = "KAFKA_STATE_REPLAY_LAKE"

DONE: Final = 0
FAILED: Final = 1
WRONG_USE: Final = 2
GATE_FAILED: Final = 3

BUSY: Final = 4

#: Called with a sentence at the start of each stage, see :class:`~jobs.session.progress.Progress`.
ShowProgress = Callable[[str], None]
P = TypeVar("P")


class UsageError(Exception):
    """A wrong option, path or query: exit code 2."""


@dataclass(frozen=True)
class Common:
    """The options of every command; ``names_lake``: whether an option or the environment names the lake;
    ``wait_seconds``: how long to wait for another job that writes it."""

    lake: str
    names_lake: bool = False
    master: str | None = None
    quiet: bool = False
    verbose: bool = False
    json_file: str | None = None
    wait_seconds: float = 0.0

    @property
    def is_on_this_machine(self) -> bool:
        """Whether a path without a scheme is surely this machine's, and not the cluster's file system."""
        return "PYSPARK_GATEWAY_PORT" not in os.environ and (self.master or "local").startswith("local")


@dataclass(frozen=True)
class RunReport:
    """What a job did: lines for standard output, sentences for standard error, the exit code, and by step what
    ``--json`` writes."""

    summary: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    exit_code: int = DONE
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Job(Generic[P]):
    """A command: ``add_arguments`` declares its options, ``to_params`` makes its Params of them (raising
    :class:`UsageError`), ``run`` does it."""

    name: str
    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    to_params: Callable[[argparse.Namespace, Common], P]
    run: Callable[..., RunReport]
    #: Settings of its Spark session, over those that every job has.
    config: Mapping[str, str] = field(default_factory=dict)
    #: The paths that it reads, of which it depends how long it runs; None where it runs long, or ``config`` says all.
    reads: Callable[[P], Sequence[str] | None] = lambda params: (text_of(params.lake),)  # type: ignore[attr-defined]
    #: Since when, in seconds of the epoch, what it reads is new to it: it looks into the rest, or goes on from what is
    #: kept of that. None where it goes through all.
    known_until: Callable[[P], float | None] = lambda params: math.inf
    #: Whether it writes the lake for as long as it runs, of which one job at a time may; None of one that never does.
    writes_lake: Callable[[P], bool] | None = None
    #: The modules that ``run`` will import: they are read while Java starts.
    modules: tuple[str, ...] = ()
    #: What else of its work needs neither Java nor the lake: done there, too.
    prepare: Callable[[], None] = lambda: None
    #: Whether it loads about all classes of Java that any command does.
    loads_all_classes: bool = False
    #: Without Spark ``run`` is given None for the session, and the options of Spark and of the lake mean nothing.
    needs_spark: Callable[[P], bool] = lambda params: True


def add_common_arguments(parser: argparse.ArgumentParser, *, writes_lake: bool = False) -> None:
    group = parser.add_argument_group("options of every command")
    group.add_argument(
        "--lake",
        metavar="DIR",
        help=f"folder of the Delta tables, on any file system Spark reaches (default: ${LAKE_VARIABLE}, else ./lake)",
    )
    group.add_argument("--master", metavar="URL", help="Spark master (default: local[*], or what spark-submit says)")
    group.add_argument("--json", metavar="FILE", help="also write what was done, how long it took and the exit code")
    if writes_lake:
        group.add_argument(
            "--wait",
            metavar="SECONDS",
            type=float,
            default=0.0,
            help="how long to wait for another job that writes this lake (default: 0)",
        )
    noise = group.add_mutually_exclusive_group()
    noise.add_argument("-v", "--verbose", action="store_true", help="say where Spark's log is; tracebacks of failures")
    noise.add_argument("-q", "--quiet", action="store_true", help="no progress, no summary: results and errors only")


def common_of(options: argparse.Namespace) -> Common:
    given = options.lake if options.lake is not None else os.environ.get(LAKE_VARIABLE) or None
    if given is not None and not given.strip():
        raise UsageError("--lake is empty: name a folder")
    wait = getattr(options, "wait", 0.0)
    if wait < 0:
        raise UsageError(f"--wait {wait:g}: give seconds, 0 or more")
    common = Common(
        given or "lake", given is not None, options.master, options.quiet, options.verbose, options.json, wait
    )
    if common.json_file is not None and not os.path.isdir(os.path.dirname(os.path.abspath(common.json_file))):
        raise UsageError(f"--json {common.json_file}: there is no such folder to write it to")
    return dataclasses.replace(common, lake=local_path(common.lake, common))


def local_path(path: str, common: Common) -> str:
    """The path made absolute if it is surely one of this machine; a URI or a cluster's path as it is."""
    if re.match(r"^[A-Za-z][A-Za-z0-9+.-]*:/", path) or not common.is_on_this_machine:
        return path
    return os.path.abspath(os.path.expanduser(path))


@contextmanager
def stopped_by_signals(stop: threading.Event) -> Iterator[None]:
    """SIGINT and SIGTERM set ``stop`` while this lasts; a second one ends the process as ever."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def ask(number: int, frame: FrameType | None) -> None:
        stop.set()
        signal.signal(number, before[signal.Signals(number)])

    try:
        for number in before:
            signal.signal(number, ask)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def text_of(lake: str) -> str:
    """The folder of a lake that tells how much text it is made of. The other tables, with what upkeep has yet to remove
    of them, are several times as much."""
    return f"{lake}/bronze"


def last_run_at(lake: str) -> float | None:
    """When a reconstruction of the lake last ended well, by the files of this machine, in seconds of the epoch; None
    where none is known to have."""
    notes = glob.glob(f"{glob.escape(lake)}/kept/runs/_delta_log/*[1-9]*.json")  # version 0 is the empty table
    with suppress(OSError):  # Delta removes old ones
        return max(map(os.path.getmtime, notes), default=None)
    return None


def require_lake(common: Common) -> None:
    """Refuse to read a lake that is not there, before Spark starts. Only a local path can be judged here."""
    if not os.path.isabs(common.lake) or not common.is_on_this_machine:
        return
    if not os.path.exists(common.lake):
        raise UsageError(f"there is no lake at {common.lake}: run `{PROGRAM} ingest PATH` first, or give --lake DIR")
    if not os.path.isdir(common.lake):
        raise UsageError(f"{common.lake} is a file: --lake takes a folder")


def require_folder(path: str, option: str) -> None:
    """Refuse an output folder that is a file."""
    if os.path.exists(path) and not os.path.isdir(path):
        raise UsageError(f"{path} is a file: {option} takes a folder")


def output_folder(path: str, option: str, common: Common) -> str:
    """The path of an output folder, refused where it is a file."""
    folder = local_path(path, common)
    require_folder(folder, option)
    return folder


def lake_of(spark: SparkSession, root: str) -> Any:
    """The lake as it is: ``ingest`` and ``reconstruct`` make the tables that they miss."""
    from ingest.lake.delta import Lake

    return Lake(spark, root)


def suit_session_to(lake: Any, known_until: float | None = None) -> None:
    """Make the session fit for the amount of text that the lake holds. A run that goes on from what another kept knows
    what was ingested before ``known_until``, seconds of the epoch."""
    from ingest.lake.delta import PinnedLake
    from ingest.lake.tables.bronze import INGESTED_FILES

    if lake.exists(INGESTED_FILES):
        suit_to_size(lake.spark, 0)  # to ask that of one table, nothing needs to be compiled
        is_known = f"unix_micros(ingested_at) < {int((known_until or 0) * 1_000_000)}"
        counted = f"if({is_known}, ingested_bytes div {KNOWN_TEXT_COUNTS}, ingested_bytes)"
        (row,) = PinnedLake(lake).read(INGESTED_FILES).selectExpr(f"coalesce(sum({counted}), 0) AS bytes").collect()
        suit_to_size(lake.spark, row["bytes"])


def ready_lake_of(spark: SparkSession, root: str, *, reads_all: bool = False) -> Any:
    """The lake with every table there and of this version, as the last run left it: for jobs that only read. For one
    that ``reads_all`` of it the session is made fit."""
    from ingest.lake.delta import side_by_side
    from reconstruct.kept.last_run import published

    lake = lake_of(spark, root)
    parts = (lake.ensure, partial(published, lake), *([partial(suit_session_to, lake)] if reads_all else []))
    return side_by_side(lambda part: part(), parts)[1]
