"""The follower's side: what it cuts from its log for a new leader, what it takes from a fetch, what a restart leaves.

Before 0.11 a new follower cuts its log to its own high watermark. That high watermark trails the leader's, so it cuts
records that are committed, trusting the leader to give them back: if the leader goes first, they are lost, or two
replicas keep different records at the same offset (KIP-101). Since 0.11 it asks the leader where its last epoch ends;
since 2.0 the answer also says which epoch it is about (KIP-279), and since 2.1 only a leader of the same epoch answers
(KIP-320).
"""

from __future__ import annotations

from dataclasses import replace

from reconstruct.model.versions import Truncation
from tests.oracles.replication.leader import FetchResponse
from tests.oracles.replication.log import (
    UNDEFINED_EPOCH,
    UNDEFINED_EPOCH_OFFSET,
    EpochEndOffset,
    ReplicaLog,
    append,
    end_offset_for,
    end_offset_of_epoch,
    truncate_to,
)
from tests.oracles.replication.replica import LeaderAndIsr, Replica, Role
from tests.oracles.replication.rules import ReplicationRules


def become_follower(rules: ReplicationRules, replica: Replica, request: LeaderAndIsr) -> Replica:
    """``replica`` after ``makeFollower``: cut to its high watermark (before 0.11), or about to compare its lineage.

    A follower that keeps its leader goes on fetching where the version does not compare again for a new epoch alone.
    """
    told = replace(
        replica, role=Role.FOLLOWER, leader=request.leader, leader_epoch=request.leader_epoch, leadership=None
    )
    if replica.follows(request.leader):
        missed = rules.refollows_after_missed_epoch and request.leader_epoch > replica.leader_epoch + 1
        if not (missed or rules.refollows_every_epoch):
            return told
    if rules.truncation is Truncation.TO_HIGH_WATERMARK:
        return truncate(rules, told, replica.high_watermark)
    return replace(told, is_truncating=True)


def truncate(rules: ReplicationRules, replica: Replica, offset: int) -> Replica:
    """``replica`` with its log cut to ``offset``; from 2.4 on its high watermark comes down with it."""
    log = truncate_to(replica.log, offset)
    high_watermark = replica.high_watermark
    if rules.keeps_high_watermark_in_log:
        high_watermark = min(high_watermark, log.log_end_offset)
    return replace(replica, log=log, high_watermark=high_watermark, is_truncating=False)


def truncate_by_epoch(rules: ReplicationRules, follower: Replica, leader_log: ReplicaLog) -> Replica:
    """``follower`` once its log was compared with its leader's, in as many round trips as that takes.

    Without a lineage of its own it falls back to its high watermark. The log only ever gets shorter.
    """
    if rules.truncation is Truncation.BY_LEADER_EPOCH:
        if follower.log.latest_epoch == UNDEFINED_EPOCH:
            return truncate(rules, follower, follower.high_watermark)
        end_offset = end_offset_of_epoch(leader_log, follower.log.latest_epoch)
        if end_offset == UNDEFINED_EPOCH_OFFSET:
            end_offset = follower.high_watermark
        return truncate(rules, follower, min(end_offset, follower.log_end_offset))
    while True:
        if follower.log.latest_epoch == UNDEFINED_EPOCH:
            return truncate(rules, follower, follower.high_watermark)
        answer = end_offset_for(leader_log, follower.log.latest_epoch)
        follower = truncate_to_answer(rules, follower, answer)
        if not follower.is_truncating:
            return follower


def truncate_to_answer(rules: ReplicationRules, follower: Replica, answer: EpochEndOffset) -> Replica:
    """``follower`` after one answer about epochs (``getOffsetTruncationState``); still truncating if it must ask again.

    It asks again where the leader answered about an epoch that the follower does not have.
    """
    if answer.end_offset == UNDEFINED_EPOCH_OFFSET:
        return truncate(rules, follower, follower.high_watermark)
    own = end_offset_for(follower.log, answer.leader_epoch)
    if own.end_offset == UNDEFINED_EPOCH_OFFSET:
        return truncate(rules, follower, min(answer.end_offset, follower.log_end_offset))
    if own.leader_epoch != answer.leader_epoch:
        shorter = truncate(rules, follower, min(own.end_offset, follower.log_end_offset))
        return replace(shorter, is_truncating=shorter.log != follower.log)
    return truncate(rules, follower, min(own.end_offset, answer.end_offset, follower.log_end_offset))


def process_fetch_response(rules: ReplicationRules, follower: Replica, response: FetchResponse) -> Replica:
    """``processPartitionData``: append, then HW = min(leader's HW, own log end offset), whether that rises or falls."""
    if response.is_fenced or response.is_out_of_range:
        return follower
    if response.diverging_epoch is not None:
        return replace(truncate_to_answer(rules, follower, response.diverging_epoch), is_truncating=True)
    log = append(follower.log, response.records, keeps_lineage=rules.keeps_lineage)
    return replace(follower, log=log, high_watermark=min(response.high_watermark, log.log_end_offset))


def handle_offset_out_of_range(
    rules: ReplicationRules, follower: Replica, leader_log: ReplicaLog, *, is_unclean_allowed: bool
) -> Replica:
    """A follower that is longer than its leader cuts to the leader's end, and keeps its own records below it.

    Where unclean elections are not allowed the broker halts instead: nothing changes here. One that is shorter than
    the leader's start begins anew there.
    """
    if follower.log_end_offset > leader_log.log_end_offset:
        return truncate(rules, follower, leader_log.log_end_offset) if is_unclean_allowed else follower
    if follower.log_end_offset < leader_log.log_start_offset:
        start = leader_log.log_start_offset
        return replace(follower, log=ReplicaLog(log_start_offset=start), high_watermark=start)
    return follower


def checkpoint(replica: Replica) -> Replica:
    """``replica`` after its broker wrote ``replication-offset-checkpoint``: leaders and followers alike."""
    return replace(replica, checkpointed_high_watermark=replica.high_watermark)


def restart(replica: Replica, *, log_end_offset: int | None = None) -> Replica:
    """``replica`` as a start finds it: the log, and the checkpointed high watermark, 0 where there is none, within it.

    ``log_end_offset`` is what recovery left of a log whose last records never reached the disk.
    """
    log = replica.log if log_end_offset is None else truncate_to(replica.log, log_end_offset)
    initial = replica.checkpointed_high_watermark or 0
    return Replica(
        broker_id=replica.broker_id,
        log=log,
        high_watermark=max(min(initial, log.log_end_offset), log.log_start_offset),
        checkpointed_high_watermark=replica.checkpointed_high_watermark,
    )
