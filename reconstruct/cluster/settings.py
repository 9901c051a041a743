"""What held when of the settings that a running cluster may change: topics' and, since 1.1, brokers' (KIP-226).

A topic's own setting goes before its leader's; a broker's dynamic one before the cluster's dynamic default, and that
before what its configuration file has, which lasts as long as the process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

#: The znode of the cluster's dynamic default, as a broker.
EVERY_BROKER: Final = -1


@dataclass(frozen=True, slots=True)
class SettingChange:
    """What a znode below /config has from ``at`` on (µs), None for what it does not set.

    ``is_first``: the znode was made then."""

    at: int
    min_insync_replicas: int | None = None
    unclean_election: bool | None = None
    is_first: bool = False


@dataclass(frozen=True, slots=True)
class SettingsOverTime:
    """The changes of each topic's and broker's znode, in order; :data:`EVERY_BROKER` is the cluster's default."""

    topics: Mapping[str, Sequence[SettingChange]] = field(default_factory=dict)
    brokers: Mapping[int, Sequence[SettingChange]] = field(default_factory=dict)

    def min_insync_replicas(self, topic: str, broker_id: int, at: int) -> int | None:
        """As znodes have it at ``at``, for a partition of ``topic`` that the broker leads; None where none sets it."""
        found = (change.min_insync_replicas for change in self._in_force(topic, broker_id, at))
        return next((value for value in found if value is not None), None)

    def unclean_election(self, topic: str, at: int) -> bool | None:
        """As znodes have it at ``at``; None where none sets it."""
        found = (change.unclean_election for change in self._in_force(topic, EVERY_BROKER, at))
        return next((value for value in found if value is not None), None)

    def changes(self, topic: str) -> list[int]:
        """The instants at which a setting of the topic, or of brokers, may have become another."""
        every = [*self.topics.get(topic, ()), *(change for changes in self.brokers.values() for change in changes)]
        return sorted({change.at for change in every})

    def _in_force(self, topic: str, broker_id: int, at: int) -> list[SettingChange]:
        places = (self.topics.get(topic, ()), self.brokers.get(broker_id, ()), self.brokers.get(EVERY_BROKER, ()))
        return [change for place in places for change in [_as_of(place, at)] if change is not None]


def _as_of(changes: Sequence[SettingChange], at: int) -> SettingChange | None:
    """The last one by then; before the first that is known, that one, unless the znode was made with it."""
    before = [change for change in changes if change.at <= at]
    if before:
        return before[-1]
    return changes[0] if changes and not changes[0].is_first else None
