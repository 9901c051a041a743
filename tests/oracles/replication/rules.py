"""The replication rules of each Kafka version as the simulated replicas follow them, and the settings they ask for."""

from __future__ import annotations

from dataclasses import dataclass

from reconstruct.model.versions import (
    ALTER_ISR_SINCE,
    BROKER_EPOCHS_SINCE,
    EPOCH_ASSIGNED_AT_ELECTION_SINCE,
    FETCHES_ARE_FENCED_SINCE,
    HIGH_WATERMARK_KEPT_IN_LOG_SINCE,
    HIGH_WATERMARK_NEEDS_MIN_ISR_SINCE,
    JOIN_NEEDS_EPOCH_START_SINCE,
    LAG_MAX_MESSAGES_UNTIL,
    KafkaVersion,
    Truncation,
    truncation_of,
)
from tests.oracles.versions import (
    CAUGHT_UP_HOLD_BACK_HIGH_WATERMARK_SINCE,
    EQUAL_LOG_END_IS_IN_SYNC_SINCE,
    KEEPS_PROGRESS_WHERE_IT_LED_SINCE,
    MISSED_EPOCHS_MADE_UP_SINCE,
    SAME_LEADER_FOLLOWED_ON_UNTIL,
    TRUNCATION_ON_FETCH_SINCE,
)


@dataclass(frozen=True, slots=True)
class ReplicationRules:
    """The rules of one version; each field says what the gate of the same name says."""

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
    return ReplicationRules(
        version=version,
        truncation=truncation_of(version),
        has_lag_max_messages=version < LAG_MAX_MESSAGES_UNTIL,
        keeps_progress_where_it_led=version >= KEEPS_PROGRESS_WHERE_IT_LED_SINCE,
        caught_up_hold_back_high_watermark=version >= CAUGHT_UP_HOLD_BACK_HIGH_WATERMARK_SINCE,
        join_needs_epoch_start=version >= JOIN_NEEDS_EPOCH_START_SINCE,
        assigns_epoch_at_election=version >= EPOCH_ASSIGNED_AT_ELECTION_SINCE,
        refollows_after_missed_epoch=version >= MISSED_EPOCHS_MADE_UP_SINCE,
        refollows_every_epoch=version >= SAME_LEADER_FOLLOWED_ON_UNTIL,
        fences_fetches=version >= FETCHES_ARE_FENCED_SINCE,
        equal_log_end_is_in_sync=version >= EQUAL_LOG_END_IS_IN_SYNC_SINCE,
        notices_bounce=version >= BROKER_EPOCHS_SINCE,
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
