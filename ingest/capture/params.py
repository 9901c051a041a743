"""The parameters of a capture, its summary at the end, and its error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


class CaptureError(Exception):
    """A capture cannot begin or go on; the message is one sentence that says what to do."""


@dataclass(frozen=True)
class BrokerFiles:
    """The files of one broker on this machine, for the agent.

    ``logs`` are folders of its log4j logs, ``log_dirs`` those of Kafka's ``log.dirs`` (checkpoints and partitions),
    ``configs`` its ``server.properties``.
    """

    broker_id: int
    logs: tuple[str, ...] = ()
    log_dirs: tuple[str, ...] = ()
    configs: tuple[str, ...] = ()


@dataclass(frozen=True)
class CaptureParams:
    """What to record, of which cluster, into which folder, how often and for how long.

    ``zookeeper`` is ``HOST:PORT[,HOST:PORT...][/chroot]``, ``bootstrap_servers`` as in Kafka; each may be None: that
    source is not captured then. ``rounds`` and ``duration_s`` end the capture, None for neither. The bounds of load
    are per broker (``max_requests_per_second``, ``partitions_per_request``) and for ZooKeeper
    (``znode_reads_per_second``).
    """

    out: str
    zookeeper: str | None = None
    bootstrap_servers: str | None = None
    brokers: tuple[BrokerFiles, ...] = ()
    interval_s: float = 1.0
    rounds: int | None = None
    duration_s: float | None = None
    #: Settings of the clients by their Kafka names: see :mod:`ingest.capture.settings`. May hold passwords.
    client_properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    #: Kafka's version, as (3, 9), for brokers that cannot be asked; None asks each.
    api_version: tuple[int, ...] | None = None
    max_requests_per_second: float = 20.0
    partitions_per_request: int = 2000
    znode_reads_per_second: int = 5000
    #: Every so many rounds a broker is asked for metadata and its log directories; reassignments every round.
    metadata_every: int = 5
    log_dirs_every: int = 10
    request_timeout_s: float = 5.0
    #: A first contact that takes longer is an error, unless ``waits``.
    connect_timeout_s: float = 15.0
    #: Begin although ZooKeeper or the brokers are not there yet: what is missed until then is recorded.
    waits: bool = False

    @property
    def has_source(self) -> bool:
        return bool(self.zookeeper or self.bootstrap_servers or self.brokers)


@dataclass(frozen=True)
class CaptureSummary:
    """What a capture recorded: counts, and in ``missed`` one sentence for each thing that it could not.

    ``errors`` counts answers of brokers that were errors, by Kafka's name of it: these are not recorded.
    """

    rounds: int = 0
    snapshots: int = 0
    answers: int = 0
    descriptions: int = 0
    copies: int = 0
    log_bytes: int = 0
    errors: Mapping[str, int] = field(default_factory=dict)
    missed: tuple[str, ...] = ()
