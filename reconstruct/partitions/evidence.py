"""What is known of one partition, in one shape: the input of the fold, whatever the source."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Final

from reconstruct.cluster.view import ClusterView
from reconstruct.model.value_class import value_class

#: Evidence from the metadata log of a KRaft quorum: what a record made of the partition, and its end.
METADATA_PARTITION: Final = "metadata_partition"
METADATA_PARTITION_REMOVED: Final = "metadata_partition_removed"
#: Evidence from znodes; every other ``kind`` is the event type of a log record.
ZNODE_STATE: Final = "znode_state"
ZNODE_STATE_DELETED: Final = "znode_state_deleted"
ZNODE_ASSIGNMENT: Final = "znode_assignment"
ZNODE_TOPIC_DELETED: Final = "znode_topic_deleted"
ZNODE_REASSIGNMENT: Final = "znode_reassignment"
ZNODE_REASSIGNMENT_DONE: Final = "znode_reassignment_done"
ZNODE_DELETION_REQUESTED: Final = "znode_deletion_requested"


@value_class
class Evidence:
    """One fact about one partition.

    ``at`` is microseconds since the epoch, UTC; for what happened between two sightings it is the earliest instant and
    ``at_upper`` the latest. ``file`` and ``offset`` order the records of one file, ``broker_id`` is whose log it is.
    Fields that the source does not give are None. ``isr`` keeps the order written. The epochs of a line that ignores a
    request are the request's.
    """

    evidence_id: str
    kind: str
    at: int
    at_upper: int | None = None
    file: str = ""
    offset: int = 0
    source_kind: str | None = None
    log_level: str | None = None
    shape_id: str | None = None
    broker_id: int | None = None
    controller_id: int | None = None
    controller_epoch: int | None = None
    state_controller_epoch: int | None = None
    replica_id: int | None = None
    from_state: str | None = None
    to_state: str | None = None
    leader: int | None = None
    leader_epoch: int | None = None
    isr: tuple[int, ...] | None = None
    old_isr: tuple[int, ...] | None = None
    topic_id: str | None = None
    partition_epoch: int | None = None
    leader_recovery_state: int | None = None
    elr: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None
    directories: tuple[str, ...] | None = None
    replicas: tuple[int, ...] | None = None
    adding_replicas: tuple[int, ...] | None = None
    removing_replicas: tuple[int, ...] | None = None
    is_new: bool | None = None
    is_delete: bool | None = None
    correlation_id: int | None = None
    to_broker_ids: tuple[int, ...] | None = None
    role: str | None = None
    cause: str | None = None
    #: of a fetcher: where it begins, and which of its broker's threads to that leader it is.
    fetch_offset: int | None = None
    fetcher_id: int | None = None
    #: of a leader's line that shrinks the ISR: its time by its broker's clock, as it is not corrected, the leader's log
    #: end, and REPLICA:OFFSET[:MS] of each replica that leaves.
    logged_at: int | None = None
    log_end_offset: int | None = None
    out_of_sync: str | None = None
    #: of a reassignment that is asked for in its znode: how long snapshots, from the first to the last, show that znode
    #: and the newest known write of the topic's, µs by the clock of who read them.
    stood_us: int | None = None
    #: of a line that ignores a request: what the broker held itself.
    known_controller_epoch: int | None = None
    known_leader_epoch: int | None = None
    #: of a record of the metadata log: why it is a conclusion, where it is one.
    inferred_from: str | None = None

    @property
    def order(self) -> tuple[int, str, int, str]:
        """Time, then place in the file: a total order that the order of input does not change."""
        return _ORDER(self)


_ORDER: Final[Callable[[Evidence], tuple[int, str, int, str]]] = attrgetter("at", "file", "offset", "evidence_id")


class InOrder(tuple[Evidence, ...]):
    """Evidence sorted by :attr:`Evidence.order`."""

    __slots__ = ()


def in_order(evidence: Iterable[Evidence]) -> InOrder:
    """Sorted by :attr:`Evidence.order`. All that a fold makes of a partition's evidence begins with that; what is in
    order is so already."""
    return evidence if isinstance(evidence, InOrder) else InOrder(sorted(evidence, key=_ORDER))


def came_before(one: Evidence, other: Evidence, cluster: ClusterView) -> bool:
    """Whether two lines of one broker prove that ``one`` was written before ``other``: its clock says so, and, where
    they stand in one file, their places do not contradict it."""
    speaker = one.broker_id if one.broker_id is not None else one.controller_id
    is_kept = speaker is None or cluster.keeps_order(speaker)
    return is_kept and one.at <= other.at and (one.file != other.file or one.offset <= other.offset)
