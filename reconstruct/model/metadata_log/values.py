"""What a KRaft controller holds of its cluster: subjects, and the state of each (org.apache.kafka.image 3.3 to 4.3).

A field that a record's version does not have is as Kafka's classes take it then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple


class Kind(StrEnum):
    """Of what a state is."""

    TOPIC = "topic"
    PARTITION = "partition"
    BROKER = "broker"
    CONTROLLER = "controller"
    FEATURE = "feature"
    CONFIG = "config"


class ConfigResource:
    """The numbers of what a configuration is of (``ConfigResource.Type``); a broker of no name stands for all."""

    TOPIC = 2
    BROKER = 4


class Subject(NamedTuple):
    """``name``: topic id, broker or controller id, feature, or what is configured as ``TYPE:NAME``."""

    kind: Kind
    name: str
    partition_id: int = -1


class MetadataRecord(NamedTuple):
    """A record of the log, or of a snapshot (``offset`` is then its place). ``fields`` by the names of Kafka's schemas.

    ``at`` is when it was appended, µs since the epoch, UTC.
    """

    offset: int
    epoch: int
    record_type: str
    fields: Mapping[str, Any]
    at: int = 0
    evidence_id: str = ""


@dataclass(frozen=True, slots=True)
class TopicState:
    name: str
    topic_id: str


@dataclass(frozen=True, slots=True)
class PartitionState:
    """``PartitionRegistration``. ``elr``, ``last_known_elr``: eligible leader replicas and the last known (KIP-966)."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    leader_recovery_state: int = 0
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    directories: tuple[str, ...] = ()

    @property
    def assignment(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """The replicas, and those that are being added and removed."""
        return self.replicas, self.adding_replicas, self.removing_replicas

    @property
    def is_reassigned(self) -> bool:
        """Whether a reassignment is under way."""
        return bool(self.adding_replicas or self.removing_replicas)


@dataclass(frozen=True, slots=True)
class BrokerState:
    """``BrokerRegistration``. ``metadata_version`` is the highest level that it supports; None where it does not say.

    ``controlled_shutdown``: it has asked to be shut down, and leads nothing any more.
    """

    broker_epoch: int
    incarnation_id: str
    is_fenced: bool
    is_in_controlled_shutdown: bool = False
    rack: str | None = None
    log_dirs: tuple[str, ...] = ()
    metadata_version: int | None = None
    is_migrating: bool = False


@dataclass(frozen=True, slots=True)
class ControllerState:
    incarnation_id: str
    metadata_version: int | None = None


@dataclass(frozen=True, slots=True)
class FeatureState:
    level: int


@dataclass(frozen=True, slots=True)
class ConfigState:
    """The settings of one resource, sorted by name."""

    settings: tuple[tuple[str, str], ...]

    def value(self, name: str) -> str | None:
        return next((value for key, value in self.settings if key == name), None)


State = TopicState | PartitionState | BrokerState | ControllerState | FeatureState | ConfigState
#: What was known after a record; and what a record makes another: None where it takes the subject away.
Image = Mapping[Subject, State]
Change = tuple[Subject, State | None]
