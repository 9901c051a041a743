"""Inputs to begin with: parts of the packed captures, and small files as a broker writes them."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import tarfile
import zipfile
from functools import cache
from typing import Final

import zstandard

from ingest.containers import contents
from tests.fuzz.targets import NAMES, TARGETS
from tests.support.captures.packed import capture_names
from tests.support.captures.packing import CAPTURES
from tests.support.files.log_samples import LAYOUT_SAMPLES, WRAPPER_SAMPLES
from tests.unit.ingest.readers.log_dirs.log_files import offset_index, producer_snapshot, segment, time_index

#: No seed is longer: a fuzzer's time goes into what is done with its bytes.
MAX_SEED_BYTES: Final = 6000
#: Files of a capture by a part of their path.
_PARTS: Final = {
    "state-change.log": "log",
    "controller.log": "log",
    "server.log": "log",
    "offset-checkpoint/": "offset_checkpoint",
    "leader-epoch-checkpoint/": "epoch_checkpoint",
    ".properties": "properties",
    "znodes/": "znode_snapshot",
    "/probes-": "probes",
    "zk-version-2/log.": "transaction_log",
    "zk-version-2/snapshot.": "snapshot",
}
_LISTING: Final = b"""/kafka/orders-0:
total 20
-rw-r--r-- 1 kafka kafka 10485760 Nov 21 03:30 00000000000000000000.index
-rw-r--r-- 1 kafka kafka     1234 2026-11-21 03:30:16.123456789 +0000 00000000000000000000.log
-rw-r--r-- 1 kafka kafka        8 Nov 21  2025 leader-epoch-checkpoint

1234 1700000000.1 /kafka/orders-1/00000000000000000000.log
4\t./orders-1/00000000000000000000.timeindex
/kafka/orders-1/partition.metadata
"""
#: What a capture writes of its brokers: a line of every type, of old brokers and of new ones; and what it missed.
_ASKED: Final = b'{"sent_at":1795232322495.5,"received_at":1795232322585.3,"broker":1,'
_DESCRIPTIONS: Final = b"\n".join(
    _ASKED + rest
    for rest in (
        b'"description":"cluster","cluster_id":"MbsgeNDwTpyOsjxcXYWlCw","controller_id":2,"brokers":[{"id":1,"host":'
        b'"kafka-1","port":9092,"rack":null},{"id":2,"host":"kafka-2","port":9092,"rack":"b"}],"topics":1}',
        b'"description":"cluster","cluster_id":null,"controller_id":null,"brokers":[],"topics":0}',
        b'"description":"topic","topic":"orders","topic_id":null,"is_internal":false,"error_code":0,"partitions":[{'
        b'"partition":0,"error_code":9,"leader":1,"leader_epoch":4,"replicas":[1,2],"isr":[1],"offline_replicas":[2]}]}',
        b'"description":"topic_gone","topic":"orders"}',
        b'"description":"topic_elr","topic":"orders","partitions":[{"partition":0,"eligible_leader_replicas":[1],'
        b'"last_known_elr":[2]}]}',
        b'"description":"registered_brokers","brokers":[{"id":1,"host":"a","port":1,"rack":null,"is_fenced":true}]}',
        b'"description":"quorum","leader":1,"leader_epoch":2,"high_watermark":3,"voters":[{"id":1,"directory_id":"d",'
        b'"log_end_offset":4,"last_fetch_at":-1,"last_caught_up_at":5}],"observers":[]}',
        b'"log_dir":"/data","error_code":0,"total_bytes":-1,"usable_bytes":null,"topics":1}',
        b'"log_dir":"/data","topic":"orders","partitions":[{"partition":0,"size":1,"offset_lag":-1,"is_future":true}]}',
        b'"reassignments":[{"topic":"orders","partition":0,"replicas":[1,2,3],"adding_replicas":[3],"removing_replicas"'
        b":[2]}]}\n",
    )
)
_GAPS: Final = (
    b'{"missed_from":1795232322495,"missed_to":null,"source":"probes","of":"broker 2","reason":"it does not answer"}\n'
    b'{"missed_from":1795232322495,"missed_to":1795232329000,"source":"probes","of":"broker 2","reason":"it is gone"}\n'
    b'{"missed_from":1795232322495,"missed_to":1795232322495,"source":"logs","of":"broker 1: /logs","reason":"x"}\n'
)


def seeds(target: str) -> list[bytes]:
    """The inputs that fuzzing of a target begins with."""
    found = _BUILT[target]() if target in _BUILT else list(_captured().get(target, ()))
    assert target in TARGETS
    assert found, f"nothing to begin with for {target}"
    return found


@cache
def _captured() -> dict[str, list[bytes]]:
    """A few files of each kind from every capture, cut to size."""
    found: dict[str, list[bytes]] = {}
    for name in capture_names():
        taken: dict[str, int] = {}
        for content in contents(str(CAPTURES / f"{name}.tar.xz")):
            part = next((part for part in _PARTS if part in str(content.member)), None)
            if part is None or taken.get(part, 0) >= 2:
                continue
            taken[part] = taken.get(part, 0) + 1
            found.setdefault(_PARTS[part], []).append(_head(content.stream.read(1 << 16), _PARTS[part]))
    return found


def _head(data: bytes, kind: str) -> bytes:
    if kind == "transaction_log":
        return data[:MAX_SEED_BYTES]
    if kind == "snapshot":
        return data
    return data[: data.rfind(b"\n", 0, MAX_SEED_BYTES) + 1] or data[:MAX_SEED_BYTES]


def _samples() -> list[bytes]:
    """The samples of every layout and wrapper."""
    texts = ["\n".join(lines) for lines in (LAYOUT_SAMPLES | WRAPPER_SAMPLES).values()]
    return [text.encode() + b"\n" for text in texts if text]


def _logs() -> list[bytes]:
    return [bytes([number % 256]) + log for number, log in enumerate([*_captured()["log"], *_samples()])]


def _messages() -> list[bytes]:
    with lzma.open(CAPTURES.parent / "data" / "message-templates.jsonl.xz") as file:
        examples = [json.loads(line).get("example") for line in file]
    return [example.encode() for example in examples if example][::4]


def _packed() -> list[bytes]:
    log = _captured()["log"][0][:1000]
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in ("broker-1/logs/server.log", "x" * 120, "ü"):
            entry = tarfile.TarInfo(name)
            entry.size = len(log)
            archive.addfile(entry, io.BytesIO(log))
    tar = held.getvalue()
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr("broker-1/server.log", log)
        zipped.writestr("bundle.tar", tar)
    packed = [gzip.compress(tar, mtime=0), zstandard.compress(tar), lzma.compress(tar), gzip.compress(log, mtime=0)]
    return [log, tar, held.getvalue(), zstandard.compress(log) * 2, *packed]


def _named() -> list[bytes]:
    """Something of every kind, each with a name that suits it."""
    kinds = {
        "server.log": _captured()["log"][:6],
        "replication-offset-checkpoint": _captured()["offset_checkpoint"][:2],
        "leader-epoch-checkpoint": _captured()["epoch_checkpoint"][:2],
        "1700000000000.jsonl": _captured()["znode_snapshot"][:2],
        "log.1": _captured()["transaction_log"][:2],
        "snapshot.5": _captured()["snapshot"][:2],
        "meta.properties": _captured()["properties"],
        "listing.txt": [_LISTING],
        "probes-1.jsonl": _captured()["probes"][:2],
        "descriptions.jsonl": [_DESCRIPTIONS],
        "missed.jsonl": [_GAPS],
        **{name.rsplit("/", 1)[-1]: seeds(f"partition_{name.rsplit('.', 1)[-1]}") for name in NAMES if "/0000" in name},
    }
    positions = {name.rsplit("/", 1)[-1]: number for number, name in enumerate(NAMES)}
    found = [bytes([positions[name]]) + data for name, group in kinds.items() for data in group]
    return [*found, *(b"\0" + data for data in _packed()), *(b"\0" + data for data in _samples())]


def _segments() -> list[bytes]:
    formats = [{"magic": magic, "compression": compression} for magic in (0, 1, 2) for compression in (0, 1)]
    whole = [segment(0, 3, 4, **options) for options in formats]
    return [*whole, whole[-1] + bytes(100), segment(0, 2, 1) + segment(2, 2, 1, epoch=5), b""]


def _of_quorum(pattern: str) -> list[bytes]:
    """Files of a KRaft node, each with and without its checksums put right."""
    found = sorted((CAPTURES.parent / "data" / "kraft-4.1.0").glob(f"broker-*/__cluster_metadata-0/{pattern}"))
    return [first + path.read_bytes()[:MAX_SEED_BYTES] for path in found for first in (b"\0", b"\1")]


_BUILT: Final = {
    "metadata_log": lambda: _of_quorum("*.log"),
    "metadata_snapshot": lambda: _of_quorum("*.checkpoint"),
    "quorum_state": lambda: [seed[1:] for seed in _of_quorum("quorum-state")],
    "descriptions": lambda: [_DESCRIPTIONS, *(line + b"\n" for line in _DESCRIPTIONS.splitlines())],
    "capture_gaps": lambda: [_GAPS, *(line + b"\n" for line in _GAPS.splitlines())],
    "framing": _logs,
    "log_records": _logs,
    "messages": _messages,
    "listing": lambda: [_LISTING, *(line + b"\n" for line in _LISTING.splitlines())],
    "partition_log": _segments,
    "partition_index": lambda: [offset_index((0, 0), (5, 400), (9, 900)), offset_index((3, 7), ahead=4)],
    "partition_timeindex": lambda: [time_index((1700000000000, 3), (1700000000005, 9), ahead=2)],
    "partition_txnindex": lambda: [bytes(34) * 2, b"\0\0" + (7).to_bytes(8, "big") + bytes(24)],
    "partition_snapshot": lambda: [producer_snapshot(0), producer_snapshot(3)],
    "partition_metadata": lambda: [b"version: 0\ntopic_id: MbsgeNDwTpyOsjxcXYWlCw\n", b""],
    "containers": _packed,
    "inspection": _named,
}
