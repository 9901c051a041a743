"""One replica as a value: what it holds on disk, what it believes, and, while it leads, what it knows of the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from tests.oracles.replication.log import ReplicaLog

#: No leader, in a partition's state and in requests.
NO_LEADER: Final = -1


@dataclass(frozen=True, slots=True)
class LeaderAndIsr:
    """What the controller decided: the content of the partition's state znode and of the request that spreads it."""

    leader: int
    leader_epoch: int
    isr: frozenset[int]
    partition_epoch: int


class Role(StrEnum):
    """What a replica believes to be; OFFLINE until its first LeaderAndIsr request after a start."""

    OFFLINE = "offline"
    LEADER = "leader"
    FOLLOWER = "follower"


@dataclass(frozen=True, slots=True)
class FollowerProgress:
    """What a leader knows of one follower: from its fetches, never from its log.

    ``log_end_offset`` is None from an election until the follower's first fetch; an unknown one holds the high
    watermark still. The two ``last_fetch_*`` fields let a follower that is always one small batch behind count as
    caught up at its previous fetch.
    """

    log_end_offset: int | None = None
    last_caught_up_ms: int = 0
    last_fetch_ms: int = 0
    last_fetch_leader_log_end_offset: int = 0


@dataclass(frozen=True, slots=True)
class Leadership:
    """What a replica knows as leader. ``pending_isr`` was asked of the controller and is not answered yet."""

    isr: frozenset[int]
    partition_epoch: int
    epoch_start_offset: int
    progress: Mapping[int, FollowerProgress] = field(default_factory=dict)
    pending_isr: frozenset[int] | None = None

    @property
    def maximal_isr(self) -> frozenset[int]:
        """Everyone who may be in the ISR: its members and those asked to be added."""
        return self.isr if self.pending_isr is None else self.isr | self.pending_isr


@dataclass(frozen=True, slots=True)
class Replica:
    """One replica of one partition; ``leadership`` is given exactly while its role is LEADER.

    ``leader`` and ``leader_epoch`` are the last it was told and are lost with the process; the log and
    ``checkpointed_high_watermark`` (None: no entry in ``replication-offset-checkpoint``) survive on disk.
    """

    broker_id: int
    log: ReplicaLog = field(default_factory=ReplicaLog)
    high_watermark: int = 0
    role: Role = Role.OFFLINE
    leader: int = NO_LEADER
    leader_epoch: int = -1
    is_truncating: bool = False
    leadership: Leadership | None = None
    checkpointed_high_watermark: int | None = None

    @property
    def log_end_offset(self) -> int:
        return self.log.log_end_offset

    def follows(self, leader: int) -> bool:
        return self.role is Role.FOLLOWER and self.leader == leader
