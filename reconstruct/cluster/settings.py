"""What held when of the settings that a running cluster may change: topics' and, since 1.1, brokers' (KIP-226).

A topic's own setting goes before its leader's; a broker's dynamic one before the cluster's dynamic default, and that
before what its configuration file has, which lasts as long as the process. Before the first write of a place that is
known, what it set is not known, unless that write made it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

#: The znode of the cluster's dynamic default, as a broker.
EVERY_BROKER: Final = -1


class Known(Enum):
    """That no value is known: another one than None, which is that none is set."""

    NOT = "not known"


@dataclass(frozen=True, slots=True)
class SettingChange:
    """What a znode below /config, or a ConfigRecord, sets from ``at`` on (µs), None for what it does not set.

    ``is_first``: the place was made then, and nothing set there before. ZooKeeper has a topic's before the topic
    itself: what is older than that is of another topic of the name, of whose settings nothing is known."""

    at: int
    min_insync_replicas: int | None = None
    unclean_election: bool | None = None
    is_first: bool = False


@dataclass(frozen=True, slots=True)
class SettingsOverTime:
    """The changes of each topic's and broker's settings, in order; :data:`EVERY_BROKER` is the cluster's default.

    ``is_whole``: a topic that is not named sets nothing, as where a metadata log was given. Each topic that ZooKeeper
    has is named there, with or without settings: of one that is not nothing is known.
    """

    topics: Mapping[str, Sequence[SettingChange]] = field(default_factory=dict)
    brokers: Mapping[int, Sequence[SettingChange]] = field(default_factory=dict)
    is_whole: bool = False

    def min_insync_replicas(self, topic: str, broker_id: int, at: int) -> int | Known | None:
        """What held at ``at`` for a partition of ``topic`` that the broker leads; None where nothing set it."""
        for change in self._in_force(topic, broker_id, at):
            if change is None or change.min_insync_replicas is not None:
                return Known.NOT if change is None else change.min_insync_replicas
        return None

    def unclean_election(self, topic: str, at: int) -> bool | Known | None:
        """What held at ``at``; None where nothing set it."""
        for change in self._in_force(topic, EVERY_BROKER, at):
            if change is None or change.unclean_election is not None:
                return Known.NOT if change is None else change.unclean_election
        return None

    def changes(self, topic: str, *, of_running: bool = False) -> list[int]:
        """The instants at which a setting of the topic, or of brokers, may have become another; ``of_running``: without
        the one at which the topic was made."""
        own = [change for change in self.topics.get(topic, ()) if not (of_running and change.is_first)]
        every = [*own, *(change for changes in self.brokers.values() for change in changes)]
        return sorted({change.at for change in every})

    def _in_force(self, topic: str, broker_id: int, at: int) -> list[SettingChange | None]:
        """What each place had at ``at`` that sets something, or of which nothing is known (None); the first counts."""
        of_topic = _as_of(self.topics.get(topic, ()), at, is_whole=self.is_whole)
        brokers = (self.brokers.get(broker_id, ()), self.brokers.get(EVERY_BROKER, ()))
        return [of_topic, *(_as_of(place, at, is_whole=True) for place in brokers)]


def _as_of(changes: Sequence[SettingChange], at: int, *, is_whole: bool) -> SettingChange | None:
    """The last one by then; one that sets nothing before the place was made, or where there is none and no other is
    missing (``is_whole``); None where nothing is known."""
    before = [change for change in changes if change.at <= at]
    if before:
        return before[-1]
    return SettingChange(at) if is_whole and (not changes or changes[0].is_first) else None
