"""What offsets of one replica say of each other, and those of a follower and of its leader."""

from __future__ import annotations

from collections.abc import Sequence

from reconstruct.offsets import evidence as oe
from reconstruct.offsets.bound_steps import EVER_AFTER
from reconstruct.offsets.evidence import OffsetEvidence, ReplicaEventKind
from reconstruct.offsets.inference.facts import Facts
from reconstruct.offsets.role_spans import RoleSpan
from reconstruct.time.spans import within


def infer_within_replica(
    facts: Facts, evidence: OffsetEvidence, replicas: Sequence[int], roles: Sequence[RoleSpan], *, is_kept_in_log: bool
) -> None:
    """High watermark <= log end offset."""
    for replica in replicas:
        above = [] if is_kept_in_log else _may_be_above(evidence, replica, roles)
        high_watermark, log_end = (replica, oe.HIGH_WATERMARK), (replica, oe.LOG_END_OFFSET)
        for fact in list(facts.lower.get(high_watermark, ())):
            if not any(start <= fact.at <= end for start, end in above):
                facts.at_least(log_end, fact)
        for fact in list(facts.upper.get(log_end, ())):
            if not any(start <= fact.at <= end for start, end in above):
                facts.at_most(high_watermark, fact)
        for fact in list(facts.lower.get((replica, oe.RECOVERY_POINT), ())):
            facts.at_least(log_end, fact)


def _may_be_above(evidence: OffsetEvidence, replica: int, roles: Sequence[RoleSpan]) -> list[tuple[int, int]]:
    """Spans from a truncation to the next proven fetch or start: there the high watermark may be above the log."""
    slack = evidence.clocks.slack_us(replica)
    starts = [event.at for event in evidence.events_of(replica, ReplicaEventKind.STARTED)]
    fetched = [role.proven_from for role in roles if role.follows(replica)]
    result = []
    for cut in evidence.events_of(replica, ReplicaEventKind.TRUNCATED):
        healed = [at + slack for at in starts if at > cut.at] + [at for at in fetched if at > cut.at + slack]
        result.append((cut.at - slack, min(healed, default=EVER_AFTER)))
    return result


def infer_between_replicas(facts: Facts, roles: Sequence[RoleSpan]) -> None:
    """A proven follower's high watermark and log end are not above its leader's."""
    for role in roles:
        if role.is_leader or role.proven_from >= role.end:
            continue
        for quantity in (oe.HIGH_WATERMARK, oe.LOG_END_OFFSET):
            own, leaders = (role.replica_id, quantity), (role.leader, quantity)
            for fact in within(facts.lower.get(own, ()), role.proven_from, role.end - 1):
                facts.at_least(leaders, fact)
            for fact in within(facts.upper.get(leaders, ()), role.proven_from, role.end - 1):
                facts.at_most(own, fact)
