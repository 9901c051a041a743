"""What a release's own ``MetadataDelta`` makes of each record of a node's metadata log, by its jars."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from ingest.readers.log_dirs.names import METADATA_DIRECTORY
from ingest.readers.metadata_log.record_types import NO_ID
from jobs.lab.machines.processes import JVM_OPTIONS
from jobs.lab.machines.releases import Release, kafka_jars
from jobs.session.java import find_java
from reconstruct.model.metadata_log.image import applied
from reconstruct.model.metadata_log.values import BrokerState, Kind, MetadataRecord, PartitionState, State, Subject
from tests import ROOT
from tests.support.dumped import read

_SOURCE: Final = ROOT / "tests" / "oracles" / "image" / "ImageOfLog.java"
_DEADLINE_S: Final = 180
_RECOVERY: Final = ("RECOVERED", "RECOVERING")
#: By file, offset and subject.
States = dict[tuple[str, int, str], dict[str, Any]]


def differing_from_image(release: Release, nodes: Sequence[Path]) -> tuple[int, list[str]]:
    """How many states of partitions and brokers were compared, one for each record of one, and those that differ."""
    of_nodes = [_files(node) for node in nodes]
    theirs = _theirs(release, of_nodes)
    ours = {key: state for files in of_nodes for key, state in _ours(files)}
    found = [f"{key} is known to one alone" for key in sorted(ours.keys() ^ theirs.keys())]
    for key in ours.keys() & theirs.keys():
        image = theirs[key]
        # what the release does not know yet is nothing in its records
        known = {name: value for name, value in ours[key].items() if name in image or value not in ([], "RECOVERED")}
        if known != image:
            found.append(f"{key} is {known}, and by Kafka's own image {image}")
    return len(ours), found


def _files(node: Path) -> list[Path]:
    """A node's log in order; where its begin is gone, behind the snapshot that it goes on from."""
    directory = node / METADATA_DIRECTORY
    logs = sorted(directory.glob("*.log"))
    start = int(logs[0].stem) if logs else 0
    snapshots = [one for one in directory.glob("*-*.checkpoint") if int(one.name.partition("-")[0]) <= start]
    return [*([max(snapshots)] if start else []), *logs]


def _theirs(release: Release, of_nodes: Sequence[Sequence[Path]]) -> States:
    java = find_java()
    given = [str(one) for files in of_nodes for one in ("-", *files)]
    jars = os.pathsep.join(map(str, kafka_jars(java, release)))
    done = subprocess.run(
        [java, *JVM_OPTIONS, "-cp", jars, str(_SOURCE), *given],
        capture_output=True,
        text=True,
        check=False,
        timeout=_DEADLINE_S,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    lines = (line.split("\t") for line in done.stdout.splitlines() if line.count("\t") == 3)
    return {(file, int(offset), subject): _plain(json.loads(fields)) for file, offset, subject, fields in lines}


def _plain(state: dict[str, Any]) -> dict[str, Any]:
    """Of records without directories Kafka's classes have the id of zeros for each."""
    directories = state.get("directories")
    return state | ({} if directories is None or {*directories} != {NO_ID} else {"directories": []})


def _ours(files: Sequence[Path]) -> Iterator[tuple[tuple[str, int, str], dict[str, Any]]]:
    image: dict[Subject, State] = {}
    for file in files:
        for record in read(file):
            fields = record.fields or {}
            made = applied(image, MetadataRecord(record.offset, 0, record.record_type, fields))
            assert made.problem is None, made.problem
            for subject, state in made.changes:
                image.pop(subject, None)
                if state is not None:
                    image[subject] = state
                if subject.kind is Kind.BROKER:
                    yield (str(file), record.offset, f"broker-{subject.name}"), _broker(state)
                elif isinstance(state, PartitionState) and record.record_type.startswith("Partition"):
                    key = (str(file), record.offset, f"{subject.name}-{subject.partition_id}")
                    yield key, _partition(state)


def _broker(state: State | None) -> dict[str, Any]:
    if not isinstance(state, BrokerState):
        return {}
    return {
        "epoch": state.broker_epoch,
        "incarnationId": state.incarnation_id,
        "fenced": state.is_fenced,
        "inControlledShutdown": state.is_in_controlled_shutdown,
    }


def _partition(state: PartitionState) -> dict[str, Any]:
    return {
        "replicas": list(state.replicas),
        "isr": list(state.isr),
        "leader": state.leader,
        "leaderEpoch": state.leader_epoch,
        "partitionEpoch": state.partition_epoch,
        "addingReplicas": list(state.adding_replicas),
        "removingReplicas": list(state.removing_replicas),
        "leaderRecoveryState": _RECOVERY[state.leader_recovery_state],
        "elr": list(state.elr),
        "lastKnownElr": list(state.last_known_elr),
        "directories": list(state.directories),
    }
