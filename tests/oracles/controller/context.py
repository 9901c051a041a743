"""What a controller holds in memory besides what its two state machines ask: who it is, and the deletions under way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconstruct.model.controller import context
from reconstruct.model.controller.values import TopicPartition


@dataclass(frozen=True, slots=True)
class Settings(context.Settings):
    delete_topic_enable: bool = True


@dataclass(frozen=True, slots=True)
class ControllerContext(context.ControllerContext):
    settings: Settings = field(default_factory=Settings)
    #: Whether this broker believes that it is the controller.
    is_active: bool = True
    #: Up to 0.10.2 a machine that was not started refuses all work.
    machines_started: bool = True
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    #: Up to 0.10.2 only; such an election holds up a deletion.
    partitions_undergoing_preferred_election: frozenset[TopicPartition] = frozenset()
    topics_with_deletion_started: frozenset[str] = frozenset()
    topics_ineligible_for_deletion: frozenset[str] = frozenset()
