"""What a file is, seen from its first bytes; its path decides only where content cannot."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ingest.files.not_of_kafka import not_of_kafka
from ingest.lake.tables.bronze import NOT_OF_KAFKA, SourceKind
from ingest.readers import paths
from ingest.readers.capture_lines import capture_gaps, cluster_descriptions, offset_probes
from ingest.readers.log_dirs.listings import recognise_listing
from ingest.readers.log_dirs.names import recognise_metadata_log, recognise_segment
from ingest.readers.logs.layouts import Reading, clean, detect, explain, sample
from ingest.readers.logs.writers import MAX_BROKER_ID, STATE_CHANGE_START, kind_of_logger, own_broker_id
from ingest.readers.metadata_log import quorum_state

#: Files of a Kafka or ZooKeeper installation that say nothing of what a cluster did.
_OTHER_CONFIGURATION: Final = re.compile(
    r"(?:zookeeper[\w.\-]*|producer|consumer|connect-[\w\-]+|(?:[\w\-]+-)?log4j2?)\.properties|zoo\.cfg|myid"
    r"|(?:accepted|current)Epoch"
)
#: As much of a file is looked at to recognise it.
HEAD_BYTES: Final = 512 << 10
_SAMPLE_LINES: Final = 400

_META_KEYS: Final = frozenset({"version", "broker.id", "node.id", "cluster.id", "directory.id"})
_SERVER_KEYS: Final = frozenset(
    {
        "broker.id",
        "node.id",
        "zookeeper.connect",
        "log.dirs",
        "log.dir",
        "listeners",
        "process.roles",
        "advertised.listeners",
    }
)
_PROPERTY: Final = re.compile(rb"^\s*([A-Za-z][\w.\-]*)\s*[=:]")
_COUNT: Final = re.compile(rb"^\d{1,9}\s*$")
_OFFSET_ENTRY: Final = re.compile(rb"^\S+ \d+ -?\d+$")
_EPOCH_ENTRY: Final = re.compile(rb"^-?\d+ -?\d+$")

_KAFKA_START: Final = re.compile(
    rb"\[(?:Controller|KafkaServer|Kafka Server|Partition|ReplicaManager|Replica Manager|ReplicaFetcher"
    rb"|PartitionStateMachine|ReplicaStateMachine|KafkaRaftServer|BrokerServer|Log|UnifiedLog|GroupCoordinator)\b"
    rb"|Partition \[|Kafka version"
)
_KAFKA_LOGGER: Final = re.compile(
    rb"kafka\.|state\.change\.logger$|org\.apache\.kafka\.(?!clients\.|connect\.|streams\.)"
)
#: A client within a broker or a controller: its lines begin with the LogContext of its user, ControllerChannelManager
#: since 1.0, NodeToControllerChannelManager since 2.7 (under three names), ReplicaFetcherBlockingSend, KafkaRaftManager
#: or the coordinator of transactions. A quiet hour may have no other lines.
_BROKERS_CLIENT: Final = re.compile(
    rb"\[(?:Controller id=\d+, targetBrokerId=|broker-\d+-to-controller\]"
    rb"|(?:Broker|Node)ToControllerChannelManager (?:broker|id)=\d|ReplicaFetcher replicaId=\d"
    rb"|RaftManager (?:nodeId|id)=\d|AddPartitionsToTxnManager broker=\d|TransactionCoordinator id=\d)"
)
_ZOOKEEPER_LOGGER: Final = re.compile(rb"org\.apache\.zookeeper\.")
#: In JSON or XML: a log that is not read as it is.
_LOG_IN_MARKUP: Final = re.compile(rb'"(?:level|message|@timestamp|logger|loggerName)"\s*:|<log4j:event|<Event ')
_CONFIGURED_ID: Final = re.compile(rb"^[ \t]*(?:broker|node)\.id[ \t]*[=:][ \t]*(\d++)\s*?$", re.MULTILINE)


@dataclass(frozen=True)
class Recognised:
    """What a file is. ``status`` is that of ``bronze.ingested_files``; ``reason`` says why it is not read."""

    kind: str
    status: str = "ingested"
    reason: str | None = None
    reading: Reading | None = None
    first_line: bytes | None = None
    broker_id: int | None = None


def recognise(head: bytes, names: Sequence[str], *, is_whole: bool) -> Recognised:
    """Recognise a file from its first :data:`HEAD_BYTES` bytes and the names along its path.

    ``is_whole`` says that ``head`` is the whole file.
    """
    of_quorum = recognise_metadata_log(head, names)
    if of_quorum is not None:
        return Recognised(of_quorum)
    segment = recognise_segment(head, names)
    if segment is not None:
        return _partition_file(segment, names)
    if not head:
        return _empty(names)
    if head.startswith(b"ZKLG"):
        return Recognised(SourceKind.ZNODE_TRANSACTION_LOG)
    if head.startswith(b"ZKSN"):
        return Recognised(SourceKind.ZNODE_SNAPSHOT_BINARY)
    # A log that was truncated in place begins with a hole.
    every = head.lstrip(b"\0").split(b"\n")
    if not is_whole or every[-1] == b"":
        every.pop()
    lines = every[:_SAMPLE_LINES] or [head]
    return (
        _json_lines(lines)
        or _checkpoint(lines, names)
        or _properties(lines, head)
        or _listing(lines)
        or _log(sample(every, _SAMPLE_LINES) or lines, head)
        or _other(head, names)
    )


def _not_read(kind: str, reason: str) -> Recognised:
    return Recognised(kind, "not_read_yet", reason)


def _rejected(kind: str, reason: str) -> Recognised:
    return Recognised(kind, "rejected", reason)


def _empty(names: Sequence[str]) -> Recognised:
    kind = paths.checkpoint_kind(names) or (
        SourceKind.ZNODE_SNAPSHOT if paths.is_znode_snapshot(names) else SourceKind.UNRECOGNISED
    )
    return Recognised(kind, "empty")


def _partition_file(kind: str, names: Sequence[str]) -> Recognised:
    if paths.parent_partition_directory(names) is None:
        return _rejected(kind, "nothing in its path says which partition's it is: keep it below TOPIC-PARTITION/")
    return Recognised(kind)


def _listing(lines: Sequence[bytes]) -> Recognised | None:
    return Recognised(SourceKind.DIRECTORY_LISTING) if recognise_listing(lines) is not None else None


def _json_lines(lines: Sequence[bytes]) -> Recognised | None:
    """What the first line is, or the second: the first may be what is left of one."""
    return next((found for line in lines[:2] if (found := _json_line(line)) is not None), None)


def _json_line(line: bytes) -> Recognised | None:
    if not line.startswith(b"{"):
        return None
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        entry = {key.decode() for key in re.findall(rb'"(\w+)":', line[:4096])}
    keys = set(entry)
    if {"captured_at", "path", "mzxid"} <= keys:
        return Recognised(SourceKind.ZNODE_SNAPSHOT)
    if keys >= offset_probes.KEYS:
        return Recognised(SourceKind.OFFSET_PROBE, first_line=line)
    if cluster_descriptions.is_description(keys):
        return Recognised(SourceKind.CLUSTER_DESCRIPTION, first_line=line)
    if keys >= capture_gaps.KEYS:
        return Recognised(SourceKind.CAPTURE_GAP, first_line=line)
    if keys >= quorum_state.KEYS:
        return Recognised(SourceKind.QUORUM_STATE)
    if {"ts", "what"} <= keys:
        return _not_read(SourceKind.SCENARIO_EVENTS, "what a test scenario did: never an input")
    return None


def _checkpoint(lines: Sequence[bytes], names: Sequence[str]) -> Recognised | None:
    named = paths.checkpoint_kind(names)
    headed = len(lines) >= 2 and _COUNT.match(lines[0]) is not None and _COUNT.match(lines[1]) is not None
    entries = [line.strip() for line in lines[2:] if line.strip()]
    offsets = sum(1 for line in entries if _OFFSET_ENTRY.match(line))
    epochs = sum(1 for line in entries if _EPOCH_ENTRY.match(line))
    if names and names[-1].endswith(".tmp") and (headed or named or paths.checkpoint_kind([names[-1][:-4]])):
        kind = named or paths.checkpoint_kind([names[-1][:-4]]) or SourceKind.UNRECOGNISED
        return _rejected(
            kind, "a checkpoint's unfinished write (.tmp), which Kafka never reads: the file beside it counts"
        )
    if named is not None:
        if named == SourceKind.LEADER_EPOCH_CHECKPOINT and paths.partition_directory(names) is None:
            return _rejected(named, "nothing in its path says which partition's it is: keep it below TOPIC-PARTITION/")
        return Recognised(named)
    if not headed or (entries and 2 * max(offsets, epochs) < len(entries)):
        return None
    if epochs > offsets:
        return _rejected(
            SourceKind.UNRECOGNISED,
            "a leader epoch checkpoint whose path names no partition: keep it as"
            " TOPIC-PARTITION/leader-epoch-checkpoint",
        )
    return _rejected(
        SourceKind.UNRECOGNISED,
        "a checkpoint, but nothing in its path says which: keep its name, as in replication-offset-checkpoint",
    )


def _properties(lines: Sequence[bytes], head: bytes) -> Recognised | None:
    keys = set()
    continued = False
    for line in lines:
        stripped = line.strip()
        if not continued and stripped and not stripped.startswith((b"#", b"!")):
            found = _PROPERTY.match(line)
            if found is None:
                return None
            keys.add(found.group(1).decode())
        continued = stripped.endswith(b"\\")
    broker_id = _configured_id(head)
    if keys and keys <= _META_KEYS and keys & {"broker.id", "node.id", "cluster.id"}:
        return Recognised(SourceKind.META_PROPERTIES, broker_id=broker_id)
    if keys & _SERVER_KEYS:
        return Recognised(SourceKind.SERVER_PROPERTIES, broker_id=broker_id)
    return None


def _configured_id(head: bytes) -> int | None:
    found = _CONFIGURED_ID.search(head)
    if found is None or len(found.group(1)) > len(str(MAX_BROKER_ID)):
        return None
    broker_id = int(found.group(1))
    return broker_id if broker_id <= MAX_BROKER_ID else None


def _log(lines: Sequence[bytes], head: bytes) -> Recognised | None:
    reading = detect(lines)
    if reading is None:
        return None
    first_line: bytes | None = None
    brokers: set[int] = set()
    kinds: set[str] = set()
    is_kafka = False
    is_zookeeper = True
    for line in map(clean, lines):
        text = reading.content(line)
        header = reading.layout.header.match(text)
        if header is None:
            continue
        if first_line is None:
            first_line = line
        message = text[header.end() :]
        own = own_broker_id(message)
        if own is not None and (not brokers or reading.names_streams):
            brokers.add(own)
        logger = reading.layout.logger_of(header, text)
        is_zookeeper = is_zookeeper and logger is not None and _ZOOKEEPER_LOGGER.match(logger) is not None
        is_kafka = is_kafka or _BROKERS_CLIENT.match(message) is not None
        if logger is None:
            is_state_change = STATE_CHANGE_START.match(message) is not None
            is_kafka = is_kafka or is_state_change or _KAFKA_START.match(message) is not None
            if is_state_change or reading.layout.tail is None:
                kinds.add(SourceKind.STATE_CHANGE_LOG if is_state_change else SourceKind.SERVER_LOG)
        else:
            is_kafka = is_kafka or _KAFKA_LOGGER.match(logger) is not None
            kinds.add(kind_of_logger(logger.decode("utf-8", "replace")))
    if is_zookeeper and first_line is not None:
        return _not_read(
            SourceKind.UNRECOGNISED, "a log of ZooKeeper, or of a broker's connection to it alone: not read yet"
        )
    if not is_kafka or first_line is None:
        return _rejected(SourceKind.UNRECOGNISED, "a log, but none of its first records is one of a Kafka broker's")
    if not brokers:
        brokers |= {broker_id} if (broker_id := _configured_id(head)) is not None else set()
    return Recognised(
        kinds.pop() if len(kinds) == 1 else SourceKind.SERVER_LOG,
        reading=reading,
        first_line=first_line,
        broker_id=brokers.pop() if len(brokers) == 1 else None,
    )


def _other(head: bytes, names: Sequence[str]) -> Recognised:
    if names and paths.is_partition_file(names[-1]):
        return _not_read(SourceKind.UNRECOGNISED, "a file of a log directory of Kafka's: not read yet")
    if names and _OTHER_CONFIGURATION.fullmatch(names[-1]):
        return _not_read(SourceKind.UNRECOGNISED, "configuration of ZooKeeper, of a client or of logging: not read yet")
    why = explain(head)
    other = not_of_kafka(names)
    if other is not None and not _LOG_IN_MARKUP.search(head):
        return Recognised(SourceKind.UNRECOGNISED, NOT_OF_KAFKA, f"Kafka writes no such file: {other}")
    if why is not None:
        return _rejected(SourceKind.UNRECOGNISED, why)
    if b"\0" in head[:4096]:
        return _rejected(SourceKind.UNRECOGNISED, "binary data of a kind that is not known")
    return _rejected(
        SourceKind.UNRECOGNISED,
        "neither a log of a known layout, a znode snapshot, a checkpoint nor a broker's properties",
    )
