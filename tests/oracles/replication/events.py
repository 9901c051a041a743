"""What may happen to a partition in the simulator: each event is a value, and none of them is ever illegal.

An event that cannot happen in a state (a fetch by a dead broker, an election of a leader that leads) changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Produce:
    """A producer writes ``count`` records to ``broker``, if that one believes itself leader."""

    broker: int
    count: int = 1
    acks: int = -1


@dataclass(frozen=True, slots=True)
class FetchOnce:
    """``broker`` compares its log if it must, and fetches once; the leader may count it and the answer be lost."""

    broker: int
    max_records: int = 100
    is_answer_lost: bool = False


@dataclass(frozen=True, slots=True)
class Deliver:
    """``broker`` receives its next LeaderAndIsr request; the controller sends them in order, one queue per broker.

    ``skipped`` requests are lost, as the queues of a controller are that dies; the last one is never lost, because
    every new controller sends the state in force.
    """

    broker: int
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class ShrinkIsr:
    """``broker`` looks for lagging followers."""

    broker: int


@dataclass(frozen=True, slots=True)
class AnswerAlterIsr:
    """The controller answers the ISR that ``broker`` asked for (2.7 and later)."""

    broker: int


@dataclass(frozen=True, slots=True)
class CheckpointHighWatermarks:
    """``broker`` writes ``replication-offset-checkpoint``."""

    broker: int


@dataclass(frozen=True, slots=True)
class Pass:
    """Time passes, the same for everybody."""

    ms: int


@dataclass(frozen=True, slots=True)
class Pause:
    """``broker`` stops doing anything, and does not know it: a zombie when it resumes."""

    broker: int


@dataclass(frozen=True, slots=True)
class Resume:
    broker: int


@dataclass(frozen=True, slots=True)
class Kill:
    """``broker`` dies by ``kill -9``: its log survives, what it only had in memory does not."""

    broker: int


@dataclass(frozen=True, slots=True)
class LoseSession:
    """The controller learns that a dead or paused broker is gone: it leaves the ISR, and its partition a new leader."""

    broker: int


@dataclass(frozen=True, slots=True)
class Restart:
    """``broker`` starts. Where ``is_noticed`` is false the controller saw no failure (possible before 2.2).

    ``log_end_offset`` is set for a power failure: what of its log had reached the disk.
    """

    broker: int
    is_noticed: bool = True
    log_end_offset: int | None = None


@dataclass(frozen=True, slots=True)
class Elect:
    """The controller makes ``broker`` leader: a member of the ISR, or anybody alive where ``is_unclean``."""

    broker: int
    is_unclean: bool = False


@dataclass(frozen=True, slots=True)
class LoseCheckpoint:
    """The entry of ``replication-offset-checkpoint`` is lost while the broker is down: its next start begins at 0."""

    broker: int


Event = (
    Produce
    | FetchOnce
    | Deliver
    | ShrinkIsr
    | AnswerAlterIsr
    | CheckpointHighWatermarks
    | Pass
    | Pause
    | Resume
    | Kill
    | LoseSession
    | Restart
    | Elect
    | LoseCheckpoint
)
