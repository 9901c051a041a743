"""``lab SCENARIO``: a real incident on a throw-away cluster of one's own, captured, reconstructed and reported."""

from __future__ import annotations

import argparse
import dataclasses
import os
import shlex
import sys
import webbrowser
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jobs import ingest_job, run_job
from jobs.command.execution import main
from jobs.command.job import DONE, FAILED, PROGRAM, Common, Job, RunReport, ShowProgress, UsageError, local_path
from jobs.lab.machines.releases import BY_NAME, NEWEST
from jobs.session.progress import silent
from jobs.session.run_configs import SHORT_RUN_CONFIG

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEVELS: Final = ("TRACE", "INFO")


@dataclass(frozen=True)
class Params:
    """``lake`` is None where it shall lie in ``out_dir``; ``opens`` whether a browser shall show the report."""

    scenario: str
    version: str
    level: str
    is_separate: bool
    out_dir: str
    lake: str | None
    opens: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scenario", metavar="SCENARIO", nargs="?", help="what shall happen: see --list")
    parser.add_argument("--list", action="store_true", help="list the scenarios, and end")
    parser.add_argument(
        "--version", choices=tuple(BY_NAME), default=NEWEST.name, help="of Kafka (default: %(default)s)"
    )
    parser.add_argument(
        "--separate-controllers", action="store_true", help="of a cluster without ZooKeeper: they are no brokers"
    )
    parser.add_argument(
        "--level", choices=LEVELS, default="TRACE", help="of state.change.logger (default: %(default)s)"
    )
    parser.add_argument("--out", metavar="DIR", help="new folder for all of it (default: lab/SCENARIO-VERSION)")
    parser.add_argument(
        "--open", action=argparse.BooleanOptionalAction, help="show the report in a browser (default: on a desktop)"
    )


def to_params(options: argparse.Namespace, common: Common) -> Params:
    """The parameters; with ``--list`` the scenarios are printed and the process ends, before anything starts."""
    from jobs.lab.scenarios.catalogue import SCENARIOS

    if options.list:
        print("\n".join(f"{scenario.name:<22}{scenario.title}" for scenario in SCENARIOS.values()))
        raise SystemExit(DONE)
    if options.scenario is None:
        raise UsageError("no SCENARIO given: `lab --list` lists them")
    if options.scenario not in SCENARIOS:
        raise UsageError(f"there is no scenario {options.scenario!r}: there are {', '.join(SCENARIOS)}")
    if not SCENARIOS[options.scenario].plays_on(BY_NAME[options.version]):
        raise UsageError(f"{options.scenario} does not play on {options.version}: see docs/lab.md")
    if not common.is_on_this_machine:
        raise UsageError("the lab starts its cluster on this machine: it takes no --master but a local one")
    out_dir = local_path(options.out or os.path.join("lab", f"{options.scenario}-{options.version}"), common)
    if os.path.exists(out_dir) and (not os.path.isdir(out_dir) or os.listdir(out_dir)):
        raise UsageError(f"{out_dir} is there and not empty: give --out DIR, a new folder")
    lake = common.lake if common.names_lake else None
    opens = _has_desktop() if options.open is None else options.open
    return Params(options.scenario, options.version, options.level, options.separate_controllers, out_dir, lake, opens)


def run(spark: SparkSession, params: Params, progress: ShowProgress = silent) -> RunReport:
    """Play, then run the pipeline on what was captured: ZooKeeper's own transaction log is no part of that."""
    from ingest.capture import CaptureError
    from jobs.lab.play import play
    from jobs.lab.scenarios.catalogue import SCENARIOS
    from jobs.lab.waiting import NeverHappened

    out_dir = Path(params.out_dir)
    scenario = SCENARIOS[params.scenario]
    try:
        played = play(
            scenario,
            BY_NAME[params.version],
            out_dir,
            state_change_level=params.level,
            separate=params.is_separate,
            say=progress,
        )
    except (NeverHappened, CaptureError) as error:
        return RunReport(problems=(f"{error} (the cluster's files are in {out_dir / 'cluster'})",), exit_code=FAILED)
    lake = params.lake or str(out_dir / "lake")
    ingest = ingest_job.Params(lake, (str(played.capture),))
    title = f"Lab: {scenario.title}, Kafka {params.version}"
    report = run_job.run(spark, run_job.Params(ingest, str(out_dir / "report"), title=title), progress)
    if params.opens:
        webbrowser.open((out_dir / "report" / "index.html").as_uri())
    ask = f'ask it     {PROGRAM} sql --lake {shlex.quote(lake)} "SELECT * FROM gold.leader_elections"'
    return dataclasses.replace(report, summary=(*report.summary, f"capture   {played.capture}", ask))


def _has_desktop() -> bool:
    """Whether a person sits at a terminal of a machine that shows windows."""
    shows = sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    return shows and sys.stdout.isatty()


JOB: Final = Job(
    "lab",
    "play an incident on a throw-away cluster of real brokers, and report it",
    add_arguments,
    to_params,
    run,
    config=SHORT_RUN_CONFIG,
    reads=lambda params: None,
)


if __name__ == "__main__":
    sys.exit(main(JOB))
