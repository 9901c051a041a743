"""Each mechanism that the three articles describe: where it is in the program. A test finds every name that is given.

The articles: (1) the controller's state machines, (2) segments, high watermarks and the ISR, (3) a replica's high
watermark and log end, and whom it fetches from. None is quoted here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Mechanism:
    """``model`` are modules, or names in them (``module:name``); tables, rules and captures by their names.

    ``open_`` says what of it is not judged, or not shown, as far as known.
    """

    article: int
    what: str
    model: tuple[str, ...]
    tables: tuple[str, ...]
    rules: tuple[str, ...]
    captures: tuple[str, ...]
    open_: str = ""


_MACHINE: Final = "reconstruct.model.controller"
_LIFECYCLE: Final = ("lifecycle-0.8.2.2", "lifecycle-1.1.1", "lifecycle-3.9.1")
_FAILOVER: Final = ("failover-0.8.2.2", "failover-1.1.1", "failover-3.9.1")
_UNCLEAN: Final = ("unclean-0.8.2.2", "unclean-3.9.1-info")

MECHANISMS: Final = (
    Mechanism(
        1,
        "States of partitions and their legal transitions",
        ("reconstruct.model.states:VALID_PREVIOUS_PARTITION_STATES", f"{_MACHINE}.partition_state_machine"),
        ("silver.partition_state_timeline",),
        ("R13", "R15"),
        _LIFECYCLE,
    ),
    Mechanism(
        1,
        "States of replicas and their legal transitions",
        ("reconstruct.model.states:VALID_PREVIOUS_REPLICA_STATES", f"{_MACHINE}.replica_state_machine"),
        ("silver.replica_state_timeline",),
        ("R14", "R15"),
        _LIFECYCLE,
    ),
    Mechanism(
        1,
        "The election of a leader when the leader is gone, clean or unclean",
        (
            "reconstruct.model.elections",
            "reconstruct.partitions.elections.judging",
            "reconstruct.cluster.episodes.tenures",
        ),
        ("gold.leader_elections", "gold.data_loss_bounds", "gold.controller_episodes"),
        ("R05", "R07", "R08", "R09"),
        (*_FAILOVER, *_UNCLEAN),
    ),
    Mechanism(
        1,
        "An election tried again for each partition without a leader, after a failover and when brokers come",
        (
            "reconstruct.model.take_over",
            "reconstruct.partitions.elections.occasions",
            "reconstruct.cluster.episodes.tenures",
        ),
        (
            *("gold.leader_elections", "gold.controller_episodes", "gold.controller_procedures"),
            "silver.partition_state_timeline",
        ),
        ("R07", "R09", "R13"),
        (*_FAILOVER, *_UNCLEAN),
        "of a partition that stays offline only the tries that fail with a line are seen",
    ),
    Mechanism(
        1,
        "The elections of a reassignment, of the preferred replica and of a controlled shutdown",
        (
            *("reconstruct.model.elections", "reconstruct.partitions.elections.occasions"),
            "reconstruct.cluster.episodes.procedures:MAY_ELECT",
        ),
        ("gold.leader_elections", "gold.controller_procedures"),
        ("R09",),
        ("reassign_busy-1.1.1", *_LIFECYCLE),
    ),
    Mechanism(
        1,
        "An election that finds nobody or is not needed: nothing is written; the selector that changes nothing (NoOp)",
        (
            *("reconstruct.model.elections:select_no_op", "reconstruct.model.elections:ElectionFailure"),
            *(f"{_MACHINE}.leader_writes:Refusal", "reconstruct.explain.refusals"),
        ),
        ("silver.state_change_events", "gold.controller_episodes", "gold.availability_intervals"),
        ("R09", "R13"),
        ("unclean-0.8.2.2",),
        "that an election found nobody is shown and explained, not judged; R09 judges each that chose",
    ),
    Mechanism(
        1,
        "The time that elections take, from what set them off: a broker's end or start, a take-over, a request",
        ("reconstruct.cluster.episodes.procedures", "reconstruct.incidents.story"),
        ("gold.leader_elections", "gold.controller_procedures"),
        ("R07", "R09"),
        (*_FAILOVER, *_LIFECYCLE),
        "measured where the controller's log has the trigger; from the trigger on, not from when its thread took it up",
    ),
    Mechanism(
        1,
        "The first leader and ISR of a new partition",
        (f"{_MACHINE}.leader_writes", f"{_MACHINE}.leader_election"),
        ("silver.leader_and_isr_timeline", "gold.leader_elections"),
        ("R05", "R06", "R09", "R10"),
        ("quiet-0.8.2.2", "quiet-3.9.1"),
    ),
    Mechanism(
        1,
        "Leader and ISR written on condition, and an election given up for a later controller",
        (f"{_MACHINE}.zookeeper", f"{_MACHINE}.leader_writes"),
        ("silver.leader_and_isr_timeline", "silver.znode_changes"),
        ("R01", "R02", "R03", "R12"),
        _FAILOVER,
    ),
    Mechanism(
        1,
        "LeaderAndIsr, UpdateMetadata and StopReplica in batches to the right brokers, by a thread for each broker",
        (f"{_MACHINE}.request_batch", "reconstruct.requests.timeline", "reconstruct.requests.spark.connections"),
        ("silver.state_change_events", "gold.propagation_delays"),
        ("R15", "R23"),
        _LIFECYCLE,
    ),
    Mechanism(
        1,
        "A replica that goes Offline: it is stopped, leaves the ISR, and its leader is told",
        (f"{_MACHINE}.replica_state_machine", f"{_MACHINE}.request_batch"),
        ("silver.replica_state_timeline", "silver.leader_and_isr_timeline"),
        ("R06", "R14", "R15", "R16"),
        (*_FAILOVER, *_LIFECYCLE),
    ),
    Mechanism(
        1,
        "What brokers make of these requests: roles, caches, requests that are too old",
        ("reconstruct.model.broker_requests", "reconstruct.partitions.roles"),
        ("silver.replica_role_timeline", "gold.leadership_overlaps"),
        ("R20", "R21", "R22", "R24", "R25"),
        _FAILOVER,
    ),
    Mechanism(
        1,
        "Topics created, partitions added (not to a topic that is being deleted); the listeners that tell of it",
        (
            *("reconstruct.partitions.reexecution.creation", "reconstruct.partitions.assignment"),
            "reconstruct.cluster.episodes.tenures:TROUBLE",
        ),
        ("silver.topic_incarnations", "silver.assignment_timeline", "silver.controller_events"),
        ("R16",),
        _LIFECYCLE,
        "that a listener fired is logged up to 0.10.2 only; later its change shows by what the controller makes of it",
    ),
    Mechanism(
        1,
        "Topics deleted: started, ineligible, successful, tried again; requests for topics that are not there ignored",
        (
            *(f"{_MACHINE}.replica_state_machine", "reconstruct.partitions.reexecution.deletion"),
            *("reconstruct.partitions.availability", "reconstruct.cluster.episodes.tenures:TROUBLE"),
        ),
        ("silver.replica_state_timeline", "gold.availability_intervals", "gold.controller_procedures"),
        ("R14", "R16"),
        _LIFECYCLE,
    ),
    Mechanism(
        1,
        "Brokers that come, go or bounce, and what the controller does then",
        (
            *("reconstruct.cluster.brokers", "reconstruct.partitions.reexecution.broker_changes"),
            "reconstruct.cluster.episodes.procedures",
        ),
        ("silver.broker_liveness_timeline", "gold.leader_elections", "gold.controller_procedures"),
        ("R07", "R16"),
        _FAILOVER,
    ),
    Mechanism(
        1,
        "A new controller: what it begins from, and no two at a time",
        (f"{_MACHINE}.context", "reconstruct.cluster.controllers", "reconstruct.cluster.take_overs"),
        ("silver.controller_epoch_timeline", "gold.controller_episodes"),
        ("R11", "R12", "R16"),
        _FAILOVER,
    ),
    Mechanism(
        1,
        "A controller that resigns: its state machines stop, it writes and sends no more",
        ("reconstruct.cluster.take_overs", "reconstruct.cluster.controllers"),
        ("silver.controller_epoch_timeline", "gold.controller_episodes"),
        ("R11", "R12"),
        ("failover-1.1.1", "failover-3.9.1", "lifecycle-1.1.1", "lifecycle-3.9.1"),
        "that it takes its listeners off ZooKeeper is shown only by what it does no more",
    ),
    Mechanism(
        1,
        "A reassignment: its phases, its ISR, its end",
        ("reconstruct.partitions.assignment", f"{_MACHINE}.replica_state_machine"),
        ("silver.assignment_timeline", "gold.availability_intervals", "gold.controller_procedures"),
        ("R04", "R16"),
        ("reassign_busy-1.1.1", *_LIFECYCLE),
    ),
    Mechanism(
        2,
        "Segments of a log, its index and time index",
        (
            *("ingest.readers.log_dirs", "reconstruct.segments.timeline", "reconstruct.segments.log_ends"),
            "reconstruct.segments.entries",
        ),
        ("bronze.log_segments", "silver.log_segment_timeline", "silver.offset_observations"),
        ("R31", "R40", "R41"),
        ("checkpoints-1.1.1",),
        "the captures have no segments: R40 and R41 are tested on the lab's small-segments; of a large index a sample"
        " of the entries is held against its segment",
    ),
    Mechanism(
        2,
        "log.dirs, and in them a directory for each partition",
        ("reconstruct.checkpoints.starts", "reconstruct.segments.evidence"),
        ("bronze.log_segments", "bronze.offset_checkpoints", "silver.replication_events"),
        ("R37", "R40"),
        ("checkpoints-1.1.1",),
        "a directory is seen in its checkpoint files, in lines and in listings; the captures have no listing",
    ),
    Mechanism(
        2,
        "Log end offset and high watermark of each replica, and which of them moves first",
        ("reconstruct.offsets.timeline", "reconstruct.offsets.inference.replicas"),
        ("silver.replica_offset_timeline", "silver.offset_observations"),
        ("R30", "R31", "R32"),
        (*_FAILOVER, "quiet-3.9.1"),
    ),
    Mechanism(
        2,
        "Records above the high watermark are not committed: what a leader's death costs",
        ("reconstruct.offsets.records_at_risk", "reconstruct.offsets.truncations", "reconstruct.offsets.losses"),
        ("gold.records_at_risk", "gold.truncations", "gold.data_loss_bounds"),
        ("R33", "R35"),
        _UNCLEAN,
    ),
    Mechanism(
        2,
        "What consumers may read ends at the high watermark",
        ("reconstruct.offsets.probe_answers", "reconstruct.offsets.records_at_risk"),
        ("bronze.offset_probes", "silver.offset_observations", "gold.records_at_risk"),
        ("R31", "R34"),
        (*_FAILOVER, *_UNCLEAN),
        "seen by asking a broker as a consumer does, and as a replica; what consumers read is in no log",
    ),
    Mechanism(
        2,
        "A write with acks=all waits for the slowest of the ISR, until it is taken out and the high watermark moves",
        ("reconstruct.offsets.inference.isr", "reconstruct.offsets.rules.isr_moves"),
        ("silver.leader_and_isr_timeline", "silver.replica_offset_timeline"),
        ("R34", "R38"),
        (*_FAILOVER, *_UNCLEAN),
        "how long a write waited is in no log that is read",
    ),
    Mechanism(
        2,
        "A replica that lags is taken out of the ISR, by messages up to 0.8 and by time since",
        ("reconstruct.offsets.rules.isr_moves", "reconstruct.partitions.isr_flapping"),
        ("silver.leader_and_isr_timeline", "gold.isr_flapping"),
        ("R38",),
        _FAILOVER,
    ),
    Mechanism(
        2,
        "A follower that leaves the ISR and joins it again and again",
        ("reconstruct.partitions.isr_flapping", "reconstruct.offsets.rules.isr_flaps"),
        ("gold.isr_flapping",),
        ("R38",),
        ("failover-0.8.2.2", "failover-3.9.1"),
        "why a follower is slow (a long collection of garbage, a disk) is in no log that is read",
    ),
    Mechanism(
        2,
        "The settings of all this, which a broker prints when it starts: lag limits, min.insync.replicas and others",
        ("reconstruct.cluster.settings", "ingest.shapes.broker_settings"),
        ("silver.replication_events", "bronze.broker_configs"),
        ("R08", "R34", "R38", "R39"),
        (*_FAILOVER, *_UNCLEAN),
    ),
    Mechanism(
        2,
        "min.insync.replicas: writes with acks=all that are refused",
        ("reconstruct.offsets.rules.min_isr", "reconstruct.partitions.availability"),
        ("gold.availability_intervals",),
        ("R34", "R39"),
        _UNCLEAN,
    ),
    Mechanism(
        3,
        "A leader raises its high watermark to the smallest log end of the ISR",
        ("reconstruct.offsets.inference.isr", "reconstruct.offsets.messages:PRINTED_OFFSETS"),
        ("silver.offset_observations", "silver.replica_offset_timeline"),
        ("R30", "R34"),
        ("quiet-0.8.2.2", "quiet-3.9.1"),
    ),
    Mechanism(
        3,
        "A leader knows how far each follower is by the offset of its last fetch",
        ("reconstruct.offsets.rules.isr_moves", "reconstruct.partitions.isr_flapping"),
        ("gold.isr_flapping",),
        ("R34", "R38"),
        ("failover-3.9.1", "unclean-3.9.1-info"),
        "seen where a line prints it only: since 2.2, of a replica that leaves the ISR; it is no sighting of the"
        " follower's log",
    ),
    Mechanism(
        3,
        "A follower appends its leader's records at their offsets: what both have is the same",
        ("reconstruct.offsets.rules.lineage", "reconstruct.offsets.losses"),
        ("silver.offset_observations", "gold.data_loss_bounds"),
        ("R33", "R36"),
        (*_FAILOVER, *_UNCLEAN),
        "judged by leader epochs (since 0.11); before, only what an election left behind is",
    ),
    Mechanism(
        3,
        "A follower takes min(leader's high watermark, own log end), which needs a second fetch",
        ("reconstruct.offsets.role_spans", "reconstruct.offsets.inference.replicas"),
        ("silver.replica_offset_timeline",),
        ("R32",),
        _FAILOVER,
    ),
    Mechanism(
        3,
        "A replica outside the ISR joins it when it has caught up",
        ("reconstruct.offsets.rules.isr_joins",),
        ("silver.leader_and_isr_timeline", "gold.isr_flapping"),
        ("R38",),
        _FAILOVER,
    ),
    Mechanism(
        3,
        "A follower begins to fetch from an offset, of a leader, in a thread that a hash chooses",
        ("reconstruct.offsets.fetch_offsets", "reconstruct.model.fetchers", "reconstruct.partitions.fetchers"),
        ("silver.fetcher_timeline", "silver.offset_observations"),
        ("R26",),
        (*_FAILOVER, "reassign_busy-1.1.1"),
    ),
    Mechanism(
        3,
        "High watermarks of all replicas written to replication-offset-checkpoint, and what a start makes of them",
        ("reconstruct.checkpoints.entries", "reconstruct.checkpoints.restart_effects"),
        ("bronze.offset_checkpoints", "silver.offset_observations"),
        ("R37", "R30"),
        ("checkpoints-1.1.1",),
    ),
)
