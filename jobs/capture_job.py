"""``capture``: records a live cluster into a capture folder, which every other command takes. Starts no Spark."""

from __future__ import annotations

import argparse
import os
import re
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from jobs.command.execution import main
from jobs.command.job import (
    DONE,
    FAILED,
    Common,
    Job,
    RunReport,
    ShowProgress,
    UsageError,
    require_folder,
    stopped_by_signals,
)
from jobs.session.progress import silent

if TYPE_CHECKING:
    from ingest.capture import BrokerFiles, CaptureParams, CaptureSummary

_SECONDS: Final[Mapping[str, float]] = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)?")
_SHORTEST_S: Final = 0.05


@dataclass(frozen=True)
class Params:
    """What to capture; ``unknown`` are names of client settings that are not used."""

    capture: CaptureParams
    unknown: tuple[str, ...] = ()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", metavar="DIR", required=True, help="the capture folder; one that exists is continued")
    cluster = parser.add_argument_group("the cluster: any of these")
    cluster.add_argument("--zookeeper", metavar="HOST:PORT[,...][/chroot]", help="as zookeeper.connect of the brokers")
    cluster.add_argument("--bootstrap-server", metavar="HOST:PORT[,...]", help="brokers to begin with")
    cluster.add_argument(
        "--client-properties",
        metavar="FILE",
        help="security settings of the clients, by Kafka's names; KAFKA_STATE_REPLAY_SASL_PASSWORD counts before it",
    )
    cluster.add_argument("--kafka-version", metavar="X.Y", help="of brokers that cannot be asked for it")
    agent = parser.add_argument_group("a broker of this machine, also without the cluster; ID is its broker.id")
    agent.add_argument("--logs", metavar="ID=DIR", action="append", default=[], help="its log4j logs: followed")
    agent.add_argument("--log-dirs", metavar="ID=DIR[,...]", action="append", default=[], help="its log.dirs: copied")
    agent.add_argument("--config", metavar="ID=FILE", action="append", default=[], help="its server.properties")
    pace = parser.add_argument_group("pace and bounds")
    pace.add_argument(
        "--interval", metavar="TIME", default="1s", help="from round to round: 1s, 500ms, 1m (default 1s)"
    )
    pace.add_argument("--rounds", metavar="N", type=int, help="stop after so many rounds")
    pace.add_argument("--for", metavar="TIME", dest="duration", help="stop after so long: 90s, 10m, 2h")
    pace.add_argument("--wait", action="store_true", help="begin although the cluster is not there yet")
    pace.add_argument("--max-requests", metavar="N", type=float, default=20.0, help="a second and broker (default 20)")
    pace.add_argument(
        "--partitions-per-request", metavar="N", type=int, default=2000, help="in one request (default 2000)"
    )
    pace.add_argument("--max-znodes", metavar="N", type=int, default=5000, help="read in a second (default 5000)")


def to_params(options: argparse.Namespace, common: Common) -> Params:
    from ingest.capture import CaptureError, CaptureParams
    from ingest.capture.settings import addresses, client_properties, unknown_names

    require_folder(options.out, "--out")
    positive = {
        "--rounds": options.rounds,
        "--max-requests": options.max_requests,
        "--partitions-per-request": options.partitions_per_request,
        "--max-znodes": options.max_znodes,
    }
    for option, value in positive.items():
        if value is not None and not value > 0:
            raise UsageError(f"{option} takes a number above 0")
    try:
        properties = client_properties(options.client_properties)
        addresses(options.bootstrap_server or "localhost:9092")
    except CaptureError as error:
        raise UsageError(str(error)) from error
    capture = CaptureParams(
        out=options.out,
        zookeeper=options.zookeeper,
        bootstrap_servers=options.bootstrap_server,
        brokers=_brokers(options),
        interval_s=_seconds(options.interval, "--interval"),
        rounds=options.rounds,
        duration_s=None if options.duration is None else _seconds(options.duration, "--for"),
        client_properties=properties,
        api_version=_version(options.kafka_version),
        max_requests_per_second=options.max_requests,
        partitions_per_request=options.partitions_per_request,
        znode_reads_per_second=options.max_znodes,
        waits=options.wait,
    )
    if not capture.has_source:
        raise UsageError("nothing to capture: give --zookeeper, --bootstrap-server, --logs or --log-dirs")
    return Params(capture, tuple(unknown_names(properties)))


def run(spark: None, params: Params, progress: ShowProgress = silent) -> RunReport:
    """Capture until it ends by itself, by SIGINT or by SIGTERM. ``spark`` is None: none is needed."""
    from ingest.capture import run_capture

    stop = threading.Event()
    if params.unknown:
        progress(f"client settings that are not used: {', '.join(params.unknown)}")
    with stopped_by_signals(stop):
        progress(f"capturing into {params.capture.out}; Ctrl+C ends it")
        summary = run_capture(params.capture, stop, progress)
    is_empty = not (summary.snapshots or summary.answers or summary.copies or summary.log_bytes)
    return RunReport(summary_lines(summary, params.capture.out), summary.missed, FAILED if is_empty else DONE)


def summary_lines(summary: CaptureSummary, out: str) -> tuple[str, ...]:
    """What was recorded, for standard output."""
    counts = (
        (summary.rounds, "rounds"),
        (summary.snapshots, "snapshots of the znodes"),
        (summary.answers, "offsets"),
        (summary.descriptions, "descriptions"),
        (summary.copies, "copies of checkpoints"),
        (summary.log_bytes, "bytes of logs"),
    )
    recorded = ", ".join(f"{count:,} {what}" for count, what in counts if count)
    lines = [f"{out}: {recorded or 'nothing'}"]
    if summary.errors:
        errors = ", ".join(f"{name} {count:,}" for name, count in sorted(summary.errors.items()))
        lines.append(f"answers that were errors, not recorded: {errors}")
    return tuple(lines)


def _brokers(options: argparse.Namespace) -> tuple[BrokerFiles, ...]:
    from ingest.capture import BrokerFiles

    named = {"--logs": options.logs, "--log-dirs": options.log_dirs, "--config": options.config}
    paths = [_by_broker(values, option) for option, values in named.items()]
    return tuple(BrokerFiles(each, *(found.get(each, ()) for found in paths)) for each in sorted(set().union(*paths)))


def _by_broker(values: Sequence[str], option: str) -> dict[int, tuple[str, ...]]:
    found: dict[int, tuple[str, ...]] = {}
    for value in values:
        broker_id, _, paths = value.partition("=")
        names = tuple(path for path in paths.split(",") if path)
        if not broker_id.isdigit() or not names:
            raise UsageError(f"{option} takes ID=PATH, as {option} 1=/var/lib/kafka: not {value!r}")
        for name in names:
            if not os.path.exists(name):
                raise UsageError(f"there is no {name}, which {option} names")
        found[int(broker_id)] = found.get(int(broker_id), ()) + names
    return found


def _seconds(text: str, option: str) -> float:
    found = _DURATION.fullmatch(text.strip())
    seconds = float(found.group(1)) * _SECONDS[found.group(2) or "s"] if found else 0.0
    if seconds < _SHORTEST_S:
        raise UsageError(f"{option} takes a time such as 500ms, 1s or 10m, not under 50ms: not {text!r}")
    return seconds


def _version(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    if not re.fullmatch(r"\d+(?:\.\d+){1,3}", text):
        raise UsageError(f"--kafka-version takes a version such as 0.8.2 or 3.9: not {text!r}")
    return tuple(int(part) for part in text.split("."))[:3]


JOB: Final = Job(
    "capture",
    "record a live cluster into a folder: znodes, offsets, descriptions, checkpoints, logs",
    add_arguments,
    to_params,
    run,
    needs_spark=lambda params: False,
)

if __name__ == "__main__":
    sys.exit(main(JOB))
