"""The Spark session of every job.

On a laptop it is made for small data on few cores; on a cluster (``--master`` or ``spark-submit``) only what the
results depend on is set, and memory, cores and shuffle partitions stay as the cluster's operator has them.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import re
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jobs.session.caches import CACHE_VARIABLE, cache_dir
from jobs.session.class_archive import java_option
from jobs.session.java import JavaMissing, find_java
from jobs.session.java_ended import say_it_once
from jobs.session.local_files import use_own_local_files
from jobs.session.pinned_jars import DELTA_JARS, DELTA_PACKAGES, JarsMissing, delta_jars
from jobs.session.planning import PLANNED_ONCE, is_local
from jobs.session.run_configs import JAVA_OPTIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MEMORY_VARIABLE: Final = "KAFKA_STATE_REPLAY_DRIVER_MEMORY"
DELTA_EXTENSION: Final = "io.delta.sql.DeltaSparkSessionExtension"
DELTA_CATALOG: Final = "org.apache.spark.sql.delta.catalog.DeltaCatalog"

#: What the rows depend on, or what every job needs: set on every master.
COMMON_CONFIG: Final[Mapping[str, str]] = {
    "spark.sql.extensions": DELTA_EXTENSION,
    "spark.sql.catalog.spark_catalog": DELTA_CATALOG,
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.session.timeZone": "UTC",
    # Delta's parser drops what Spark 4.1 binds while it parses (delta-io/delta#7640): bound in the plan, as in 4.0
    "spark.sql.legacy.parameterSubstitution.constantsOnly": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # before each row that goes to Python, Spark 4.1 asks how many bytes the batch holds, for which Arrow goes through
    # all rows that are in it: batches are bounded by their rows instead
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
    # what a window, or the right side of a join, holds of one key cannot be asked back by who needs memory behind it: a
    # task with more than its share of it has none left for the next window, and fails
    "spark.sql.windowExec.buffer.spill.size.threshold": "64m",
    "spark.sql.sortMergeJoinExec.buffer.spill.size.threshold": "64m",
    "spark.ui.showConsoleProgress": "false",
}
#: For one machine: Delta's and Spark's defaults are for clusters and cost four times the time here.
LOCAL_CONFIG: Final[Mapping[str, str]] = {
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",
    "spark.sql.files.maxPartitionBytes": "16m",
    # a small file counts for less than 4 MiB: tables are of a few of them, and each task costs as much as some do
    "spark.sql.files.openCostInBytes": "256k",
    # each broadcast table and each sort takes a whole page: by default up to 64 MiB of the driver's memory for one row
    "spark.buffer.pageSize": "2m",
    "spark.python.daemon.module": "reconstruct.engine.python_daemon",
    "spark.ui.enabled": "false",
    # with no page to show them on, what is kept of finished queries only fills the driver's memory
    "spark.sql.ui.retainedExecutions": "5",
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "500",
    # pyspark tells Java the place in the program of each step that it builds, for the text of errors: as many messages
    # again as the steps themselves take
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # after each rule Spark looks over the whole plan for mistakes of its own optimiser
    "spark.sql.lightweightPlanChangeValidation": "false",
    "spark.sql.maxPlanStringLength": "4096",
    "spark.sql.ui.explainMode": "simple",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # a machine that slept for two minutes has lost no executor: there is none but the driver itself
    "spark.storage.blockManagerHeartbeatTimeoutMs": "30d",
}
_KEPT_LOG_FILES: Final = 20


class SessionError(Exception):
    """A Spark session that these jobs cannot use; the message says what to do."""


def build_session(
    app_name: str = "kafka-state-replay",
    *,
    master: str | None = None,
    log_file: Path | None = None,
    config: Mapping[str, str] | None = None,
    makes_archive: bool = False,
    writes: bool = False,
) -> SparkSession:
    """The session, made or taken over.

    A session that exists already (a notebook's, another job's in this process) is taken if Delta is configured in
    it. Under ``spark-submit`` the submitted configuration wins over ours. Otherwise a Java is started on ``master``
    (default ``local[*]``), with its noise, and that of its Python workers, in ``log_file`` (default: a new file in
    the cache's ``logs``). ``config`` wins over everything set here. On a local master this process's time zone
    becomes UTC, so that what Python prints and what Spark holds agree. ``makes_archive``: as its Java ends it may leave
    its classes for later ones (:mod:`jobs.session.class_archive`). ``writes``: it will write tables, so that it is
    worth half a second to have files written without a process for each (:mod:`jobs.session.local_files`).

    Raises :class:`JavaMissing`, :class:`JarsMissing`, :class:`SessionError`.
    """
    from pyspark.sql import SparkSession

    from jobs.session.java_calls import call_less

    call_less()
    # pyspark prints each SQL error as JSON on standard error; the error is raised all the same.
    logging.getLogger("SQLQueryContextLogger").disabled = True
    existing = SparkSession.getActiveSession()
    if existing is not None:
        return _take_over(existing, config or {})
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return _under_spark_submit(app_name, master, config or {})
    java = find_java()
    settings = _settings(master, config or {})
    # in one process Delta is loaded as Spark itself is; executors elsewhere are sent it
    is_one_process = re.fullmatch(r"local(\[.*\])?", settings["spark.master"])
    name, between = ("spark.driver.extraClassPath", os.pathsep) if is_one_process else ("spark.jars", ",")
    jars = delta_jars(java)
    settings[name] = between.join([*filter(None, [settings.get(name)]), *map(str, jars)])
    if is_one_process:
        archived = java_option(java, jars, may_make=makes_archive)
        settings["spark.driver.extraJavaOptions"] = f"{settings['spark.driver.extraJavaOptions']} {archived}".rstrip()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if is_local(settings["spark.master"]):
        os.environ["TZ"] = "UTC"
        time.tzset()
    builder = SparkSession.builder.appName(app_name)
    for name, value in settings.items():
        builder = builder.config(name, value)
    target = log_file or default_log_file()
    try:
        with _noise_to(target):
            session = builder.getOrCreate()
            if is_one_process:
                _forget_sources(session)
            if writes and is_one_process:
                use_own_local_files(session)
    except Exception as error:
        raise SessionError(f"Spark does not start ({_first_line(error)}): its log is {target}") from error
    say_it_once(session)
    return session


def stop_session(session: SparkSession) -> None:
    """End the session without waiting for pyspark's server of accumulators, which looks once a second whether it is to
    end; its threads end by themselves, or with this process."""
    context: Any = session.sparkContext
    server = getattr(context, "_accumulatorServer", None)
    context._accumulatorServer = None
    session.stop()
    if server is not None:
        threading.Thread(target=server.shutdown, daemon=True).start()


def default_log_file() -> Path:
    """A new file for Spark's log in the cache; the newest twenty are kept."""
    folder = cache_dir() / "logs"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SessionError(
            f"cannot write Spark's log to {folder} ({error.strerror}): set {CACHE_VARIABLE} to a folder that can be"
            " written"
        ) from error
    for old in sorted(folder.glob("spark-*.log"))[: -_KEPT_LOG_FILES + 1]:
        old.unlink(missing_ok=True)
    return folder / f"spark-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.getpid()}.log"


def default_driver_memory() -> str:
    """``KAFKA_STATE_REPLAY_DRIVER_MEMORY``, else a quarter of the machine's memory, but no more than 1.5 GiB for each
    processor, between 1 and 8 GiB: what a heap has more Spark fills before its sorts write to disk, and is hardly
    faster for it (``docs/performance.md``)."""
    given = os.environ.get(MEMORY_VARIABLE)
    if given:
        return given
    machine_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    quarter, of_processors = machine_bytes // 4 // 2**20, 1536 * (os.cpu_count() or 1)
    return f"{max(min(quarter, of_processors, 8192), 1024)}m"


def _settings(master: str | None, config: Mapping[str, str]) -> dict[str, str]:
    """Everything given to a Java that we start ourselves."""
    chosen = master or config.get("spark.master") or "local[*]"
    settings = {"spark.master": chosen, **COMMON_CONFIG}
    if is_local(chosen):
        warehouse = tempfile.mkdtemp(prefix="kafka-state-replay-warehouse-")
        atexit.register(shutil.rmtree, warehouse, ignore_errors=True)
        settings |= {**LOCAL_CONFIG, **PLANNED_ONCE}
        settings |= {
            "spark.sql.shuffle.partitions": str(min(max(os.cpu_count() or 1, 2), 16)),
            "spark.driver.memory": default_driver_memory(),
            "spark.driver.extraJavaOptions": JAVA_OPTIONS,
            # by default pyspark shows warnings alone, but Spark words all of INFO before that is dropped
            "spark.log.level": "WARN",
            "spark.sql.warehouse.dir": warehouse,
        }
    return settings | dict(config)


def _forget_sources(session: SparkSession) -> None:
    """Have Hadoop not know of each of its 1,078 settings which file it is from. Spark hands the settings to each scan
    anew, and with them these names, each compressed by itself: four of the five milliseconds that it takes."""
    # these classes add settings, as they are loaded by whatever needs them first, and then all would be read again
    for name in ("mapred.JobConf", "hdfs.HdfsConfiguration"):
        _jvm().java.lang.Class.forName(f"org.apache.hadoop.{name}")
    settings: Any = session.sparkContext._jsc.hadoopConfiguration()
    settings.size()
    sources = settings.getClass().getDeclaredField("updatingResource")
    sources.setAccessible(True)
    sources.set(settings, _jvm().java.util.concurrent.ConcurrentHashMap())


def _take_over(session: SparkSession, config: Mapping[str, str]) -> SparkSession:
    """A session made by somebody else: require Delta, set what may still be set."""
    if DELTA_EXTENSION not in (session.conf.get("spark.sql.extensions", "") or ""):
        raise SessionError(
            f"the Spark session that exists already knows no Delta: start it with --packages {DELTA_PACKAGES}"
            f" --conf spark.sql.extensions={DELTA_EXTENSION} --conf spark.sql.catalog.spark_catalog={DELTA_CATALOG}"
        )
    for name, value in {**COMMON_CONFIG, **config}.items():
        if session.conf.isModifiable(name):
            session.conf.set(name, value)
    return session


def _under_spark_submit(app_name: str, master: str | None, config: Mapping[str, str]) -> SparkSession:
    """``spark-submit`` has started the Java and read the user's options: they win, ours fill the gaps."""
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

    _jvm()  # without a connection SparkConf holds none of what was submitted
    submitted = SparkConf()
    wanted = {"spark.app.name": app_name, **COMMON_CONFIG, **config}
    if master:
        wanted["spark.master"] = master
    if is_local(submitted.get("spark.master", master or "local[*]") or ""):
        wanted = {"spark.sql.shuffle.partitions": "4", **LOCAL_CONFIG, **wanted}
    builder = SparkSession.builder
    for name, value in wanted.items():
        given = submitted.get(name, None)
        if name == "spark.sql.extensions" and given and DELTA_EXTENSION not in given:
            builder = builder.config(name, f"{given},{DELTA_EXTENSION}")
        elif given is None or name in config:
            builder = builder.config(name, value)
    if not _delta_on_class_path():
        jars = ",".join([*filter(None, [submitted.get("spark.jars", None)]), *map(str, _add_delta_jars())])
        builder = builder.config("spark.jars", jars)
    return builder.getOrCreate()


def _delta_on_class_path() -> bool:
    """Whether the Java that ``spark-submit`` started can load Delta (``--packages``, ``--jars`` or the image)."""
    loader = _context_class_loader()
    return loader.getResource(DELTA_EXTENSION.replace(".", "/") + ".class") is not None


def _add_delta_jars() -> tuple[Path, ...]:
    """Put Delta's jars on the class path of a driver that runs already."""
    loader = _context_class_loader()
    try:
        jars = delta_jars(find_java())
        for jar in jars:
            loader.addURL(_jvm().java.io.File(str(jar)).toURI().toURL())
    except (JarsMissing, JavaMissing):
        raise
    except Exception as error:
        raise SessionError(f"spark-submit knows no Delta: add --packages {DELTA_PACKAGES} to it") from error
    return jars


def _jvm() -> Any:
    from pyspark import SparkContext

    SparkContext._ensure_initialized()
    return SparkContext._jvm


def _context_class_loader() -> Any:
    return _jvm().java.lang.Thread.currentThread().getContextClassLoader()


@contextlib.contextmanager
def _noise_to(path: Path) -> Iterator[None]:
    """Start processes with their output in ``path``: the Java that starts here keeps writing there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    saved = [os.dup(1), os.dup(2)]
    try:
        os.dup2(target, 1)
        os.dup2(target, 2)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for descriptor, original in enumerate(saved, start=1):
            os.dup2(original, descriptor)
            os.close(original)
        os.close(target)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


__all__ = [
    "DELTA_JARS",
    "JarsMissing",
    "JavaMissing",
    "SessionError",
    "build_session",
    "default_log_file",
    "stop_session",
]
