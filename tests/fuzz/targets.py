"""What is fuzzed: one function of bytes for each reader. It raises ``AssertionError`` where a promise is broken; any
other exception is a bug too."""

from __future__ import annotations

import hashlib
import os
import pickle
import struct
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Final

import google_crc32c

from ingest.containers import contents, damage_of
from ingest.containers.storage import ListedFile
from ingest.files.content_facts import DescriptionFacts
from ingest.files.inspection import inspect
from ingest.files.znode_facts import SnapshotFacts, TransactionLogFacts
from ingest.lake.tables.bronze import (
    BROKER_CONFIGS,
    CAPTURE_GAPS,
    CLUSTER_DESCRIPTIONS,
    COMPRESSIONS,
    LEADER_EPOCH_CHECKPOINTS,
    LOG_SEGMENTS,
    METADATA_RECORDS,
    METADATA_SNAPSHOTS,
    OFFSET_CHECKPOINTS,
    OFFSET_PROBES,
    QUORUM_STATES,
    SOURCE_KINDS,
    ZNODE_SNAPSHOTS,
    ZNODE_TRANSACTIONS,
)
from ingest.readers import properties
from ingest.readers.capture_lines import capture_gaps, cluster_descriptions, offset_probes, znode_snapshots
from ingest.readers.identity import record_ids
from ingest.readers.log_dirs import checkpoints, listings, partition_files
from ingest.readers.logs import records
from ingest.readers.logs.framing import frame
from ingest.readers.logs.layouts import LAYOUTS, detect, reading
from ingest.readers.logs.wrappers import WRAPPERS
from ingest.readers.metadata_log import quorum_state
from ingest.readers.metadata_log import records as quorum_records
from ingest.readers.work import Rejected
from ingest.readers.zookeeper import snapshots, transaction_log
from ingest.shapes import SOURCE_KINDS as SHAPE_KINDS
from ingest.shapes import match, match_cause
from tests.fuzz.invariants import blocks, check_apart, check_reader, check_tables, check_tiled, item
from tests.oracles.znode_replay import close_sessions, new_tree

Target = Callable[[bytes], None]

#: Names by which some files are told from others; the first byte of an input chooses one.
NAMES: Final = (
    "broker-1/logs/server.log",
    "state-change.log.2026-11-21-03",
    "broker-1/replication-offset-checkpoint",
    "broker-1/orders-0/leader-epoch-checkpoint",
    "broker-1/orders-0/00000000000000000000.log",
    "broker-1/orders-0/00000000000000000007.index",
    "broker-1/orders-0/00000000000000000007.timeindex",
    "broker-1/orders-0/00000000000000000007.txnindex",
    "broker-1/orders-0/00000000000000000007.snapshot",
    "broker-1/orders-0/partition.metadata",
    "znodes/1700000000000.jsonl",
    "version-2/log.1",
    "version-2/snapshot.5",
    "broker-1/meta.properties",
    "listing.txt",
    "probes-1.jsonl",
    "descriptions.jsonl",
    "missed.jsonl",
)
PARTITION_FILES: Final = tuple(name for name in NAMES if "/orders-0/" in name and "checkpoint" not in name)
#: More than this is not read of what an input unpacks to.
MAX_UNPACKED_BYTES: Final = 4 << 20
#: The checksum of a batch is of what follows it.
_CRC_FROM: Final = 21
#: In memory where there is such a folder: to make a file costs more than to read what is in it.
_SHARED_MEMORY: Final = "/dev/shm"
_FOLDER: Final = tempfile.TemporaryDirectory(
    prefix="fuzz-", dir=_SHARED_MEMORY if os.access(_SHARED_MEMORY, os.W_OK) else None
)
_TIME_ZONES: Final = ("UTC", "America/New_York", "Australia/Lord_Howe")


def framing(data: bytes) -> None:
    """Log lines to records, by the layout that is detected or by any other."""
    choice, data = data[:1], data[1:]
    how = detect(data.split(b"\n")[:50])
    if how is None or (choice and choice[0] % 2):
        layout = LAYOUTS[choice[0] // 2 % len(LAYOUTS) if choice else 0].name
        wrapper = (*WRAPPERS, None)[(choice[0] if choice else 0) % (len(WRAPPERS) + 1)]
        how = reading(f"{wrapper.name}+{layout}" if wrapper else layout)
    found = list(frame([data], how))
    again = list(frame(blocks(data, 1 + len(data) // 7), how))
    facts = [(record[:5], record.reason) for record in found]
    assert facts == [(record[:5], record.reason) for record in again], "records depend on how the bytes are cut"
    assert len(found) <= len(data) + 1
    assert sum(record.length for record in found) == len(data), "bytes that belong to no record"
    if how.is_plain:
        end, line = 0, 1
        for record in found:
            assert (record.offset, record.line) == (end, line), f"a gap at byte {end}"
            assert data[end : end + record.length].startswith(record.data)
            end += record.length
            line += data.count(b"\n", record.offset, end)
    assert all((record.header is None) == (record.reason is not None) for record in found)


def log_records(data: bytes) -> None:
    """Log lines to rows: records read are those kept and those rejected."""
    choice, data = data[:1], data[1:]
    how = detect(data.split(b"\n")[:50]) or reading("bracketed")
    zone = _TIME_ZONES[choice[0] % len(_TIME_ZONES)] if choice else "UTC"
    work = item("server_log", data, layout=how.name, time_zone=zone, source_file="broker-1/logs/server.log")
    found = list(records.read(work, blocks(data, 1 + len(data) // 3), match))
    rejected = [one for one in found if isinstance(one, Rejected)]
    kept = [batch for batch in found if not isinstance(batch, Rejected)]
    framed = sum(1 for _ in frame([data], how))
    assert framed == sum(batch.num_rows for batch in kept) + len(rejected), "read is not kept + rejected"
    assert framed <= len(data) + 1
    lengths = sum(sum(batch.column("byte_length").to_pylist()) for batch in kept)
    assert lengths + sum(row.place.length for row in rejected) == len(data)
    ids = [value for batch in kept for value in batch.column("record_id").to_pylist()]
    known = record_ids(work.record_base)
    ids += [known(row.place.offset, row.place.data) for row in rejected]
    assert len(set(ids)) == len(ids), "two records of one id"
    if how.is_plain:
        check_apart([row.place for row in rejected], len(data))
    check_tables(ZNODE_SNAPSHOTS, work, rejected)


def messages(data: bytes) -> None:
    """A message text to an event, for every kind of log."""
    text = data.decode("utf-8", "replace")
    for kind in SHAPE_KINDS:
        for logger in (None, "state.change.logger", "kafka.controller.KafkaController", "kafka.cluster.Partition"):
            found = match(kind, logger, text)
            if found is not None:
                assert found.event_type
                assert all(isinstance(key, str) and isinstance(value, str) for key, value in found.fields.items())
    match_cause(text)


def offset_checkpoint(data: bytes) -> None:
    work = item("replication_offset_checkpoint", data)
    check_reader(checkpoints.read, OFFSET_CHECKPOINTS, work, data)


def epoch_checkpoint(data: bytes) -> None:
    work = item("leader_epoch_checkpoint", data, directory="orders-0")
    check_reader(checkpoints.read, LEADER_EPOCH_CHECKPOINTS, work, data)


def broker_properties(data: bytes) -> None:
    kind = ("server_properties", "meta_properties")[len(data) % 2]
    check_reader(properties.read, BROKER_CONFIGS, item(kind, data), data)


def znode_snapshot(data: bytes) -> None:
    work = item("znode_snapshot", data, chroot="/kafka" if data[:1] == b"k" else "")
    check_reader(znode_snapshots.read, ZNODE_SNAPSHOTS, work, data)


def probes(data: bytes) -> None:
    work = item("offset_probe", data, broker_id=None if data[:1] == b"k" else 1)
    found = check_reader(offset_probes.read, OFFSET_PROBES, work, data)
    check_tiled([row.place for row in found], len(data))


def descriptions(data: bytes) -> None:
    work = item("cluster_description", data, broker_id=None if data[:1] == b"k" else 1)
    found = check_reader(cluster_descriptions.read, CLUSTER_DESCRIPTIONS, work, data)
    check_tiled([row.place for row in found], len(data))
    facts = [DescriptionFacts(), DescriptionFacts()]
    facts[0].take(data)
    for block in blocks(data, 1 + len(data) // 7):
        facts[1].take(block)
    assert facts[0].result() == facts[1].result(), "the facts depend on how the bytes are cut"


def capture_gaps_file(data: bytes) -> None:
    work = item("capture_gap", data, broker_id=None)
    found = check_reader(capture_gaps.read, CAPTURE_GAPS, work, data)
    check_tiled([row.place for row in found], len(data))


def transaction_log_file(data: bytes) -> None:
    work = item("znode_transaction_log", data, source_file="version-2/log.1")
    places = [row.place for row in check_reader(transaction_log.read, ZNODE_TRANSACTIONS, work, data)]
    end = sum(place.length for place in places)
    check_tiled(places, end)
    # The file's header belongs to the first record, where there is one.
    assert not any(data[end if places else 16 :]), "bytes that are no zeros belong to no record"
    facts = [TransactionLogFacts(is_final=False), TransactionLogFacts(is_final=False)]
    facts[0].take(data)
    for block in blocks(data, 1 + len(data) // 7):
        facts[1].take(block)
    assert facts[0].result() == facts[1].result(), "the facts depend on how the bytes are cut"
    tree = new_tree()
    tree.replay(close_sessions(transaction_log.operations([data])), after_zxid=-1)


def snapshot_file(data: bytes) -> None:
    work = item("znode_snapshot_binary", data, source_file="version-2/snapshot.5", captured_at_ms=0)
    found = check_reader(snapshots.read, ZNODE_SNAPSHOTS, work, data)
    check_tiled([row.place for row in found], len(data))
    facts = [SnapshotFacts("snapshot.5"), SnapshotFacts("snapshot.5")]
    facts[0].take(data)
    for block in blocks(data, 1 + len(data) // 7):
        facts[1].take(block)
    assert facts[0].result() == facts[1].result(), "the facts depend on how the bytes are cut"


def metadata_log(data: bytes) -> None:
    """A segment of the metadata log; where the first byte is odd its batches are given the checksums that they should
    have, so that what is in them is decoded."""
    data = _with_checksums(data[1:]) if data[:1] and data[0] % 2 else data[1:]
    work = item("metadata_log", data, source_file="__cluster_metadata-0/00000000000000000000.log")
    check_reader(quorum_records.read, METADATA_RECORDS, work, data)


def metadata_snapshot(data: bytes) -> None:
    """As :func:`metadata_log`."""
    data = _with_checksums(data[1:]) if data[:1] and data[0] % 2 else data[1:]
    work = item("metadata_snapshot", data, source_file="00000000000000000042-0000000001.checkpoint")
    check_reader(quorum_records.read_snapshot, METADATA_SNAPSHOTS, work, data)


def vote(data: bytes) -> None:
    check_reader(quorum_state.read, QUORUM_STATES, item("quorum_state", data), data)


def _with_checksums(data: bytes) -> bytes:
    """The bytes with the checksum of each batch that can be found put right."""
    fixed, at = bytearray(data), 0
    while at + _CRC_FROM <= len(fixed):
        (length,) = struct.unpack_from(">i", fixed, at + 8)
        end = at + 12 + length
        if not at + _CRC_FROM <= end <= len(fixed):
            break
        struct.pack_into(">I", fixed, at + _CRC_FROM - 4, google_crc32c.value(bytes(fixed[at + _CRC_FROM : end])))
        at = end
    return bytes(fixed)


def partition_file(name: str, data: bytes) -> None:
    """A file of a partition's directory: one row, whatever it holds."""
    kind = partition_files.names.partition_file(name.rsplit("/", 1)[-1])
    assert kind is not None
    work = item(kind.file_kind, data, source_file=name, directory="orders-0")
    found = check_reader(partition_files.read, LOG_SEGMENTS, work, data)
    check_tiled([row.place for row in found], len(data))
    assert len(found) == 1


def listing(data: bytes) -> None:
    work = item("directory_listing", data, directory="orders-0")
    found = check_reader(listings.read, LOG_SEGMENTS, work, data)
    check_tiled([row.place for row in found], len(data))


def containers(data: bytes) -> None:
    """What a file holds, whatever it is packed in."""
    path = _file(data, "file")
    seen: set[str | None] = set()
    left = MAX_UNPACKED_BYTES
    number = 0
    for content in contents(str(path)):
        number += 1
        assert content.compression in COMPRESSIONS
        assert (content.member, content.problem is None) not in seen
        assert content.problem is None or content.stream.read(1) == b""
        seen.add((content.member, content.problem is None))
        size = 0
        while left > 0 and (block := content.stream.read(min(left, 65_536))):
            size += len(block)
            left -= len(block)
        if content.compression == "none" and content.problem is None:
            assert size == min(len(data), MAX_UNPACKED_BYTES)
        assert damage_of(content.stream) != ""
        if left <= 0:
            break
    assert number <= len(data) + 1


def inspection(data: bytes) -> None:
    """A file to what it is, whose it is and where it can be divided; the first byte chooses its name."""
    choice, data = data[:1], data[1:]
    name = NAMES[choice[0] % len(NAMES)] if choice else NAMES[0]
    path = _file(data, name)
    for found in inspect(ListedFile(str(path), name), split_bytes=1000):
        assert pickle.loads(pickle.dumps(found)) == found
        assert found.kind in SOURCE_KINDS
        assert (found.reason is None) == (found.status in ("ingested", "empty")) or found.status == "empty"
        texts = [value for value in asdict(found).values() if isinstance(value, str) and value != found.location]
        assert all(text.encode() is not None for text in texts), "text that no table can hold"
        assert found.broker_id is None or 0 <= found.broker_id < 1 << 31, f"broker {found.broker_id}"
        assert found.captured_at_ms is None or abs(found.captured_at_ms) < 1 << 53, "an instant on no calendar"
        assert 0 <= found.complete_bytes <= found.size_bytes
        assert list(found.splits) == sorted(set(found.splits))
        if found.member is None and found.compression == "none" and found.content_hash and found.size_bytes:
            assert found.size_bytes == len(data)
            assert found.content_hash == hashlib.sha256(data).hexdigest()


def _file(data: bytes, name: str) -> Path:
    path = Path(_FOLDER.name) / str(os.getpid()) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


TARGETS: Final[Mapping[str, Target]] = {
    "framing": framing,
    "log_records": log_records,
    "messages": messages,
    "offset_checkpoint": offset_checkpoint,
    "epoch_checkpoint": epoch_checkpoint,
    "properties": broker_properties,
    "znode_snapshot": znode_snapshot,
    "probes": probes,
    "descriptions": descriptions,
    "capture_gaps": capture_gaps_file,
    "transaction_log": transaction_log_file,
    "snapshot": snapshot_file,
    "metadata_log": metadata_log,
    "metadata_snapshot": metadata_snapshot,
    "quorum_state": vote,
    **{f"partition_{name.rsplit('.', 1)[-1]}": partial(partition_file, name) for name in PARTITION_FILES},
    "listing": listing,
    "containers": containers,
    "inspection": inspection,
}
