"""The leader's side: it appends, answers fetches, learns from them how far its followers are, and moves the high
watermark (``kafka.cluster.Partition``).

A leader never looks into a follower. A fetch at offset O says that everything below O is on the follower's log: the
follower's log end offset is O (``updateReplicaLEOAndPartitionHW``). From that follow both decisions: whether the
follower may enter the ISR, and whether the smallest log end offset of the ISR has risen, which is the new high
watermark. The response carries the high watermark as of then, so a record is committed one fetch after it is
replicated, and the follower hears of it one fetch later still.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tests.oracles.replication.log import (
    EpochEndOffset,
    Record,
    ReplicaLog,
    append,
    assign_epoch,
    end_offset_for,
)
from tests.oracles.replication.replica import FollowerProgress, LeaderAndIsr, Leadership, Replica, Role
from tests.oracles.replication.rules import ReplicationConfig, ReplicationRules


@dataclass(frozen=True, slots=True)
class Fetch:
    """A follower's fetch; ``leader_epoch`` and ``last_fetched_epoch`` travel with it only where the rules say so."""

    follower_id: int
    fetch_offset: int
    max_records: int
    leader_epoch: int
    last_fetched_epoch: int


@dataclass(frozen=True, slots=True)
class FetchResponse:
    """The answer: records and the leader's high watermark, or why there are none."""

    records: tuple[Record, ...] = ()
    high_watermark: int = -1
    diverging_epoch: EpochEndOffset | None = None
    is_out_of_range: bool = False
    is_fenced: bool = False


def become_leader(
    rules: ReplicationRules,
    config: ReplicationConfig,
    replica: Replica,
    request: LeaderAndIsr,
    others: Iterable[int],
    now_ms: int,
) -> Replica:
    """``replica`` after ``makeLeader``: the followers' log end offsets unknown unless it led already (since 0.9).

    One that was deposed and elected again without hearing of the epoch between counts as having led all along, and
    believes what it knew of its followers before they followed another leader.
    Its high watermark stays what it was as follower, which may be less than the last leader's.
    """
    keeps = rules.keeps_progress_where_it_led and replica.leadership is not None
    before = replica.leadership.progress if keeps and replica.leadership else {}
    log_end_offset = replica.log_end_offset
    progress = {
        other: FollowerProgress(
            log_end_offset=before[other].log_end_offset if other in before else None,
            last_caught_up_ms=now_ms if other in request.isr else 0,
            last_fetch_ms=now_ms,
            last_fetch_leader_log_end_offset=log_end_offset,
        )
        for other in others
    }
    log = assign_epoch(replica.log, request.leader_epoch) if rules.assigns_epoch_at_election else replica.log
    led = replace(
        replica,
        log=log,
        role=Role.LEADER,
        leader=replica.broker_id,
        leader_epoch=request.leader_epoch,
        is_truncating=False,
        leadership=Leadership(request.isr, request.partition_epoch, log_end_offset, progress),
    )
    return increment_high_watermark(rules, config, led, now_ms)


def append_to_leader(
    rules: ReplicationRules,
    config: ReplicationConfig,
    leader: Replica,
    record_ids: Iterable[int],
    *,
    acks: int,
    now_ms: int,
) -> Replica | None:
    """``leader`` with new records; None (NotEnoughReplicas) for acks -1 while the ISR is under min.insync.replicas."""
    if leader.leadership is None or (acks == -1 and len(leader.leadership.isr) < config.min_insync_replicas):
        return None
    records = [Record(leader.leader_epoch, record_id) for record_id in record_ids]
    log = append(leader.log, records, keeps_lineage=rules.keeps_lineage)
    return increment_high_watermark(rules, config, replace(leader, log=log), now_ms)


def is_acknowledged(config: ReplicationConfig, leader: Replica, offset: int, *, acks: int) -> bool:
    """True where the leader may answer the producer of the record at ``offset`` with success.

    With acks -1 that needs the high watermark above it and at least min.insync.replicas in the ISR at that moment.
    """
    if leader.leadership is None:
        return False
    if acks != -1:
        return offset < leader.log_end_offset
    return leader.high_watermark > offset and len(leader.leadership.isr) >= config.min_insync_replicas


def increment_high_watermark(
    rules: ReplicationRules, config: ReplicationConfig, leader: Replica, now_ms: int
) -> Replica:
    """``maybeIncrementLeaderHW``: to the smallest log end offset of the ISR, and only upwards.

    Since 0.10.2 a caught-up replica outside the ISR counts as well, so that it can reach the high watermark at all;
    since 2.7 so does one that was proposed for the ISR; since 3.7 nothing moves under min.insync.replicas.
    """
    led = leader.leadership
    if led is None or (rules.high_watermark_needs_min_isr and len(led.isr) < config.min_insync_replicas):
        return leader
    lowest = leader.log_end_offset
    members = led.maximal_isr
    for other, progress in led.progress.items():
        waits = rules.caught_up_hold_back_high_watermark and _is_caught_up(
            rules, progress, leader.log_end_offset, config.replica_lag_time_max_ms, now_ms
        )
        if other in members or waits:
            lowest = min(lowest, -1 if progress.log_end_offset is None else progress.log_end_offset)
    return replace(leader, high_watermark=lowest) if lowest > leader.high_watermark else leader


def _is_caught_up(
    rules: ReplicationRules, progress: FollowerProgress, log_end_offset: int, lag_ms: int, now_ms: int
) -> bool:
    if rules.equal_log_end_is_in_sync and progress.log_end_offset == log_end_offset:
        return True
    return now_ms - progress.last_caught_up_ms <= lag_ms


def handle_fetch(
    rules: ReplicationRules, config: ReplicationConfig, leader: Replica, fetch: Fetch, now_ms: int
) -> tuple[Replica, FetchResponse]:
    """The leader after a follower's fetch, and its answer; the ISR is judged apart, by :func:`isr_after_fetch`.

    The high watermark answered is the one from before this fetch was counted.
    """
    led = leader.leadership
    if led is None or (rules.fences_fetches and fetch.leader_epoch != leader.leader_epoch):
        return leader, FetchResponse(is_fenced=True)
    if rules.truncates_on_fetch and (diverging := diverging_epoch(leader.log, fetch)) is not None:
        return leader, FetchResponse(diverging_epoch=diverging)
    if not leader.log.log_start_offset <= fetch.fetch_offset <= leader.log_end_offset:
        return leader, FetchResponse(is_out_of_range=True)
    before = led.progress.get(fetch.follower_id)
    if before is None:
        return leader, FetchResponse(is_fenced=True)
    response = FetchResponse(leader.log.read(fetch.fetch_offset, fetch.max_records), leader.high_watermark)
    caught_up_ms = before.last_caught_up_ms
    if fetch.fetch_offset >= leader.log_end_offset:
        caught_up_ms = max(caught_up_ms, now_ms)
    elif fetch.fetch_offset >= before.last_fetch_leader_log_end_offset:
        caught_up_ms = max(caught_up_ms, before.last_fetch_ms)
    progress = FollowerProgress(fetch.fetch_offset, caught_up_ms, now_ms, leader.log_end_offset)
    fetched = replace(leader, leadership=replace(led, progress={**led.progress, fetch.follower_id: progress}))
    return increment_high_watermark(rules, config, fetched, now_ms), response


def diverging_epoch(log: ReplicaLog, fetch: Fetch) -> EpochEndOffset | None:
    """Where the follower's log leaves ``log``, if its last record is not the one that ``log`` has there (2.7)."""
    if fetch.last_fetched_epoch < 0:
        return None
    end = end_offset_for(log, fetch.last_fetched_epoch)
    parted = end.leader_epoch < fetch.last_fetched_epoch or end.end_offset < fetch.fetch_offset
    return end if parted else None


def isr_after_fetch(rules: ReplicationRules, leader: Replica, follower_id: int) -> frozenset[int] | None:
    """The ISR with the follower, where its fetch earned that (``maybeExpandIsr``); None where nothing changes."""
    led = leader.leadership
    if led is None or led.pending_isr is not None or follower_id in led.isr or follower_id not in led.progress:
        return None
    reached = led.progress[follower_id].log_end_offset
    if reached is None or reached < leader.high_watermark:
        return None
    if rules.join_needs_epoch_start and reached < led.epoch_start_offset:
        return None
    return led.isr | {follower_id}


def isr_after_shrink(
    rules: ReplicationRules, config: ReplicationConfig, leader: Replica, now_ms: int
) -> frozenset[int] | None:
    """The ISR without those that lag (``maybeShrinkIsr``); None where nobody does.

    Up to 0.8 by the time since the last fetch, and by records behind (``replica.lag.max.messages``); from 0.9 on by
    the time since the follower was last caught up.
    """
    led = leader.leadership
    if led is None or led.pending_isr is not None:
        return None
    lagging = {
        member
        for member in led.isr - {leader.broker_id}
        if member not in led.progress or _lags(rules, config, leader.log_end_offset, led.progress[member], now_ms)
    }
    return led.isr - lagging if lagging else None


def _lags(
    rules: ReplicationRules, config: ReplicationConfig, log_end_offset: int, progress: FollowerProgress, now_ms: int
) -> bool:
    if rules.has_lag_max_messages:
        reached = progress.log_end_offset
        is_slow = reached is not None and log_end_offset - reached > config.replica_lag_max_messages
        return is_slow or now_ms - progress.last_fetch_ms > config.replica_lag_time_max_ms
    return not _is_caught_up(rules, progress, log_end_offset, config.replica_lag_time_max_ms, now_ms)


def with_isr(
    rules: ReplicationRules,
    config: ReplicationConfig,
    leader: Replica,
    isr: frozenset[int],
    partition_epoch: int,
    now_ms: int,
) -> Replica:
    """``leader`` once its ISR change is written: its high watermark may rise, as the ISR may be down to itself."""
    if leader.leadership is None:
        return leader
    led = replace(leader.leadership, isr=isr, partition_epoch=partition_epoch, pending_isr=None)
    return increment_high_watermark(rules, config, replace(leader, leadership=led), now_ms)


def with_pending_isr(leader: Replica, isr: frozenset[int]) -> Replica:
    """``leader`` once it asked the controller for ``isr`` (AlterIsr, AlterPartition)."""
    if leader.leadership is None:
        return leader
    return replace(leader, leadership=replace(leader.leadership, pending_isr=isr))
