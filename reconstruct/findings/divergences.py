"""Every way in which the evidence may show what a rule does not allow: a section each in ``docs/findings``."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, Self


class Harm(StrEnum):
    """What a finding's evidence proves of the harm that was done, whether a rule was broken or not."""

    RECORDS_LOST = "records_lost"  # committed records are gone
    REPLICAS_DIFFER = "replicas_differ"  # two replicas hold different records at one offset
    TWO_LEADERS = "two_leaders"  # two replicas led at a time
    UNAVAILABLE = "unavailable"  # nobody could write or read
    POSSIBLE = "possible"  # one of these, or none: the evidence bounds it and does not settle it
    NONE = "none"  # proven: nothing of it


class DivergenceType(StrEnum):
    """The kind of a finding, and the ids of the rules that findings of the kind are about."""

    rules: tuple[str, ...]

    def __new__(cls, value: str, *rules: str) -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.rules = rules
        return member

    @property
    def rule_id(self) -> str:
        """The one rule of the kind; ValueError where it has several, and the finding has to name one."""
        (rule_id,) = self.rules
        return rule_id

    LEADER_EPOCH_DECREASED = "leader_epoch_decreased", "R01"
    TWO_LEADERS_FOR_ONE_EPOCH = "two_leaders_for_one_epoch", "R02"
    PARTITION_EPOCH_REPEATED = "partition_epoch_repeated", "R03"
    PARTITION_EPOCH_DECREASED = "partition_epoch_decreased", "R03"
    ISR_OUTSIDE_ASSIGNMENT = "isr_outside_assignment", "R04"
    LEADER_OUTSIDE_ISR = "leader_outside_isr", "R05"
    ISR_EMPTY = "isr_empty", "R06"
    DEAD_LEADER_ELECTED = "dead_leader_elected", "R07"
    UNCLEAN_ELECTION = "unclean_election", "R08"
    WRONG_LEADER_ELECTED = "wrong_leader_elected", "R09"
    WRONG_ISR_AFTER_ELECTION = "wrong_isr_after_election", "R09"
    LEADER_EPOCH_NOT_RAISED = "leader_epoch_not_raised", "R10"
    LEADER_EPOCH_RAISED_BY_MORE = "leader_epoch_raised_by_more", "R10"
    LEADER_EPOCH_RAISED_BY_ISR_CHANGE = "leader_epoch_raised_by_isr_change", "R10"
    TWO_CONTROLLERS_FOR_ONE_EPOCH = "two_controllers_for_one_epoch", "R11"
    STALE_CONTROLLER_WROTE = "stale_controller_wrote", "R12"
    ACCEPTED_STALE_CONTROLLER = "accepted_stale_controller", "R12"
    ILLEGAL_TRANSITION = "illegal_transition", "R13", "R14"
    REFUSED_TRANSITION = "refused_transition", "R13", "R14"
    TRANSITION_NOT_LOGGED = "transition_not_logged", "R13", "R14"
    REQUEST_NOT_SENT = "request_not_sent", "R15"
    REQUEST_TO_WRONG_BROKER = "request_to_wrong_broker", "R15"
    REQUEST_NOT_DECIDED = "request_not_decided", "R15"
    ISR_NOT_SHRUNK = "isr_not_shrunk", "R15"
    STEP_OUT_OF_ORDER = "step_out_of_order", "R16"
    STEP_MISSING = "step_missing", "R16"
    REGISTRATION_OUT_OF_ORDER = "registration_out_of_order", "R16"
    BOUNCE_NOT_NOTICED = "bounce_not_noticed", "R16"
    REASSIGNMENT_NOT_BEGUN = "reassignment_not_begun", "R16"
    REQUEST_NOT_RECEIVED = "request_not_received", "R23"
    REQUEST_NEVER_SENT = "request_never_sent", "R23"
    REQUEST_NOT_HANDLED = "request_not_handled", "R23"
    REQUEST_NOT_ANSWERED = "request_not_answered", "R23"
    ROLE_NOT_DECIDED = "role_not_decided", "R20"
    ACTED_ON_LOWER_LEADER_EPOCH = "acted_on_lower_leader_epoch", "R21"
    ACTED_ON_LOWER_CONTROLLER_EPOCH = "acted_on_lower_controller_epoch", "R21"
    IGNORED_WITHOUT_REASON = "ignored_without_reason", "R21"
    TOPIC_ID_DIFFERS = "topic_id_differs", "R21"
    CACHES_DISAGREE = "caches_disagree", "R22"
    CACHE_NEVER_DECIDED = "cache_never_decided", "R24"
    CACHE_DIFFERS_AT_REST = "cache_differs_at_rest", "R24"
    ROLE_DIFFERS_AT_REST = "role_differs_at_rest", "R24"
    LEADER_STUCK_ON_STALE_VERSION = "leader_stuck_on_stale_version", "R24"
    TWO_ACTING_LEADERS = "two_acting_leaders", "R25"
    DEPOSED_LEADER_WENT_ON = "deposed_leader_went_on", "R25"
    FETCHED_FROM_WRONG_LEADER = "fetched_from_wrong_leader", "R26"
    FETCHER_LEFT_FAILED = "fetcher_left_failed", "R26"
    HIGH_WATERMARK_DECREASED = "high_watermark_decreased", "R30"
    HIGH_WATERMARK_ROLLED_BACK = "high_watermark_rolled_back", "R30"
    HIGH_WATERMARK_ABOVE_LOG_END = "high_watermark_above_log_end", "R31"
    RECOVERY_POINT_ABOVE_LOG_END = "recovery_point_above_log_end", "R31"
    LOG_START_ABOVE_HIGH_WATERMARK = "log_start_above_high_watermark", "R31"
    LOG_START_ABOVE_LOG_END = "log_start_above_log_end", "R31"
    FOLLOWER_HIGH_WATERMARK_ABOVE_LEADER = "follower_high_watermark_above_leader", "R32"
    ISR_MEMBER_BEHIND_HIGH_WATERMARK = "isr_member_behind_high_watermark", "R33"
    LEADER_HIGH_WATERMARK_ABOVE_ISR = "leader_high_watermark_above_isr", "R34"
    HIGH_WATERMARK_MOVED_UNDER_MIN_ISR = "high_watermark_moved_under_min_isr", "R34"
    COMMITTED_RECORDS_LOST = "committed_records_lost", "R35"
    COMMITTED_RECORDS_TRUNCATED = "committed_records_truncated", "R35"
    REPLICA_DIVERGED_SILENTLY = "replica_diverged_silently", "R36"
    EPOCH_LINEAGE_CONFLICT = "epoch_lineage_conflict", "R36"
    EPOCH_BEGAN_TWICE = "epoch_began_twice", "R36"
    ISR_SHRINK_WITHOUT_REASON = "isr_shrink_without_reason", "R38"
    ISR_JOIN_TOO_EARLY = "isr_join_too_early", "R38"
    ISR_FLAPS_UNDER_MIN_ISR = "isr_flaps_under_min_isr", "R38"
    ACKS_ALL_UNAVAILABLE = "acks_all_unavailable", "R39"
    CHECKPOINT_MISSING = "checkpoint_missing", "R37"
    CHECKPOINT_ZERO = "checkpoint_zero", "R37"
    CHECKPOINT_OUT_OF_BOUNDS = "checkpoint_out_of_bounds", "R37"
    CHECKPOINT_STALE = "checkpoint_stale", "R37"
    CHECKPOINT_MALFORMED = "checkpoint_malformed", "R37"
    CHECKPOINT_DUPLICATE_ENTRY = "checkpoint_duplicate_entry", "R37"
    CHECKPOINT_UNASSIGNED_ENTRY = "checkpoint_unassigned_entry", "R37"
    CHECKPOINT_BEYOND_LOG = "checkpoint_beyond_log", "R37"
    LOG_DIRECTORY_WIPED = "log_directory_wiped", "R37"
    SEGMENTS_OVERLAP = "segments_overlap", "R40"
    SEGMENT_ROLLED_BELOW = "segment_rolled_below", "R40"
    INDEX_DIFFERS_FROM_SEGMENT = "index_differs_from_segment", "R41"
    SEGMENT_DAMAGED = "segment_damaged", "R41"
    METADATA_COPIES_DIFFER = "metadata_copies_differ", "R50"
    METADATA_RECORD_UNFIT = "metadata_record_unfit", "R51"
    METADATA_SNAPSHOT_DIFFERS = "metadata_snapshot_differs", "R52"
    INACTIVE_BROKER_CHOSEN = "inactive_broker_chosen", "R53"
    LEADER_NOT_ELIGIBLE = "leader_not_eligible", "R54"
    ELR_OUT_OF_NOTHING = "elr_out_of_nothing", "R55"
    ELIGIBLE_REPLICA_LOST = "eligible_replica_lost", "R55"
    LATER_REPLICA_ELECTED = "later_replica_elected", "R56"
    REASSIGNMENT_ENDED_EARLY = "reassignment_ended_early", "R57"
    UNCLEAN_LEADER_UNFIT = "unclean_leader_unfit", "R58"
    BROKER_EPOCH_OUT_OF_PLACE = "broker_epoch_out_of_place", "R59"
    MIGRATED_STATE_DIFFERS = "migrated_state_differs", "R60"


#: What a finding of a type proves of harm, where its evidence says no more (docs/findings). Of other types it says
#: nothing.
HARM_OF_TYPE: Final[Mapping[DivergenceType, Harm]] = {
    DivergenceType.UNCLEAN_ELECTION: Harm.POSSIBLE,
    DivergenceType.DEAD_LEADER_ELECTED: Harm.UNAVAILABLE,
    DivergenceType.TWO_ACTING_LEADERS: Harm.TWO_LEADERS,
    DivergenceType.DEPOSED_LEADER_WENT_ON: Harm.POSSIBLE,
    DivergenceType.COMMITTED_RECORDS_LOST: Harm.RECORDS_LOST,
    DivergenceType.COMMITTED_RECORDS_TRUNCATED: Harm.POSSIBLE,
    DivergenceType.REPLICA_DIVERGED_SILENTLY: Harm.REPLICAS_DIFFER,
    DivergenceType.ACKS_ALL_UNAVAILABLE: Harm.UNAVAILABLE,
    DivergenceType.CHECKPOINT_BEYOND_LOG: Harm.POSSIBLE,
    DivergenceType.LOG_DIRECTORY_WIPED: Harm.POSSIBLE,
}
