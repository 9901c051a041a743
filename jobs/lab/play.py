"""Boot a cluster, play a scenario on it, keep what it leaves behind, and end everything."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ingest.capture import CaptureSummary
from ingest.readers.log_dirs.names import METADATA_DIRECTORY
from jobs.lab.machines.cluster import Cluster
from jobs.lab.machines.kraft import FIRST_CONTROLLER, KraftCluster
from jobs.lab.machines.migrating import MigratingCluster
from jobs.lab.machines.releases import Release
from jobs.lab.machines.with_zookeeper import ZooKeeperCluster
from jobs.lab.recording import Recording
from jobs.lab.stage import Scenario, Stage


@dataclass(frozen=True)
class Played:
    """``capture`` is a folder of the captures' layout. ``truth`` holds what a reconstruction is measured against:
    ``zk-version-2``, ZooKeeper's own transaction logs and snapshots, and each node's ``__cluster_metadata-0`` below
    ``broker-N``, whichever there are. Both hold ``events.jsonl``."""

    scenario: Scenario
    release: Release
    capture: Path
    truth: Path
    summary: CaptureSummary | None


def play(
    scenario: Scenario,
    release: Release,
    folder: Path,
    *,
    state_change_level: str = "TRACE",
    separate: bool = False,
    say: Callable[[str], None] = lambda sentence: None,
) -> Played:
    """Play ``scenario`` on a new cluster below ``folder``, which is to be empty or not there.

    ``separate`` has the controllers of a quorum be nodes of their own, as the scenario may do by itself.

    The cluster's own files stay in ``folder/cluster`` where anything fails, and go where nothing does. Whatever
    happens, no process is left.

    :raises NeverHappened: where the cluster does not do what the scenario waits for.
    """
    capture, truth, files = folder / scenario.file_name(release), folder / "truth", folder / "cluster"
    cluster = _cluster(scenario, release, files, state_change_level, separate, say)
    with cluster:
        cluster.events.note(
            "scenario", name=scenario.name, kafka_version=release.version, state_change_level=state_change_level
        )
        with Recording(cluster, capture) as recording:
            scenario.play(Stage(cluster, recording, say))
            recording.wait_for_rounds(2)
        say("ending the cluster")
    if scenario.keeps_logs:
        _keep_logs(cluster, capture)
    truth.mkdir(parents=True)
    if isinstance(cluster, ZooKeeperCluster):
        shutil.copytree(cluster.zookeeper.transactions, truth / "zk-version-2")
    for node_id, node in cluster.nodes.items():
        if (node.data / METADATA_DIRECTORY).is_dir():
            _keep_metadata(node.data / METADATA_DIRECTORY, truth / f"broker-{node_id}" / METADATA_DIRECTORY)
    for place in (capture, truth):
        shutil.copy(cluster.events.file, place / "events.jsonl")
    shutil.rmtree(files)
    return Played(scenario, release, capture, truth, recording.summary)


def _cluster(
    scenario: Scenario,
    release: Release,
    files: Path,
    state_change_level: str,
    separate: bool,
    say: Callable[[str], None],
) -> Cluster:
    brokers = scenario.broker_ids
    if not release.is_kraft:
        say(f"starting ZooKeeper and {len(brokers)} brokers of Kafka {release.version}")
        made = MigratingCluster if scenario.migrates else ZooKeeperCluster
        return made(release, files, brokers, scenario.settings, state_change_level, say)
    controllers = brokers
    if separate or scenario.needs_separate_controllers:
        controllers = [FIRST_CONTROLLER + number for number in range(len(brokers))]
    whose = "of which each is a controller" if controllers is brokers else f"and {len(controllers)} controllers"
    say(f"starting {len(brokers)} brokers of Kafka {release.version}, {whose}")
    first_spare = FIRST_CONTROLLER + len(brokers)
    return KraftCluster(
        release,
        files,
        brokers,
        controllers,
        scenario.settings,
        state_change_level,
        say,
        range(first_spare, first_spare + scenario.spare_controllers),
        scenario.directories,
    )


def _keep_metadata(directory: Path, target: Path) -> None:
    """Copy a node's metadata log, without indexes, of which the most is a hole."""
    shutil.copytree(directory, target, ignore=shutil.ignore_patterns("*index", "*index.deleted"))


def _keep_logs(cluster: Cluster, capture: Path) -> None:
    """Copy each partition's directory, as the ended brokers left it; the capture has the metadata log."""
    for broker in cluster.brokers.values():
        for directory in sorted(broker.data.glob("*-[0-9]*")):
            if directory.name == METADATA_DIRECTORY:
                continue
            shutil.copytree(directory, capture / f"broker-{broker.broker_id}" / "data" / directory.name)
