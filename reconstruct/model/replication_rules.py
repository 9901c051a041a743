"""Which replication rules each Kafka version follows: data, so that an old log is judged by the rules it ran under.

The inter-broker protocol decides where broker and protocol differ; a cluster that was upgraded without raising it
follows the older rules. Gates are named after the KIP or issue that changed the rule, with the first release.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from reconstruct.model.versions import KafkaVersion, v

#: replica.lag.max.messages: a follower too many records behind leaves the ISR. Removed by KIP-16.
LAG_MAX_MESSAGES_UNTIL: Final = v(0, 9)
#: A leader that stays leader in a new epoch keeps what it knew of its followers (0.9.0.0).
KEEPS_PROGRESS_WHERE_IT_LED_SINCE: Final = v(0, 9)
#: A caught-up replica outside the ISR holds the high watermark back until it joins (KAFKA-4485).
CAUGHT_UP_HOLD_BACK_HIGH_WATERMARK_SINCE: Final = v(0, 10, 2)
#: KIP-101: a follower truncates to where its last epoch ends on the leader, no longer to its own high watermark.
TRUNCATION_BY_LEADER_EPOCH_SINCE: Final = v(0, 11)
#: KIP-279: the leader names the epoch that its answer is about, so that consecutive fast failovers leave no divergence.
TRUNCATION_BY_EPOCH_LINEAGE_SINCE: Final = v(2, 0)
#: KAFKA-7128: a replica joins the ISR only once its log end offset reached the start of the leader's epoch.
JOIN_NEEDS_EPOCH_START_SINCE: Final = v(2, 0, 1)
#: KAFKA-7415: a leader enters its epoch into the lineage at its election, not at its first append.
EPOCH_ASSIGNED_AT_ELECTION_SINCE: Final = v(2, 0, 1)
#: KIP-320: fetches carry the leader epoch; a leader of another epoch refuses them.
FETCHES_ARE_FENCED_SINCE: Final = v(2, 1)
#: A follower whose log end offset equals the leader's is never out of sync, however long ago it fetched (KAFKA-7152).
EQUAL_LOG_END_IS_IN_SYNC_SINCE: Final = v(2, 1)
#: A follower whose leader only got a new epoch compares its log again: from then on where it missed an epoch between
#: (KAFKA-7128's release), and from 2.1 on at every new epoch (KIP-320). Before, a known leader was simply followed on.
REFOLLOWS_AFTER_MISSED_EPOCH_SINCE: Final = v(2, 0, 1)
REFOLLOWS_EVERY_EPOCH_SINCE: Final = v(2, 1)
#: KIP-380: the controller tells a broker that bounced from one that stayed.
BOUNCE_IS_NOTICED_SINCE: Final = v(2, 2)
#: The log owns the high watermark and keeps it within [log start, log end] (KAFKA-8457).
HIGH_WATERMARK_KEPT_IN_LOG_SINCE: Final = v(2, 4)
#: KIP-497: the ISR is changed by the controller on the leader's request; a replica asked for already counts.
ALTER_ISR_SINCE: Final = v(2, 7)
#: KIP-595's truncation on fetch: a fetch response names the diverging epoch (inter-broker protocol 2.7).
TRUNCATION_ON_FETCH_SINCE: Final = v(2, 7)
#: KIP-966's first part: the high watermark stands still while the ISR is smaller than min.insync.replicas.
HIGH_WATERMARK_NEEDS_MIN_ISR_SINCE: Final = v(3, 7)


class Truncation(StrEnum):
    """What a follower of a new leader cuts its log to before it fetches."""

    TO_HIGH_WATERMARK = "to_high_watermark"
    BY_LEADER_EPOCH = "by_leader_epoch"
    BY_EPOCH_LINEAGE = "by_epoch_lineage"


@dataclass(frozen=True, slots=True)
class ReplicationRules:
    """The rules of one version; each field says what the gate above it of the same name says."""

    version: KafkaVersion
    truncation: Truncation
    has_lag_max_messages: bool
    keeps_progress_where_it_led: bool
    caught_up_hold_back_high_watermark: bool
    join_needs_epoch_start: bool
    assigns_epoch_at_election: bool
    refollows_after_missed_epoch: bool
    refollows_every_epoch: bool
    fences_fetches: bool
    equal_log_end_is_in_sync: bool
    notices_bounce: bool
    keeps_high_watermark_in_log: bool
    alters_isr_through_controller: bool
    truncates_on_fetch: bool
    high_watermark_needs_min_isr: bool

    @property
    def keeps_lineage(self) -> bool:
        """True where a log has a ``leader-epoch-checkpoint``."""
        return self.truncation is not Truncation.TO_HIGH_WATERMARK

    @property
    def promises_strong_isr(self) -> bool:
        """True where clean elections cannot lose or fork what any leader showed as committed.

        The TLA+ specification of KIP-320 proves it for fenced fetches and truncation, a lineage that names epochs, and
        joining at the epoch's start; each older version lacks one of them.
        """
        return self.fences_fetches and self.join_needs_epoch_start


def rules_of(version: KafkaVersion) -> ReplicationRules:
    """The rules that a cluster of ``version`` with an inter-broker protocol of the same version follows."""
    truncation = Truncation.TO_HIGH_WATERMARK
    if version >= TRUNCATION_BY_LEADER_EPOCH_SINCE:
        truncation = Truncation.BY_LEADER_EPOCH
    if version >= TRUNCATION_BY_EPOCH_LINEAGE_SINCE:
        truncation = Truncation.BY_EPOCH_LINEAGE
    return ReplicationRules(
        version=version,
        truncation=truncation,
        has_lag_max_messages=version < LAG_MAX_MESSAGES_UNTIL,
        keeps_progress_where_it_led=version >= KEEPS_PROGRESS_WHERE_IT_LED_SINCE,
        caught_up_hold_back_high_watermark=version >= CAUGHT_UP_HOLD_BACK_HIGH_WATERMARK_SINCE,
        join_needs_epoch_start=version >= JOIN_NEEDS_EPOCH_START_SINCE,
        assigns_epoch_at_election=version >= EPOCH_ASSIGNED_AT_ELECTION_SINCE,
        refollows_after_missed_epoch=version >= REFOLLOWS_AFTER_MISSED_EPOCH_SINCE,
        refollows_every_epoch=version >= REFOLLOWS_EVERY_EPOCH_SINCE,
        fences_fetches=version >= FETCHES_ARE_FENCED_SINCE,
        equal_log_end_is_in_sync=version >= EQUAL_LOG_END_IS_IN_SYNC_SINCE,
        notices_bounce=version >= BOUNCE_IS_NOTICED_SINCE,
        keeps_high_watermark_in_log=version >= HIGH_WATERMARK_KEPT_IN_LOG_SINCE,
        alters_isr_through_controller=version >= ALTER_ISR_SINCE,
        truncates_on_fetch=version >= TRUNCATION_ON_FETCH_SINCE,
        high_watermark_needs_min_isr=version >= HIGH_WATERMARK_NEEDS_MIN_ISR_SINCE,
    )


@dataclass(frozen=True, slots=True)
class ReplicationConfig:
    """The settings that the rules ask for, under Kafka's own names; times in milliseconds."""

    min_insync_replicas: int = 1
    replica_lag_time_max_ms: int = 10_000
    replica_lag_max_messages: int = 4_000
    unclean_leader_election_enable: bool = True
