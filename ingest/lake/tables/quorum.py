"""The quorum of a KRaft cluster itself, over time."""

from __future__ import annotations

from typing import Final

from ingest.lake.tables.shared import CLUSTER, INTERVAL, INTERVAL_ORDER, PROVENANCE, SEQUENCE
from ingest.lake.tables.spec import TableSpec, col, required

QUORUM_TIMELINE: Final = TableSpec(
    "silver",
    "quorum_timeline",
    "one row per (cluster, interval of one state of its KRaft quorum: epoch, leader and members)",
    ("cluster_id", "sequence"),
    (
        CLUSTER,
        SEQUENCE,
        required("epoch", "int", "Epoch of the quorum; what its leader decides as controller has it, too."),
        col(
            "leader_id",
            "int",
            "Node that leads the quorum: the active controller. NULL while there is none; of first_seen where it is"
            " not known.",
        ),
        col("voters", "array<int>", "Nodes that vote, sorted; NULL: nothing says."),
        col("voter_directory_ids", "array<string>", "Their directory ids, in their order; NULL where nothing says."),
        col("observers", "array<int>", "Nodes that fetch and do not vote, by the last answer to DescribeQuorum."),
        col("kraft_version", "int", "kraft.version: 1 where voters may come and go (KIP-853); NULL: nothing says."),
        *INTERVAL,
        required(
            "began_by",
            "string",
            "leader_elected; election_started: a node stood for election, or heard of one; leader_resigned: the leader"
            " did, or started again; voters_changed, kraft_version_changed: by a record; members_described: an answer"
            " names others than before; first_seen: what is known begins here.",
            vocabulary=(
                "leader_elected",
                "election_started",
                "leader_resigned",
                "voters_changed",
                "kraft_version_changed",
                "members_described",
                "first_seen",
            ),
        ),
        col("granted_by", "array<int>", "Voters whose votes made the leader; NULL: nothing says."),
        col("offset", "bigint", "Offset of the first record that says so; NULL where none does."),
        col(
            "end_reason",
            "string",
            "Of the last interval of a leader, why it ended. shut_down: it was stopped; majority_lost: it heard no more"
            " of a majority of the voters; controller_failed; process_ended: it was killed, and started again; removed"
            " from the voters; resigned; voters_timed_out: nothing of its own tells, voters heard no more of it;"
            " superseded: nothing tells more than that it led no more. NULL of other intervals.",
            vocabulary=(
                "shut_down",
                "majority_lost",
                "controller_failed",
                "process_ended",
                "removed",
                "resigned",
                "voters_timed_out",
                "superseded",
            ),
        ),
        col(
            "doubted_at",
            "timestamp",
            "Since when voters, until that end, gave their leader up for lost; NULL: none did.",
        ),
        col("high_watermark", "bigint", "Highest high watermark of the metadata log that is stated; NULL: none is."),
        required(
            "source",
            "string",
            "What says that it began: a record of the metadata log, a line of a node, an answer to DescribeQuorum, or a"
            " node's quorum-state.",
            vocabulary=("metadata_log", "node_log", "description", "quorum_state"),
        ),
        *PROVENANCE,
    ),
    constraints=INTERVAL_ORDER,
)
