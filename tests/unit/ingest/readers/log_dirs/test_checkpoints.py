"""Checkpoints: good entries are kept, bad ones named, as Kafka's own readers would judge them."""

from __future__ import annotations

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.readers.log_dirs import checkpoints
from ingest.readers.log_dirs.checkpoints import CUT_OFF, read
from ingest.readers.work import Kept, Rejected
from tests.support.captures.packed import Unpacker
from tests.unit.ingest.readers.log_dirs.log_files import blocks, item, kept, rejected

OFFSETS = item("replication_offset_checkpoint")
EPOCHS = item("leader_epoch_checkpoint", directory="a-b-7.0123456789abcdef0123456789abcdef-delete")
INT64_MAX = (1 << 63) - 1

Entry = tuple[str, int, int]


def offsets(data: bytes) -> tuple[list[Entry], list[tuple[int, str]]]:
    rows = list(read(OFFSETS, [data]))
    return [(row["topic"], row["partition_id"], row["offset"]) for row in kept(rows)], rejected(rows)


def epochs(data: bytes) -> tuple[list[tuple[int, int]], list[tuple[int, str]]]:
    rows = list(read(EPOCHS, [data]))
    return [(row["leader_epoch"], row["start_offset"]) for row in kept(rows)], rejected(rows)


def test_an_offset_checkpoint() -> None:
    assert offsets(b"0\n2\norders 0 12\na-b.c_d 31 0\n") == ([("orders", 0, 12), ("a-b.c_d", 31, 0)], [])


def test_a_leader_epoch_checkpoint_is_of_the_directory_it_lies_in() -> None:
    rows = list(read(EPOCHS, [b"0\n2\n0 0\n3 100\n"]))
    assert kept(rows) == [
        {"topic": "a-b", "partition_id": 7, "leader_epoch": 0, "start_offset": 0},
        {"topic": "a-b", "partition_id": 7, "leader_epoch": 3, "start_offset": 100},
    ]
    assert rejected(rows) == []
    rows = list(read(item("leader_epoch_checkpoint"), [b"0\n1\n0 0\n"]))
    assert [line for line, _ in rejected(rows)] == [1, 2, 3]
    assert kept(rows) == []


@pytest.mark.parametrize("data", [b"", b"0\n", b"0", b"0\n0\n", b"0\r\n0\r\n"])
def test_a_file_without_entries_is_empty_and_not_wrong(data: bytes) -> None:
    assert offsets(data) == ([], [])


def test_white_space_as_java_splits_it() -> None:
    assert offsets(b"0\r\n3\r\norders 0 12\r\norders\t1  13 \x0b\norders 2 +14\n") == (
        [("orders", 0, 12), ("orders", 1, 13), ("orders", 2, 14)],
        [],
    )
    good, bad = offsets("0\n2\n orders 0 12\norders\u00a01\u00a02\n".encode())
    assert (good, [line for line, _ in bad]) == ([], [3, 4])


def test_what_kafka_would_refuse_is_named_and_the_rest_is_kept() -> None:
    good, bad = offsets(b"0\n5\norders 0 12\norders x 1\n\norders 1 13\n orders 4 1\n")
    assert good == [("orders", 0, 12), ("orders", 1, 13)]
    assert [line for line, _ in bad] == [4, 5, 7]
    assert bad[0][1] == "a malformed entry, its partition or offset is not a number in range: 'orders x 1'"
    assert bad[1][1] == "a malformed entry, not TOPIC PARTITION OFFSET: ''"


@pytest.mark.parametrize(
    "line",
    [
        b"orders 0",
        b"orders 0 12 13",
        b"orders 0 1.5",
        b"orders 0 9223372036854775808",
        b"orders 2147483648 1",
        b"orders -1 1",
        b"orders 0 0x10",
        b"orders 0 1_000",
        "orders 0 ١٢".encode(),
        b"or\0ders 0 12",
        b"\0\0\0\0 0 12",
        b"ord/ers 0 12",
        b"ord\xff\xfeers 0 12",
        b"\0" * 512,
        b"orders 0 " + b"9" * 5000,
        b"#comment",
    ],
)
def test_a_malformed_entry_costs_only_itself(line: bytes) -> None:
    good, bad = offsets(b"0\n3\nbefore 0 1\n" + line + b"\nafter 0 1\n")
    assert good == [("before", 0, 1), ("after", 0, 1)]
    assert [number for number, _ in bad] == [4]
    assert bad[0][1].startswith("a malformed entry, ")
    assert len(bad[0][1]) < 800


def test_offsets_of_64_bits() -> None:
    good, bad = offsets(f"0\n2\na 0 {INT64_MAX}\nb 2147483647 {-INT64_MAX - 1}\n".encode())
    assert good == [("a", 0, INT64_MAX), ("b", 2147483647, -INT64_MAX - 1)]
    assert bad == []


@pytest.mark.parametrize("announced", [0, 1, 3, 2147483647])
def test_another_number_of_entries_than_announced(announced: int) -> None:
    good, bad = offsets(b"0\n%d\norders 0 12\norders 1 13\n" % announced)
    assert good == [("orders", 0, 12), ("orders", 1, 13)]
    assert bad == [(5, f"{announced} entries were announced, 2 are there")]


@pytest.mark.parametrize(
    ("count", "reason"),
    [
        (b"two", "the number of entries is not a number: 'two'"),
        (b"", "the number of entries is not a number: ''"),
        (b"-1", "the number of entries is negative: '-1'"),
        (b"2147483648", "the number of entries is more than a file can have: '2147483648'"),
        (b" 1", "white space around the number of entries, ' 1': Kafka refuses such a file"),
        (b"orders 1 5", "the number of entries is not a number: 'orders 1 5'"),
    ],
)
def test_a_number_of_entries_that_is_none(count: bytes, reason: str) -> None:
    assert offsets(b"0\n" + count + b"\norders 0 12\n") == ([("orders", 0, 12)], [(2, reason)])


def test_a_version_that_is_not_known() -> None:
    good, bad = offsets(b"1\n1\norders 0 12\n")
    assert good == []
    assert bad[0] == (1, "version '1' of the checkpoint format is not known: only 0 is")
    assert [line for line, _ in bad] == [1, 2, 3]
    assert offsets(b"\xef\xbb\xbf0\n0\n")[1][0][0] == 1
    good, bad = offsets(b"0 \n1\norders 0 12\n")
    assert (good, [line for line, _ in bad]) == ([("orders", 0, 12)], [1])


def test_of_two_entries_for_one_partition_the_later_counts() -> None:
    good, bad = offsets(b"0\n3\norders 0 12\nother 0 1\norders 0 13\n")
    assert good == [("other", 0, 1), ("orders", 0, 13)]
    assert bad == [(3, "a second entry for the same key, on line 5, counts")]


def test_of_two_entries_for_one_epoch_the_one_that_begins_first_counts() -> None:
    assert epochs(b"0\n3\n0 0\n1 10\n1 20\n") == (
        [(0, 0), (1, 10)],
        [(5, "a second entry for epoch 1, which began on line 4")],
    )
    assert epochs(b"0\n3\n0 0\n1 20\n1 10\n") == (
        [(0, 0), (1, 10)],
        [(4, "a second entry for the same key, on line 5, counts")],
    )


def test_epochs_and_their_offsets_are_not_negative() -> None:
    good, bad = epochs(b"0\n4\n-1 0\n0 -5\n2 7\n3\n")
    assert good == [(2, 7)]
    assert [line for line, _ in bad] == [3, 4, 6]


def test_a_file_cut_off_in_mid_line() -> None:
    assert offsets(b"0\n2\norders 0 12\norders 1 13") == ([("orders", 0, 12)], [(4, CUT_OFF)])
    good, bad = offsets(b"0\n3\norders 0 12\norders 1")
    assert good == [("orders", 0, 12)]
    assert [line for line, _ in bad] == [4, 5]


def test_more_entries_than_are_held_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "MAX_ENTRIES", 2)
    good, bad = offsets(b"0\n4\na 0 1\nb 0 1\nc 0 1\nd 0 1\n")
    assert good == [("a", 0, 1), ("b", 0, 1)]
    assert [line for line, _ in bad] == [5, 6]


@pytest.mark.parametrize("name", ["checkpoints-1.1.1", "lifecycle-0.8.2.2", "lifecycle-3.9.1"])
def test_what_real_brokers_wrote_is_read_without_loss(unpacked: Unpacker, name: str) -> None:
    folder = unpacked(name)
    files = sorted(path for path in folder.glob("broker-*/checkpoints/*/*") if path.stat().st_size)
    assert files
    damaged = []
    for path in files:
        data = path.read_bytes()
        good, bad = offsets(data)
        assert len(good) + len(bad) >= data.count(b"\n") - 2
        if bad:
            damaged.append(path)
    assert bool(damaged) == (name == "checkpoints-1.1.1"), "where the scenario wrote a corrupt line into one"
    for path in folder.glob("broker-*/leader-epoch-checkpoint/*"):
        rows = list(read(item("leader_epoch_checkpoint", directory=path.name), [path.read_bytes()]))
        assert rejected(rows) == []


TOPIC = st.text(alphabet=f"{string.ascii_letters}{string.digits}._-", min_size=1, max_size=40)
ENTRIES = st.dictionaries(st.tuples(TOPIC, st.integers(0, (1 << 31) - 1)), st.integers(-1, INT64_MAX), max_size=8)


def written(entries: dict[tuple[str, int], int]) -> bytes:
    lines = ["0", str(len(entries)), *(f"{topic} {part} {offset}" for (topic, part), offset in entries.items())]
    return "".join(f"{line}\n" for line in lines).encode()


@settings(max_examples=100, deadline=None)
@given(entries=ENTRIES, block=st.integers(1, 60))
def test_reading_what_was_written_is_the_identity(entries: dict[tuple[str, int], int], block: int) -> None:
    rows = list(read(OFFSETS, blocks(written(entries), block)))
    assert {(row["topic"], row["partition_id"]): row["offset"] for row in kept(rows)} == entries
    assert rejected(rows) == []


@settings(max_examples=150, deadline=None)
@given(entries=ENTRIES, cut=st.integers(0, 400))
def test_any_truncation_keeps_the_entries_before_it(entries: dict[tuple[str, int], int], cut: int) -> None:
    data = written(entries)[:cut]
    good, bad = offsets(data)
    whole = max(0, data.count(b"\n") - 2)
    assert good == [(topic, part, offset) for (topic, part), offset in list(entries.items())[:whole]]
    if data.count(b"\n") >= 2 and len(data) < len(written(entries)):
        assert bad, "what is missing is said"


@settings(max_examples=200, deadline=None)
@given(
    data=st.one_of(
        st.binary(max_size=120),
        st.lists(st.sampled_from([b"0", b"1", b"2", b"t 0 1", b"t 0 2", b"0 5", b"0 4", b" ", b"\0"]), max_size=9).map(
            b"\n".join
        ),
    ),
    of_epochs=st.booleans(),
    block=st.integers(1, 40),
)
def test_any_bytes_are_read_and_every_line_is_accounted_for(data: bytes, of_epochs: bool, block: int) -> None:
    rows = list(read(EPOCHS if of_epochs else OFFSETS, blocks(data, block)))
    assert all(isinstance(row, Kept | Rejected) for row in rows)
    places = [row.place for row in rows]
    assert [place.offset for place in places] == sorted(place.offset for place in places)
    count = data.count(b"\n") + (not data.endswith(b"\n") if data else 0)
    told = {place.line for place in places if place.length}
    assert told | {1, 2} >= set(range(1, count + 1)), "only the two header lines may give no record"
    assert len(told) == sum(1 for place in places if place.length)
    for place in places:
        assert data[place.offset : place.offset + place.length] == (place.data if place.length else b"")
