"""When a quorum's controller ends a reassignment, with which replicas and ISR (``PartitionReassignmentReplicas``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from reconstruct.model.versions import (
    REASSIGNMENT_NEEDS_ADDED_REPLICAS_SINCE,
    REASSIGNMENT_NEEDS_ALL_REPLICAS_SINCE,
    KafkaVersion,
    VersionRange,
)


class Reassigned(NamedTuple):
    """What is left of a partition when its reassignment has ended."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]


def ended_reassignment(
    replicas: Sequence[int], adding: Sequence[int], removing: Sequence[int], isr: Sequence[int], version: KafkaVersion
) -> Reassigned | None:
    """What the controller makes of a partition with this ISR; None where it waits, or nothing is being reassigned.

    ``replicas`` are all, those added and removed included.
    """
    made = Reassigned(
        tuple(one for one in replicas if one not in removing), tuple(one for one in isr if one not in removing)
    )
    if not (adding or removing) or not made.isr or not made.replicas:
        return None
    awaited = {*adding}
    waits_for_all = version < REASSIGNMENT_NEEDS_ADDED_REPLICAS_SINCE or len(adding) < len(removing)
    if version >= REASSIGNMENT_NEEDS_ALL_REPLICAS_SINCE and waits_for_all:
        awaited |= {*made.replicas}
    return made if awaited <= {*made.isr} else None


def may_have_ended(
    replicas: Sequence[int], adding: Sequence[int], removing: Sequence[int], isr: Sequence[int], versions: VersionRange
) -> bool:
    """Whether any version of the range ends the reassignment with this ISR."""
    gates = (REASSIGNMENT_NEEDS_ALL_REPLICAS_SINCE, REASSIGNMENT_NEEDS_ADDED_REPLICAS_SINCE)
    within = {versions.low, versions.high, *(one for one in gates if versions.low <= one <= versions.high)}
    return any(ended_reassignment(replicas, adding, removing, isr, one) is not None for one in within)
