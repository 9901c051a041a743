"""``serve``: the lake for tools that speak JDBC or ODBC; read-only."""

from __future__ import annotations

import argparse
import ipaddress
import socket
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from jobs.command.execution import main
from jobs.command.job import FAILED, Common, Job, RunReport, ShowProgress, UsageError, require_lake, stopped_by_signals
from jobs.serving.passwords import read_passwords
from jobs.session.progress import silent
from jobs.session.session import SessionError
from jobs.sql.settings import READING_ONLY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOPBACK: Final = "127.0.0.1"
PORT: Final = 10000
#: Of the rows of one answer, as Spark has them compressed: more would fill the server's memory.
MOST_OF_AN_ANSWER: Final = "128m"
#: Every session of a client begins with these: they stand in Spark's own configuration, not in one session's.
_CONFIG: Final[Mapping[str, str]] = {
    **READING_ONLY,
    # an answer is there as a whole before its first row goes out: only so may a client cancel, or leave
    "spark.sql.thriftServer.incrementalCollect": "false",
    "spark.driver.maxResultSize": MOST_OF_AN_ANSWER,
    # names come with their columns, for tools that list these
    "spark.databricks.delta.catalog.update.enabled": "true",
}


@dataclass(frozen=True)
class Params:
    """``passwords`` by user; None: everybody who reaches the port is let in."""

    lake: str
    host: str = LOOPBACK
    port: int = PORT
    passwords: Mapping[str, bytes] | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=PORT, help=f"default: {PORT}; 0: any that is free")
    parser.add_argument(
        "--host",
        metavar="ADDRESS",
        default=LOOPBACK,
        help=f"address to listen on (default: {LOOPBACK}, this machine alone); another one needs --password-file",
    )
    parser.add_argument(
        "--password-file", metavar="FILE", help="lines user:password, for the owner's eyes alone (chmod 600)"
    )


def to_params(options: argparse.Namespace, common: Common) -> Params:
    if not 0 <= options.port < 1 << 16:
        raise UsageError(f"--port {options.port}: give 0 to 65535")
    passwords = None if options.password_file is None else read_passwords(options.password_file)
    if passwords is None and not _is_of_this_machine(options.host):
        raise UsageError(
            f"--host {options.host} is reached from other machines: give --password-file FILE, or leave it out and"
            f" come through a tunnel (ssh -L {options.port}:{LOOPBACK}:{options.port} THIS_MACHINE)"
        )
    require_lake(common)
    _require_free(options.host, options.port)
    return Params(common.lake, options.host, options.port, passwords)


def run(spark: SparkSession, params: Params, progress: ShowProgress = silent) -> RunReport:
    """Answer clients until SIGINT or SIGTERM."""
    from jobs.serving.server import listening
    from jobs.sql.names import LakeNames

    _require_config(spark)
    progress("naming the lake's tables")
    LakeNames(spark, params.lake, live=True).name()
    progress("")
    stop = threading.Event()
    with (
        stopped_by_signals(stop),
        listening(spark, params.host, params.port, params.passwords) as (port, thread),
    ):
        print(_notice(params, port), flush=True)
        while thread.is_alive() and not stop.wait(1):
            pass
        return RunReport() if stop.is_set() else RunReport(problems=("the server ended by itself",), exit_code=FAILED)


def _notice(params: Params, port: int) -> str:
    host = f"[{params.host}]" if ":" in params.host else params.host
    who = (
        "Whoever reaches this port reads the lake."
        if params.passwords is None
        else "Passwords and rows travel unencrypted."
    )
    return f"serving {params.lake} at jdbc:hive2://{host}:{port}, read-only. {who} Ctrl-C ends it."


def _is_of_this_machine(host: str) -> bool:
    """Whether only programs of this machine reach that address."""
    try:
        found = {str(address[0]) for *_, address in socket.getaddrinfo(host, None)}
    except OSError as error:
        raise UsageError(f"--host {host} is no address of this machine") from error
    return all(ipaddress.ip_address(address.partition("%")[0]).is_loopback for address in found)


def _require_free(host: str, port: int) -> None:
    """Say before Spark starts that the port is taken."""
    from jobs.serving.server import not_free

    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind, protocol) as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind(address)
        except OSError as error:
            raise UsageError(not_free(host, port)) from error


def _require_config(spark: SparkSession) -> None:
    """A client's session is a new one: what the guard relies on must hold in each, not in this session alone."""
    fresh = spark.newSession()
    wrong = [name for name, value in READING_ONLY.items() if fresh.conf.get(name) != value]
    if wrong:
        raise SessionError(f"the Spark that runs already was started without {', '.join(wrong)} = false: start another")


JOB: Final = Job(
    "serve",
    "answer SQL tools about the lake (JDBC, ODBC: the protocol of HiveServer2); read-only",
    add_arguments,
    to_params,
    run,
    config=_CONFIG,
    known_until=lambda params: None,  # it runs for long
)


if __name__ == "__main__":
    sys.exit(main(JOB))
