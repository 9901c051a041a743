"""How a job is run: Spark is started, its report printed and written, a failure made a sentence and an exit code."""

from __future__ import annotations

import argparse
import contextlib
import errno
import importlib
import json
import logging
import os
import platform
import re
import shutil
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any, Final, TypeVar

from jobs.command.job import (
    BUSY,
    FAILED,
    PROGRAM,
    WRONG_USE,
    Common,
    Job,
    RunReport,
    UsageError,
    add_common_arguments,
    common_of,
    lake_of,
)
from jobs.command.lost_files import lost_file
from jobs.command.refused_access import refused_access
from jobs.session.java import JavaMissing
from jobs.session.java_ended import HEAP_FULL, how_it_ended
from jobs.session.pinned_jars import JarsMissing
from jobs.session.printable import printable
from jobs.session.progress import Progress
from jobs.session.run_configs import config_for
from jobs.session.session import MEMORY_VARIABLE, SessionError, build_session, default_log_file, stop_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

P = TypeVar("P")
#: What pyspark imports, and pandas with it, where a column of a value is first made.
_WHETHER_NUMPY: Final = "pyspark.testing.utils"
#: Packages whose versions a run is told by.
_PACKAGES: Final = ("kafka-state-replay", "pyspark", "delta-spark", "great-expectations", "pyarrow")
#: What the system says where there is no room on a disk, or no more of a user's share.
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)
#: The same as Java and Python put it into an error's text; a log's own line of that kind is not behind such a name.
_SAYS_NO_ROOM: Final = re.compile(
    rf"(?:IOException|FileSystemException|FileNotFoundException|OSError)\b[^\n]*"
    rf"(?:{'|'.join(re.escape(os.strerror(number)) for number in _NO_ROOM)})"
)
#: What Java and Spark say of their heap, as the kind of an error and not in a value of its text.
_SAYS_NO_MEMORY: Final = re.compile(r"(?:java\.lang\.|memory\.Spark)OutOfMemoryError: ")
EXIT_CODES: Final = (
    "exit codes: 0 done; 1 failed, or nothing recognised; 2 wrong option, path or SQL; 3 a quality gate failed;"
    " 4 another job writes the lake"
)


def declare(job: Job[Any], parser: argparse.ArgumentParser) -> None:
    """The options of a job, its own and those of every command."""
    job.add_arguments(parser)
    add_common_arguments(parser, writes_lake=job.writes_lake is not None)
    parser.set_defaults(job=job)


def parsed(options: argparse.Namespace) -> tuple[Job[Any], Common, Any]:
    """The job asked for, the options of every command, and the job's parameters; raises :class:`UsageError`."""
    common = common_of(options)
    return options.job, common, options.job.to_params(options, common)


def run(options: argparse.Namespace) -> int:
    """Run the job that options ask for, and give the exit code."""
    try:
        job, common, params = parsed(options)
    except UsageError as error:
        print(f"{PROGRAM}: {printable(str(error))}", file=sys.stderr)
        return WRONG_USE
    return execute(job, common, params)


def main(job: Job[Any]) -> int:
    """Run a job by itself, as its module does."""
    parser = argparse.ArgumentParser(
        prog=f"{PROGRAM} {job.name}", description=job.help, epilog=EXIT_CODES, allow_abbrev=False
    )
    declare(job, parser)
    return run(parser.parse_args())


def execute(job: Job[P], common: Common, params: P) -> int:
    """Start Spark if the job needs it, run it, print its report, and give the exit code. An exception becomes a
    sentence on standard error and an exit code."""
    started_at, progress = datetime.now(UTC), Progress(quiet=common.quiet)
    try:
        report = _report_of(job, common, params, progress)
        _print(report, common)
    except BrokenPipeError:
        # The reader of our output has left (`| head`): nothing more to say, and nothing to flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        report = RunReport()
    if common.json_file is None:
        return report.exit_code
    try:
        _write_record(
            common.json_file,
            command=job.name,
            lake=common.lake,
            started_at=started_at,
            stages=progress.stages,
            exit_code=report.exit_code,
            problems=report.problems,
            facts=report.facts,
        )
    except OSError as error:
        _print(_failure(f"--json {common.json_file}: cannot be written ({error.strerror})", FAILED), common)
        return report.exit_code or FAILED
    return report.exit_code


def _report_of(job: Job[P], common: Common, params: P, progress: Progress) -> RunReport:
    """What the job did, or how it failed."""
    log_file: Path | None = None
    try:
        with progress:
            if not job.needs_spark(params):
                return job.run(None, params, progress)
            progress("starting Spark")
            log_file = default_log_file()
            logging.basicConfig(filename=log_file)  # what libraries have to say: py4j each connection that broke
            if common.verbose:
                print(f"{PROGRAM}: Spark's log is {log_file}", file=sys.stderr)
            # packages import what is in them: of two threads that begin with one, one may see it half made. So this one
            # has what starts Java before the other begins, and then waits
            importlib.import_module("jobs.session.java_calls")
            preparing = threading.Thread(target=_prepare, args=(job,), daemon=True)
            preparing.start()
            spark, ours = _session(job, common, log_file, params)
            try:
                preparing.join()
                progress.watch(spark)
                progress("opening the lake")
                with _only_writer(spark, job, common, params, progress):
                    return job.run(spark, params, progress)
            except Exception as error:
                ended = how_it_ended(spark, error)
                if ended is not None:
                    ours = False  # nothing is left to be stopped
                    raise SessionError(_of_ended_java(ended, log_file)) from error
                raise
            finally:
                progress("")
                if ours:
                    stop_session(spark)
    except UsageError as error:
        return _failure(str(error), WRONG_USE)
    except BrokenPipeError:
        raise
    except KeyboardInterrupt:
        return _failure("interrupted", 130)
    except Exception as error:
        return _failed(error, common, log_file)


def _only_writer(
    spark: SparkSession, job: Job[P], common: Common, params: P, progress: Progress
) -> AbstractContextManager[None]:
    """Lets one job at a time write the lake."""
    if job.writes_lake is None or not job.writes_lake(params):
        return nullcontext()
    from ingest.lake.lease import only_writer

    return only_writer(lake_of(spark, common.lake), job.name, common.wait_seconds, progress)


def _write_record(
    path: str,
    *,
    command: str,
    lake: str,
    started_at: datetime,
    stages: Sequence[tuple[str, float]],
    exit_code: int,
    problems: Sequence[str],
    facts: Mapping[str, Any],
) -> None:
    """Write one JSON object, whole or not at all; raises ``OSError``.

    Its members: ``command``, ``lake``, ``started_at`` and ``ended_at`` (ISO 8601, UTC), ``exit_code``, ``problems``
    (the sentences of standard error), ``stages`` (each with ``name`` and ``seconds``, in order), ``versions`` (of
    Python and of packages), and by step what it did: ``ingest``, ``reconstruct``, ``check``, where the command has it.
    """
    record = {
        "command": command,
        "lake": lake,
        "started_at": started_at.isoformat(),
        "ended_at": datetime.now(UTC).isoformat(),
        "exit_code": exit_code,
        "problems": list(problems),
        "stages": [{"name": name, "seconds": round(seconds, 3)} for name, seconds in stages],
        "versions": {"python": platform.python_version(), **{name: installed_version(name) for name in _PACKAGES}},
        **facts,
    }
    unfinished = f"{path}.unfinished"
    with open(unfinished, "w", encoding="utf-8") as file:
        json.dump(record, file, indent=1, default=str)
        file.write("\n")
    os.replace(unfinished, path)


def installed_version(name: str) -> str | None:
    """The version of a package; None where it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _config_of(job: Job[P], common: Common, params: P) -> Mapping[str, str]:
    """The settings of the session, by how much is read on this machine."""
    paths = job.reads(params) if common.is_on_this_machine else None
    return {**({} if paths is None else config_for(paths, job.known_until(params))), **job.config}


def _prepare(job: Job[Any]) -> None:
    for name in (*job.modules, _WHETHER_NUMPY):
        with contextlib.suppress(Exception):  # what cannot be imported is said by who needs it
            importlib.import_module(name)
    with contextlib.suppress(Exception):
        job.prepare()


def _session(job: Job[P], common: Common, log_file: Path, params: P) -> tuple[SparkSession, bool]:
    from pyspark.sql import SparkSession

    ours = SparkSession.getActiveSession() is None
    # one that somebody else made stays as they made it, but for what the job cannot do without
    config = _config_of(job, common, params) if ours else job.config
    session = build_session(
        master=common.master,
        log_file=log_file,
        config=config,
        makes_archive=job.loads_all_classes,
        writes=job.writes_lake is not None,
    )
    return session, ours


def _print(report: RunReport, common: Common) -> None:
    if not common.quiet:
        for line in report.summary:
            print(printable(line, kept="\n"))
    sys.stdout.flush()
    for line in report.problems:
        print(f"{PROGRAM}: {printable(line)}", file=sys.stderr)


def _failure(sentence: str, code: int) -> RunReport:
    return RunReport(problems=(" ".join(sentence.split()),), exit_code=code)


def _failed(error: Exception, common: Common, log_file: Path | None) -> RunReport:
    exit_code = _exit_code_of(error)
    if exit_code is not None:
        return _failure(str(error), exit_code)
    if common.verbose:
        print(printable(traceback.format_exc(), kept="\n\t"), end="", file=sys.stderr)
    if _is_of_a_full_disk(error):
        return _failure(_room(common, has_spark=log_file is not None), FAILED)
    if _SAYS_NO_MEMORY.search(str(error)) is not None:
        return _failure(_too_little_memory(log_file), FAILED)
    told = lost_file(error) or refused_access(error)
    if told is not None:
        return _failure(told, FAILED)
    first = (str(error).strip().splitlines() or [""])[0]
    where = f"; Spark's log is {log_file}" if log_file else ""
    hint = "" if common.verbose else "; -v shows where"
    return _failure(f"failed with {type(error).__name__}: {first[:300]}{where}{hint}", FAILED)


def _of_ended_java(code: int, log_file: Path) -> str:
    if code == HEAP_FULL:
        return _too_little_memory(log_file)
    how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
    return (
        f"Spark's Java ended ({how}), as it does where the machine's memory is full: close other programs, or give it"
        f" less by {MEMORY_VARIABLE}, and give the same command again; no table holds half of a write; Spark's log is"
        f" {log_file}"
    )


def _too_little_memory(log_file: Path | None) -> str:
    where = f"; Spark's log is {log_file}" if log_file else ""
    return (
        f"Spark's memory is too little for this: give it more by {MEMORY_VARIABLE} (on a cluster, its executors) and"
        f" give the same command again; no table holds half of a write{where}"
    )


def _is_of_a_full_disk(error: Exception) -> bool:
    """Whether this process, Java or a worker of Spark's found no room: the last two say so in their error's text alone,
    wrapped once for each thread that it passed."""
    return (isinstance(error, OSError) and error.errno in _NO_ROOM) or _SAYS_NO_ROOM.search(str(error)) is not None


def _room(common: Common, has_spark: bool) -> str:
    """What to do about a full disk, and how much room there is now that Spark's own files have gone."""
    folders = {"the lake": common.lake, "Spark's temporary files": os.environ.get("SPARK_LOCAL_DIRS", gettempdir())}
    free = []
    for what, folder in folders.items() if has_spark else ():
        with contextlib.suppress(OSError):
            free.append(f"{shutil.disk_usage(folder).free >> 20} MiB for {what} ({folder})")
    now = f" (free now: {', '.join(free)})" if free else ""
    return (
        f"a disk is full{now}: make room and give the same command again; what was written by halves is not read, and"
        " no table holds half of a write"
    )


def _exit_code_of(error: Exception) -> int | None:
    """Of an error that is a sentence; None of one that nobody foresaw. The packages' own errors are looked up, not
    imported: the job that raised one did."""
    named = (
        ("ingest.lake.lease", "LakeBusy", BUSY),
        ("ingest.lake.delta", "LakeError", FAILED),
        ("ingest.run.pipeline", "IngestError", FAILED),
        ("ingest.capture.params", "CaptureError", FAILED),
    )
    for module, name, exit_code in named:
        kind = getattr(sys.modules.get(module), name, None)
        if kind is not None and isinstance(error, kind):
            return exit_code
    return FAILED if isinstance(error, (JavaMissing, JarsMissing, SessionError)) else None
