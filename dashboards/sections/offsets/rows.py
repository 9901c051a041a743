"""What is known of the offsets of one partition."""

from __future__ import annotations

from dataclasses import dataclass

from dashboards.section import Partition


@dataclass(frozen=True)
class Bounds:
    """Bounds of a replica's high watermark and log end offset that hold at every instant of the span.

    ``rows`` rows of ``silver.replica_offset_timeline`` are joined in it, of ``rows_total`` of the replica.
    """

    replica_id: int
    from_ms: float
    to_ms: float | None
    high_watermark_lower: int | None
    high_watermark_upper: int | None
    log_end_offset_lower: int | None
    log_end_offset_upper: int | None
    rows: int
    rows_total: int


@dataclass(frozen=True)
class EvidencedBounds(Bounds):
    """Bounds with the ids of the observations that they rest on."""

    evidence: tuple[str, ...]


@dataclass(frozen=True)
class Step(Bounds):
    """Bounds as drawn: ``observations`` are numbers in :attr:`Curve.observations`."""

    observations: tuple[int, ...]


@dataclass(frozen=True)
class Observation:
    """An offset that a file or a line states, and the span in which it was so."""

    offset_kind: str
    offset: int
    replica_id: int | None
    source: str
    from_ms: float | None
    to_ms: float | None


@dataclass(frozen=True)
class Leader:
    """One leader epoch."""

    from_ms: float
    to_ms: float | None
    leader: int
    leader_epoch: int


@dataclass(frozen=True)
class Election:
    """A row of ``gold.leader_elections``; ``evidence`` is its first record."""

    at_ms: float
    election_kind: str
    previous_leader: int | None
    observed_leader: int
    leader_epoch: int
    is_unclean: bool | None
    evidence: str | None


@dataclass(frozen=True)
class Truncation:
    """A replica cut its log to ``to_offset``."""

    at_ms: float
    replica_id: int
    to_offset: int
    evidence: str | None


@dataclass(frozen=True)
class OwnRecords:
    """First and last offset of records that a replica kept where its leader's log has others."""

    replica_id: int
    first_offset: int
    last_offset: int


@dataclass(frozen=True)
class Loss:
    """A row of ``gold.data_loss_bounds``."""

    at_ms: float
    cause: str
    leader: int
    previous_leader: int | None
    leader_epoch: int
    lost_from_offset: int
    lost_to_offset_lower: int | None
    lost_to_offset_upper: int | None
    lost_count_lower: int
    lost_count_upper: int | None
    diverging_replicas: tuple[int, ...]
    diverging_offsets: tuple[str, ...]
    evidence: tuple[str, ...]

    @property
    def own_records(self) -> tuple[OwnRecords, ...]:
        pairs = zip(self.diverging_replicas, self.diverging_offsets, strict=True)
        return tuple(OwnRecords(replica, *map(int, offsets.split("-"))) for replica, offsets in pairs)


@dataclass(frozen=True)
class Curve(Partition):
    """A partition with known offsets or losses, and totals of its cluster. Only those drawn have what follows
    ``is_drawn``."""

    losses_count: int
    lost_lower: int
    lost_upper: int | None
    unbounded: int
    diverging: int
    unclean: int
    rise: int
    replicas: int
    intervals: int
    lost_at_ms: float | None
    curves_total: int
    losing_total: int
    proven_total: int
    lost_lower_total: int
    lost_upper_total: int | None
    unbounded_total: int
    diverging_total: int
    is_drawn: bool = False
    steps: tuple[Step, ...] = ()
    leaders: tuple[Leader, ...] = ()
    elections: tuple[Election, ...] = ()
    truncations: tuple[Truncation, ...] = ()
    losses: tuple[Loss, ...] = ()
    observations: tuple[Observation, ...] = ()
