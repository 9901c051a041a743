"""What held when of the settings that a running cluster may change: topics' and, since 1.1, brokers' (KIP-226).

A topic's own setting goes before its leader's; a broker's dynamic one before the cluster's dynamic default, and that
before what its own configuration holds. Before the first write of a place
that is known, what it set is not known, unless that write made it.

A broker's own is its file's, one copy of no known time, and what each start printed: what it read (since 1.1 with what
/config/brokers set, and again whenever that changes), which holds until the broker prints something else. After a start
whose print is missing the file alone counts.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import pairwise
from operator import itemgetter
from typing import Final

from ingest.shapes.broker_settings import BrokerSetting
from reconstruct.model.value_class import value_class
from reconstruct.model.versions import (
    LONGER_LAG_TIME_SINCE,
    TRUNCATION_ON_FETCH_PROTOCOL,
    UNCLEAN_ELECTION_OFF_BY_DEFAULT_SINCE,
    KafkaVersion,
    VersionRange,
)
from reconstruct.time.instants import at_of

#: The znode of the cluster's dynamic default, as a broker.
EVERY_BROKER: Final = -1
#: A process prints its configuration within this of the line of its start: before it (up to 1.0), or after it, when
#: ZooKeeper answered; µs.
_BEFORE_START_US: Final = 5_000_000
_AFTER_START_US: Final = 60_000_000
#: Lines of one print (0.8) are no further apart, µs.
_ONE_PRINT_US: Final = 2_000_000
_LAG_TIME_DEFAULT_MS: Final = 10_000
_LAG_TIME_DEFAULT_SINCE_2_5_MS: Final = 30_000
#: Of replica.lag.max.messages (0.8).
LAG_MESSAGES_DEFAULT: Final = 4_000
#: The longest that any version has.
_SESSION_TIMEOUT_DEFAULT_MS: Final = 18_000
_CHECKPOINT_INTERVAL_DEFAULT_MS: Final = 5_000


class Known(Enum):
    """That no value is known: another one than None, which is that none is set."""

    NOT = "not known"


@value_class
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

    def of_broker(self, broker_id: int, at: int, name: str) -> int | bool | Known | None:
        """What /config/brokers set at ``at`` of the field ``name`` of :class:`SettingChange`; None where nothing."""
        for place in (self.brokers.get(broker_id, ()), self.brokers.get(EVERY_BROKER, ())):
            change = _as_of(place, at, is_whole=True)
            if change is None:
                return Known.NOT
            if getattr(change, name) is not None:
                found: int | bool = getattr(change, name)
                return found
        return None

    def changes(self, topic: str, *, of_running: bool = False) -> list[int]:
        """The instants at which a setting of the topic, or of brokers, may have become another; ``of_running``: without
        the one at which the topic was made."""
        own = [change for change in self.topics.get(topic, ()) if not (of_running and change.is_first)]
        every = [*own, *(change for changes in self.brokers.values() for change in changes)]
        return sorted({change.at for change in every})

    def before(self, instant: int) -> SettingsOverTime:
        """What changed before ``instant``. The first change of each place stays: it says whether it was made then."""
        return replace(
            self,
            topics={topic: _changes_before(changes, instant) for topic, changes in self.topics.items()},
            brokers={broker_id: _changes_before(changes, instant) for broker_id, changes in self.brokers.items()},
        )

    def _in_force(self, topic: str, broker_id: int, at: int) -> list[SettingChange | None]:
        """What each place had at ``at`` that sets something, or of which nothing is known (None); the first counts."""
        of_topic = _as_of(self.topics.get(topic, ()), at, is_whole=self.is_whole)
        brokers = (self.brokers.get(broker_id, ()), self.brokers.get(EVERY_BROKER, ()))
        return [of_topic, *(_as_of(place, at, is_whole=True) for place in brokers)]


def _as_of(changes: Sequence[SettingChange], at: int, *, is_whole: bool) -> SettingChange | None:
    """The last one by then; one that sets nothing before the place was made, or where there is none and no other is
    missing (``is_whole``); None where nothing is known."""
    known = bisect_right(changes, at, key=at_of)
    if known:
        return changes[known - 1]
    return SettingChange(at) if is_whole and (not changes or changes[0].is_first) else None


def _changes_before(changes: Sequence[SettingChange], instant: int) -> Sequence[SettingChange]:
    return tuple(change for place, change in enumerate(changes) if not place or change.at < instant)


#: When settings were printed, µs, and which; None: from then on nothing printed before counts.
Printed = tuple[int, Mapping[str, str] | None]


@dataclass(frozen=True, slots=True)
class Configuration:
    """One broker's. ``file``: of each setting of its file the values of all copies, None where no copy was given.
    ``printed``: in order, what its prints say from when on."""

    file: Mapping[str, Sequence[str]] | None = None
    printed: Sequence[Printed] = ()

    def value(self, setting: BrokerSetting, at: int) -> str | Known | None:
        """What held at ``at``; None where nothing set it and the default held."""
        said = self._print_by(at)[1]
        if said is not None and setting in said:
            return said[setting]
        copies = () if self.file is None else self.file.get(setting, ())
        # a print without it: its line is lost, or (0.8) the file did not set it yet
        if self.file is None or len(copies) > 1 or (copies and said is not None):
            return Known.NOT
        return next(iter(copies), None)

    def number(self, setting: BrokerSetting, at: int, default: int) -> int | None:
        """The value as a number; None where it is not known."""
        value = self.value(setting, at)
        if value is None:
            return default
        return int(value) if not isinstance(value, Known) and value.isdecimal() else None

    def longest(self, setting: BrokerSetting, default: int) -> int | None:
        """The largest number that any print or copy has, or the default where a copy sets none; None where nothing is
        known."""
        said = {values[setting] for _, values in self.printed if values is not None and setting in values}
        found = [int(value) for value in {*said, *(self.file or {}).get(setting, ())} if value.isdecimal()]
        return max(found, default=None if self.file is None else default)

    def changes(self, setting: BrokerSetting) -> list[int]:
        """The instants at which the setting became another, or unknown."""
        starts = [0, *(at for at, _ in self.printed)]
        return [at for before, at in pairwise(starts) if self.value(setting, before) != self.value(setting, at)]

    def printed_at(self, setting: BrokerSetting, at: int) -> int | None:
        """When the print was that says what held at ``at``; None where none does."""
        start, said = self._print_by(at)
        return start if said is not None and setting in said else None

    def before(self, instant: int) -> Configuration:
        """What its file has, and what was printed before ``instant``."""
        return replace(self, printed=tuple(one for one in self.printed if one[0] < instant))

    def _print_by(self, at: int) -> Printed:
        known = bisect_right(self.printed, at, key=itemgetter(0))
        return self.printed[known - 1] if known else (0, None)


@dataclass(frozen=True, slots=True)
class OwnSettings:
    """What was read of the configurations of one cluster's brokers: ``files`` by broker as in :class:`Configuration`,
    ``printed`` by broker each line that prints settings, with its instant."""

    files: dict[int, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    printed: dict[int, list[Printed]] = field(default_factory=dict)

    @property
    def brokers(self) -> list[int]:
        """Those of which anything was read."""
        return sorted({*self.files, *self.printed})

    def of_broker(self, broker_id: int, starts: Iterable[int]) -> Configuration | None:
        """The broker's, whose processes started at ``starts``; None where nothing was read of it."""
        if broker_id not in self.files and broker_id not in self.printed:
            return None
        return Configuration(self.files.get(broker_id), _prints(self.printed.get(broker_id, ()), starts))


def _prints(lines: Sequence[Printed], starts: Iterable[int]) -> tuple[Printed, ...]:
    """Each print once: its lines together, without those that say what the one before said; and starts without any."""
    prints: list[tuple[int, int, dict[str, str]]] = []
    for at, values in sorted(lines, key=lambda line: line[0]):
        if prints and at - prints[-1][1] <= _ONE_PRINT_US:
            prints[-1] = prints[-1][0], at, {**prints[-1][2], **(values or {})}
        else:
            prints.append((at, at, dict(values or {})))
    told: list[Printed] = [(at, values) for at, _, values in prints]
    printed = [at for at, _ in told]
    silent = [
        (start, None)
        for start in starts
        if bisect_left(printed, start - _BEFORE_START_US) == bisect_right(printed, start + _AFTER_START_US)
    ]
    result: list[Printed] = []
    for at, said in sorted([*told, *silent] if told else [], key=lambda one: one[0]):
        if not result or result[-1][1] != said:
            result.append((at, said))
    return tuple(result)


def lag_time_us(configuration: Configuration, at: int, version: VersionRange) -> int | None:
    """``replica.lag.time.max.ms``, or what the version has by default, of several the shortest."""
    is_longer = version.is_since(LONGER_LAG_TIME_SINCE)
    default = _LAG_TIME_DEFAULT_SINCE_2_5_MS if is_longer else _LAG_TIME_DEFAULT_MS
    found = configuration.number(BrokerSetting.LAG_TIME, at, default)
    return None if found is None else 1000 * found


def truncates_on_fetch(configuration: Configuration, at: int) -> bool | None:
    """Whether the inter-broker protocol is 2.7 or later, of a broker since 2.8: it is the version's where not set."""
    value = configuration.value(BrokerSetting.PROTOCOL, at)
    if isinstance(value, Known):
        return None
    protocol = None if value is None else KafkaVersion.parse(value)
    return value is None or (protocol is not None and protocol >= TRUNCATION_ON_FETCH_PROTOCOL)


def unclean_election(configuration: Configuration, at: int, version: VersionRange) -> bool | Known:
    """``unclean.leader.election.enable``, the version's default included."""
    value = configuration.value(BrokerSetting.UNCLEAN, at)
    if value is not None:
        return value if isinstance(value, Known) else value.lower() == "true"
    if version.is_before(UNCLEAN_ELECTION_OFF_BY_DEFAULT_SINCE):
        return True
    return False if version.is_since(UNCLEAN_ELECTION_OFF_BY_DEFAULT_SINCE) else Known.NOT


def checkpoint_interval_us(configuration: Configuration) -> int | None:
    """The longest ``replica.high.watermark.checkpoint.interval.ms`` that is known."""
    longest = configuration.longest(BrokerSetting.CHECKPOINT_INTERVAL, _CHECKPOINT_INTERVAL_DEFAULT_MS)
    return None if longest is None else 1000 * longest


def session_timeout_us(configuration: Configuration) -> int | None:
    """The longest ``zookeeper.session.timeout.ms`` that is known."""
    longest = configuration.longest(BrokerSetting.SESSION_TIMEOUT, _SESSION_TIMEOUT_DEFAULT_MS)
    return None if longest is None else 1000 * longest
