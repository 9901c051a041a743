"""Inputs that once broke a promise of a reader: found by fuzzing, and kept."""

from __future__ import annotations

import gzip

import pytest

from tests.fuzz.targets import TARGETS

#: A line's beginning that makes it a znode of a snapshot.
ZNODE = b'{"captured_at":1,"path":"/a","mzxid":1,'
#: The first byte of an input of inspection, which stands for a file's name; see NAMES.
LOG, SNAPSHOT, META = b"\0", b"\x0a", b"\x0d"

FOUND = {
    "a key with an escaped end of a line, set twice": ("properties", b"versio\\n=0\nversio\\n=0\n"),
    "a format that is not read, but was given to read": ("containers", b"PK\x07\x08\x14\0\0\0"),
    "a zip archive that is cut off, in gzip data that are": (
        "containers",
        gzip.compress(b"PK\3\4" + bytes(26), mtime=0)[:-8],
    ),
    "a transaction log of nothing but its header": ("transaction_log", b"ZKLG\0\0\0\x02\0\0\0\0\0\0\x01\0"),
    "zeros before an entry, at the end of a block": (
        "partition_index",
        bytes.fromhex("0000000000000000 0000000500000190 0000000900000384"),
    ),
    "two things wrong with a time index, which of them is named": (
        "partition_timeindex",
        bytes.fromhex("0000018bcfe5680000000003 0000018bcfe5680500000009") + bytes(23) + b"\x80\0\0\0",
    ),
    "two things wrong with a transaction index, which of them is named": (
        "partition_txnindex",
        bytes(33) + b"\xff" * 8 + bytes(34),
    ),
    "JSON that is nested deeper than Python follows": ("znode_snapshot", b"[" * 200_000 + b"\n"),
    "a znode whose data are nested deeper than Python follows": (
        "znode_snapshot",
        ZNODE + b'"data":' + b"[" * 100_000 + b"\n",
    ),
    "half a character in a znode's path and data": (
        "znode_snapshot",
        b'{"captured_at":1,"path":"/\\ud800","mzxid":1,"data":"\\udfff"}\n',
    ),
    "a first line of deeply nested JSON": ("inspection", LOG + b'{"a":' + b"[" * 100_000 + b"\n"),
    "an instant without end": ("inspection", SNAPSHOT + b'{"captured_at":1e999,"path":"/a","mzxid":1}\n'),
    "a creation without end": (
        "inspection",
        SNAPSHOT + b'{"captured_at":1,"path":"/brokers","mzxid":1,"czxid":1e999,"ctime":1}\n',
    ),
    "half a character in the cluster's id": (
        "inspection",
        SNAPSHOT
        + b'{"captured_at":1,"path":"/brokers/ids","mzxid":1}\n'
        + b'{"captured_at":1,"path":"/cluster/id","mzxid":1,"data":"{\\"id\\":\\"\\\\ud800\\"}"}\n',
    ),
    "a broker id that no broker has": ("inspection", META + b"version=0\nbroker.id=99999999999999\n"),
    "a metadata record whose version is larger than any": (
        "metadata_log",
        bytes.fromhex(
            "01 0000000000000000 00000040 00000001 02 00000000 0000 00000000 0000000000000000 0000000000000000"
            "ffffffffffffffff ffff ffffffff 00000001 1c 00 00 00 01 10 01 0c ffffffff6d 00 00"
        ),
    ),
    "a log's speaker whose id no broker has": (
        "inspection",
        LOG
        + b"[2026-03-11 10:21:07,123] INFO [Controller id=99999999999] Ready (kafka.controller.KafkaController)\n" * 2,
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_is_mended(name: str) -> None:
    target, data = FOUND[name]
    TARGETS[target](data)
