"""The metadata log of a real KRaft quorum, record by record as kafka-dump-log prints it; and damaged."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import google_crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.files.content_facts import MetadataLogFacts
from ingest.lake.tables.bronze import SourceKind
from ingest.readers.metadata_log import quorum_state
from ingest.readers.metadata_log.framing import BatchFramer
from ingest.readers.metadata_log.record_types import control_record, metadata_record
from ingest.readers.metadata_log.records import read, read_snapshot
from ingest.readers.work import Kept, Rejected, WorkItem
from tests import ROOT
from tests.support import dumped
from tests.support.metadata_log import MIGRATED

#: Played on Kafka 4.1.0: topics created and deleted, a broker killed and started; and what kafka-dump-log prints of it.
PLAYED = ROOT / "tests" / "data" / "kraft-4.1.0"
FOLDER = PLAYED / "broker-1" / "__cluster_metadata-0"
LOGS = sorted(FOLDER.glob("*.log"))
SNAPSHOTS = sorted(FOLDER.glob("*.checkpoint"))


def item(file: Path, data: bytes) -> WorkItem:
    kind = SourceKind.METADATA_SNAPSHOT if file.suffix == ".checkpoint" else SourceKind.METADATA_LOG
    return WorkItem(str(file), None, file.name, kind, "c", 1, "f", "f", len(data))


def said(file: Path) -> list[dumped.DumpedRecord]:
    """Of every record what Kafka's own tool printed."""
    (records,) = dumped.printed((PLAYED / "dumped" / f"{file.name}.txt").read_text("utf-8")).values()
    return records


def blocks(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


def rows(file: Path, data: bytes | None = None, size: int = 1 << 16) -> list[Kept | Rejected]:
    data = file.read_bytes() if data is None else data
    reader = read_snapshot if file.suffix == ".checkpoint" else read
    return list(reader(item(file, data), blocks(data, size)))


def kept(found: Sequence[Kept | Rejected]) -> list[dict[str, Any]]:
    return [dict(one.values) for one in found if isinstance(one, Kept)]


def reasons(found: Sequence[Kept | Rejected]) -> list[str]:
    return [one.reason for one in found if isinstance(one, Rejected)]


@pytest.mark.parametrize("file", [*LOGS, *SNAPSHOTS], ids=lambda file: file.name)
def test_every_record_is_what_kafka_s_own_tool_prints(file: Path) -> None:
    found = dumped.read(file)
    assert dumped.read_otherwise(found, said(file)) == []
    assert len(found) > 10


@pytest.mark.parametrize("file", [*LOGS, *SNAPSHOTS], ids=lambda file: file.name)
def test_places_are_the_file_and_offsets_have_no_gap(file: Path) -> None:
    found = rows(file)
    ends = [one.place.offset + one.place.length for one in found]
    assert [one.place.offset for one in found] == [0, *ends[:-1]]
    assert ends[-1] == file.stat().st_size
    values = kept(found)
    if file.suffix == ".log":
        assert [one["offset"] for one in values[1:]] == [one["last_offset"] + 1 for one in values[:-1]]
        assert sum(one["last_offset"] - one["offset"] + 1 for one in values) == len(said(file))
        assert all(one["last_offset"] == one["offset"] or one["record_type"] == "NoOpRecord" for one in values)
    else:
        assert [one["position"] for one in values] == list(range(len(values)))
        assert {one["snapshot_end_offset"] for one in values} == {int(file.name[:20])}


def test_blocks_of_any_size_give_the_same() -> None:
    assert rows(LOGS[0], size=7) == rows(LOGS[0])


def test_a_file_that_grows_is_read_up_to_its_last_whole_batch() -> None:
    data = LOGS[0].read_bytes()
    ends = [one.offset + one.length for one in BatchFramer().take(data)]
    for size in Random(0).sample(range(1, len(data)), 60):
        growing, final = MetadataLogFacts(is_final=False), MetadataLogFacts(is_final=True)
        for facts in (growing, final):
            for block in blocks(data[:size], 100):
                facts.take(block)
        whole = max((end for end in ends if end <= size), default=0)
        assert growing.result()["complete_bytes"] == whole
        is_torn = bool(data[whole:size].strip(b"\0"))  # zeros at the end may be nothing
        assert final.result()["complete_bytes"] == (size if is_torn else whole)
        cut = rows(LOGS[0], data[:size])
        assert reasons(cut) == (["the batch is cut off: the file ends in it"] if is_torn else [])
        assert [one for one in cut if isinstance(one, Kept)] == rows(LOGS[0], data[:whole])


def test_zeros_at_the_end_are_no_record() -> None:
    data = LOGS[0].read_bytes()
    assert rows(LOGS[0], data + bytes(5000)) == rows(LOGS[0])


@pytest.mark.parametrize("file", SNAPSHOTS, ids=lambda file: file.name)
def test_a_snapshot_that_is_cut_gives_its_whole_batches_and_a_sentence(file: Path) -> None:
    data = file.read_bytes()
    ends = [0, *(one.offset + one.length for one in BatchFramer().take(data))]
    for size in {*ends, *Random(0).sample(range(1, len(data)), 40)}:
        cut = rows(file, data[:size])
        whole = max(end for end in ends if end <= size)
        assert kept(cut) == kept(rows(file, data[:whole]))
        assert reasons(cut) == ([] if size == whole else ["the batch is cut off: the file ends in it"])


@pytest.mark.parametrize("file", [LOGS[0], SNAPSHOTS[0]], ids=lambda file: file.name)
@given(st.data())
def test_a_flipped_bit_costs_its_batch_or_what_cannot_be_found_behind_it(file: Path, data: st.DataObject) -> None:
    whole = file.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    bent = bytearray(whole)
    bent[at] ^= 1 << data.draw(st.integers(0, 7))
    batches = BatchFramer().take(whole)
    hit = next(batch for batch in batches if batch.offset <= at < batch.offset + batch.length)
    found = rows(file, bytes(bent))
    before = kept(rows(file, whole[: hit.offset]))
    assert kept(found)[: max(0, len(before) - 1)] == before[:-1]  # the last may be NoOps that go on
    is_in_epoch = 12 <= at - hit.offset < 16  # no checksum covers the epoch of the leader
    assert is_in_epoch or len(reasons(found)) >= 1
    assert not bytes(bent[sum(one.place.length for one in found) :]).strip(b"\0")


#: Where in a batch, how it is packed, and numbers that none has: its length, its format, how many records it has.
ABSURD = {
    "length": (8, ">i", (-(1 << 31), -1, 0, 48, (16 << 20), (1 << 31) - 1)),
    "format": (16, ">b", (-1, 0, 1, 3, 127)),
    "count": (57, ">i", (-(1 << 31), -1, 0, 1 << 20, (1 << 31) - 1)),
    "length of a record": (61, ">5s", (b"\xff\xff\xff\xff\x0f", b"\xfe\xff\xff\xff\x0f", b"\xff\xff\xff\xff\xff")),
}


@pytest.mark.parametrize("what", ABSURD)
@pytest.mark.parametrize("file", [LOGS[0], SNAPSHOTS[0]], ids=lambda file: file.name)
def test_absurd_lengths_and_unknown_formats_are_a_sentence_and_the_rest_is_taken(file: Path, what: str) -> None:
    whole = file.read_bytes()
    before, hit, *behind = BatchFramer().take(whole)
    at, form, values = ABSURD[what]
    for value in values:
        bent = bytearray(whole)
        struct.pack_into(form, bent, hit.offset + at, value)
        end = hit.offset + hit.length
        struct.pack_into(">I", bent, hit.offset + 17, google_crc32c.value(bytes(bent[hit.offset + 21 : end])))
        found = rows(file, bytes(bent))
        assert not bytes(bent[sum(one.place.length for one in found) :]).strip(b"\0")
        named = [*reasons(found), *(one["problem"] for one in kept(found) if one["problem"])]
        assert named, value
        assert kept(found)[: len(kept(rows(file, before.data)))] == kept(rows(file, before.data))
        if what in ("count", "length of a record"):  # its own length still leads on to the next
            assert kept(found)[-1] == kept(rows(file))[-1]
            assert behind


@given(st.binary(max_size=300))
def test_what_is_no_log_is_one_rejected_record(data: bytes) -> None:
    found = rows(LOGS[0], data)
    assert kept(found) == []
    assert len(found) == (1 if data.strip(b"\0") else 0)


def batch_of(*values: bytes, base: int = 0) -> bytes:
    """A batch of records with these values."""
    body = b""
    for number, value in enumerate(values):
        record = b"\0\0" + bytes([number << 1, 1]) + _varint(len(value)) + value + b"\0"
        body += _varint(len(record)) + record
    crc = google_crc32c.value(
        tail := struct.pack(">hiqqqhii", 0, len(values) - 1, 7, 7, -1, -1, -1, len(values)) + body
    )
    return struct.pack(">qiibI", base, 9 + len(tail), 3, 2, crc) + tail


def _varint(value: int) -> bytes:
    value, found = value << 1, b""
    while value >= 0x80:
        found, value = found + bytes([value & 0x7F | 0x80]), value >> 7
    return found + bytes([value])


def test_types_and_versions_to_come_are_kept_and_named() -> None:
    found = kept(rows(LOGS[0], batch_of(b"\x01\x63\0\0", b"\x01\0\x63\0", b"\x07\0\0", b"\x01\x09\0", b"")))
    assert [(one["record_type"], one["record_version"], one["problem"]) for one in found] == [
        ("type 99", 0, "a type of record that Kafka 3.3 to 4.3 do not have"),
        ("RegisterBrokerRecord", 99, "version 99 of it: those up to 4 are known"),
        ("unreadable", None, "its frame is of version 7: only 1 is known"),
        ("RemoveTopicRecord", 0, "its fields cannot be read: it ends 16 bytes early"),
        ("unreadable", None, "it ends 1 bytes early"),
    ]
    assert {one["fields"] for one in found} == {None}
    assert control_record(b"\0\0\0\x09", b"\0\0").record_type == "control type 9"
    assert control_record(None, b"\0\0").problem == "a control record without its type"


def test_the_id_of_zeros_is_printed_as_kafka_does() -> None:
    """``DirectoryId.MIGRATING``: of a broker that takes its replicas along from ZooKeeper."""
    (file,) = MIGRATED.glob("*/*/*.log")
    named = {one for row in dumped.read(file) for one in (row.fields or {}).get("directories", ())}
    assert "AAAAAAAAAAAAAAAAAAAAAA" in named
    assert all(len(one) == 22 for one in named)


def test_secrets_do_not_reach_the_lake() -> None:
    name = b"ssl.keystore.password"
    config = b"\x01\x04\0\x04\x021" + bytes([len(name) + 1]) + name + b"\x06magic\0"
    assert metadata_record(config).fields == {
        "resourceType": 4,
        "resourceName": "1",
        "name": name.decode(),
        "value": "[hidden]",
    }
    scram = b"\x01\x0b\0\x06alice\x01\x05salt\x07stored\x07server" + struct.pack(">i", 4096) + b"\0"
    shown = metadata_record(scram).fields
    assert shown is not None
    assert (shown["name"], shown["iterations"]) == ("alice", 4096)
    assert {shown["salt"], shown["storedKey"], shown["serverKey"]} == {"[hidden]"}


def read_quorum_state(text: bytes) -> Kept | Rejected:
    kind = SourceKind.QUORUM_STATE
    (row,) = quorum_state.read(
        WorkItem("quorum-state", None, "quorum-state", kind, "c", 1, "f", "f", len(text)), [text]
    )
    return row


def test_a_quorum_state() -> None:
    row = read_quorum_state((FOLDER / "quorum-state").read_bytes())
    assert isinstance(row, Kept)
    assert (row.values["leader_id"], row.values["voted_id"], row.values["voter_ids"]) == (1, None, [1])
    assert isinstance(read_quorum_state(b'{"leaderId":"x","leaderEpoch":1,"votedId":-1,"data_version":0}\n'), Rejected)


VOTED_DIRECTORY = "HduHWF4V7Orhu5CldM-idw"
#: Kafka's own cases (FileQuorumStateStoreTest, ElectionStateTest, 4.3): leader, voted id and directory of the file.
STATES = {
    "testWriteReadElectedLeader": (1, -1, None),
    "testWriteReadVotedCandidate testVotedCandidateWithoutVotedDirectoryId": (-1, 2, None),
    "testVotedCandidateWithVotedDirectoryId": (-1, 2, VOTED_DIRECTORY),
    "testWriteReadUnknownLeader testVotedCandidateWithoutVotedId": (-1, -1, None),
    "testInitializeVotedAndLeaderAreDifferent testQuorumStateDataRoundTrip": (1, 2, VOTED_DIRECTORY),
}


@pytest.mark.parametrize(("case", "version"), [(case, version) for case in STATES for version in (0, 1)])
def test_what_a_node_remembers_of_an_election(case: str, version: int) -> None:
    """Up to 3.8, and where kraft.version is 0, the file lists the voters and no directories."""
    leader, voted, directory = STATES[case]
    of_version: dict[str, Any] = {"votedDirectoryId": directory or "AAAAAAAAAAAAAAAAAAAAAA"}
    if version == 0:
        of_version = {"clusterId": "", "appliedOffset": 0, "currentVoters": [{"voterId": one} for one in (3, 1, 2)]}
    text = {"leaderId": leader, "leaderEpoch": 5, "votedId": voted, **of_version, "data_version": version}
    row = read_quorum_state(json.dumps(text).encode() + b"\n")
    assert isinstance(row, Kept)
    assert {name: row.values[name] for name in ("leader_id", "leader_epoch", "voted_id", "voted_directory_id")} == {
        "leader_id": None if leader < 0 else leader,
        "leader_epoch": 5,
        "voted_id": None if voted < 0 else voted,
        "voted_directory_id": directory if version else None,
    }
    assert row.values["voter_ids"] == (None if version else [1, 2, 3])
