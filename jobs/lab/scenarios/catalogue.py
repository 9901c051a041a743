"""All scenarios, by name."""

from __future__ import annotations

from typing import Final

from jobs.lab.scenarios import brokers, disks, quorums, topics
from jobs.lab.stage import Scenario

_ALL: Final = (
    Scenario("creation", "topics are created, one of them under load", topics.creation),
    Scenario("produce", "a steady producer, and nothing goes wrong", topics.produce),
    Scenario("controlled-shutdown", "a rolling restart by controlled shutdown", brokers.controlled_shutdown),
    Scenario("kill", "a leader is killed (SIGKILL) and comes back", brokers.kill),
    Scenario("controller-failover", "the controller is killed and comes back", brokers.controller_failover),
    Scenario(
        "paused-broker",
        "a follower freezes (SIGSTOP), leaves the ISRs, and wakes",
        brokers.paused_broker,
        settings={"zookeeper.session.timeout.ms": "20000", "replica.lag.time.max.ms": "2000"},
    ),
    Scenario("zombie", "the controller freezes past its session and wakes: a zombie", brokers.zombie),
    Scenario("session-expiry", "a broker freezes past its session and registers again", brokers.session_expiry),
    Scenario(
        "zookeeper-outage",
        "ZooKeeper is killed and comes back, then a broker dies",
        brokers.zookeeper_outage,
        kraft=False,
    ),
    Scenario(
        "quorum-outage",
        "most controllers are killed and come back, then a broker dies",
        quorums.quorum_outage,
        kraft=True,
        needs_separate_controllers=True,
    ),
    Scenario(
        "slow-controller",
        "the active controller freezes again and again, each time for about a second",
        quorums.slow_controller,
        kraft=True,
        needs_separate_controllers=True,
    ),
    Scenario(
        "voters",
        "a controller joins the voters, the active one leaves them",
        quorums.voters,
        kraft=True,
        since=(3, 9),
        needs_separate_controllers=True,
        spare_controllers=1,
    ),
    Scenario(
        "snapshot-fetched",
        "a broker with an empty disk fetches a snapshot: the metadata log before it is gone",
        quorums.snapshot_fetched,
        shows=("log_directory_wiped",),
        explains=frozenset({"R37"}),
        kraft=True,
        settings={"metadata.max.retention.bytes": "1000"},
        needs_separate_controllers=True,
    ),
    Scenario(
        "migration",
        "a cluster leaves ZooKeeper for a quorum of controllers",
        quorums.migration,
        kraft=False,
        since=(3, 9),
        migrates=True,
    ),
    Scenario(
        "lifecycle",
        "some of everything: topics deleted and moved, a controller, a disk and brokers lost",
        quorums.lifecycle,
        shows=("unclean_election", "committed_records_lost"),
        kraft=True,
        since=(4, 1),
        needs_separate_controllers=True,
        directories=2,
    ),
    Scenario("preferred-election", "after a restart, the preferred leaders are elected", brokers.preferred_election),
    Scenario("added-partitions", "a topic gets two more partitions under load", topics.added_partitions),
    Scenario("reassignment", "partitions move to other brokers under load", topics.reassignment),
    Scenario("deletion-dead-broker", "a topic is deleted while a replica is down", topics.deletion_with_a_dead_broker),
    Scenario(
        "unclean-election",
        "the ISR's last member dies and an old replica is elected: records are lost",
        brokers.unclean_election,
        shows=("unclean_election", "committed_records_lost"),
        explains=frozenset({"R08", "R30", "R33", "R35", "R36"}),
        needs_separate_controllers=True,
    ),
    Scenario(
        "small-segments",
        "small segments are rolled and deleted while a broker dies and comes back; its log directories are kept",
        disks.small_segments,
        before=(4,),  # then a segment has a megabyte at least (KIP-1030)
        settings={
            "log.retention.check.interval.ms": "2000",
            "log.segment.delete.delay.ms": "1000",
            "log.index.size.max.bytes": "4096",
            "log.initial.task.delay.ms": "1000",
        },
        keeps_logs=True,
    ),
    Scenario(
        "lost-checkpoint",
        "a broker comes back without its high watermark checkpoint",
        disks.lost_checkpoint,
        shows=("checkpoint_missing",),
        explains=frozenset({"R37"}),
    ),
    Scenario(
        "corrupt-checkpoint",
        "a broker starts with a corrupt checkpoint",
        disks.corrupt_checkpoint,
        shows=("checkpoint_malformed",),
        explains=frozenset({"R37"}),
    ),
    Scenario(
        "lost-disk",
        "a broker comes back with an empty log directory",
        disks.lost_disk,
        shows=("log_directory_wiped",),
        explains=frozenset({"R37"}),
    ),
    Scenario(
        "directory-failure",
        "one of a broker's two log directories fails while it runs",
        disks.directory_failure,
        kraft=True,
        since=(3, 7),
        directories=2,
    ),
)
SCENARIOS: Final = {scenario.name: scenario for scenario in _ALL}
