"""Kafka's own ``kafka-dump-log`` of a release, run over files of a metadata log."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from zipfile import ZipFile

from ingest.readers.log_dirs.names import METADATA_DIRECTORY
from jobs.lab.machines.processes import JVM_OPTIONS
from jobs.lab.machines.releases import Release, kafka_jars
from jobs.session.java import find_java
from tests.support.dumped import printed, read, read_otherwise, snapshots_that_differ

#: Where releases have it: the first of them that is there.
_TOOLS: Final = ("org.apache.kafka.tools.DumpLogSegments", "kafka.tools.DumpLogSegments")
_DEADLINE_S: Final = 180


def differing_from_kafka(release: Release, nodes: Sequence[Path]) -> tuple[int, int, list[str]]:
    """How many records and snapshots of these nodes were compared, and all that differs: records from what the tool of
    that release prints of them, snapshots from what the records before their ends made."""
    logs = [node / METADATA_DIRECTORY for node in nodes]
    files = sorted(file for log in logs for file in log.glob("*") if file.suffix in (".log", ".checkpoint"))
    records, snapshots = 0, 0
    found: list[str] = []
    theirs = printed(_dumped(release, files))
    for file in files:
        ours = read(file)
        records += len(ours)
        found += [f"{file.parent.parent.name}/{file.name}: {one}" for one in read_otherwise(ours, theirs[str(file)])]
    for node in nodes:
        count, differing = snapshots_that_differ(node)
        snapshots += count
        found += differing
    return records, snapshots, found


def _dumped(release: Release, files: Sequence[Path]) -> str:
    java = find_java()
    jars = kafka_jars(java, release)
    done = subprocess.run(
        [
            java,
            *JVM_OPTIONS,
            "-cp",
            os.pathsep.join(map(str, jars)),
            _tool(jars),
            "--cluster-metadata-decoder",
            "--files",
            ",".join(map(str, files)),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=_DEADLINE_S,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def _tool(jars: Sequence[Path]) -> str:
    classes = {name for jar in jars if jar.name.startswith("kafka") for name in ZipFile(jar).namelist()}
    return next(name for name in _TOOLS if name.replace(".", "/") + ".class" in classes)
