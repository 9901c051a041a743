"""The Java of a session that ended by itself, as where the system killed it for its memory."""

from __future__ import annotations

import contextlib
import subprocess
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The exit code of Spark's Java where its heap was full (org.apache.spark.util.SparkExitCode).
HEAP_FULL: Final = 52
#: From when its connections break until the system knows how it ended.
_ENDS_WITHIN_S: Final = 5.0


def say_it_once(session: SparkSession) -> None:
    """Let pyspark's thread print no stack trace when its connection to Java breaks: the error is raised as well."""
    server: Any = session.sparkContext._accumulatorServer
    server.handle_error = lambda *_: None


def how_it_ended(session: SparkSession, error: BaseException) -> int | None:
    """The exit code of the Java that this process started, where it ended before it was told to, negative that of the
    signal that killed it; None where it runs."""
    java: subprocess.Popen[bytes] | None = getattr(session.sparkContext._gateway, "proc", None)
    if java is None:
        return None
    if _is_of_a_connection(error):
        with contextlib.suppress(subprocess.TimeoutExpired):
            java.wait(_ENDS_WITHIN_S)
    return java.poll()


def _is_of_a_connection(error: BaseException | None) -> bool:
    """Not a broken pipe, which is that of who reads our output: py4j makes its own of one to Java."""
    from py4j.protocol import Py4JNetworkError

    while error is not None:
        if isinstance(error, (ConnectionResetError, ConnectionRefusedError, EOFError, Py4JNetworkError)):
            return True
        error = error.__cause__ or error.__context__
    return False
