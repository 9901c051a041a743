"""Which replication rules each Kafka version follows: data, so that an old log is judged by the rules it ran under.

The inter-broker protocol decides where broker and protocol differ; a cluster that was upgraded without raising it
follows the older rules. Gates are named after the KIP or issue that changed the rule, with the first release.
"""

from __future__ import annotations

from enum import StrEnum

from reconstruct.model.versions import (
    TRUNCATION_BY_EPOCH_LINEAGE_SINCE,
    TRUNCATION_BY_LEADER_EPOCH_SINCE,
    KafkaVersion,
)


class Truncation(StrEnum):
    """What a follower of a new leader cuts its log to before it fetches."""

    TO_HIGH_WATERMARK = "to_high_watermark"
    BY_LEADER_EPOCH = "by_leader_epoch"
    BY_EPOCH_LINEAGE = "by_epoch_lineage"


def truncation_of(version: KafkaVersion) -> Truncation:
    """How a follower truncates in a cluster of ``version`` with an inter-broker protocol of the same version."""
    if version < TRUNCATION_BY_LEADER_EPOCH_SINCE:
        return Truncation.TO_HIGH_WATERMARK
    return Truncation.BY_LEADER_EPOCH if version < TRUNCATION_BY_EPOCH_LINEAGE_SINCE else Truncation.BY_EPOCH_LINEAGE
