"""Any history is read as it was written; any damage is said, raises nothing and loses no byte."""

from __future__ import annotations

import io
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ingest.containers.snappy import SnappyStream
from ingest.files.znode_facts import TransactionLogFacts
from ingest.readers.work import Kept, Rejected
from ingest.readers.zookeeper import snapshots, transaction_log
from ingest.readers.zookeeper.snapshot_format import Ending, SnapshotParser
from ingest.readers.zookeeper.transaction_log import operations
from tests.oracles.znode_replay import new_tree
from tests.support.files import jute
from tests.support.files.jute import DIGEST, Stat, in_blocks, log, record, snappy, snapshot, transaction
from tests.unit.ingest.readers.zookeeper.records import column, item_of, read_all

Step = tuple[int, bytes, tuple[Any, ...]]

paths = st.lists(st.sampled_from(["a", "b", "brokers", "ids", "topics", "1", "ä"]), min_size=1, max_size=3).map(
    lambda parts: "/" + "/".join(parts)
)
contents = st.none() | st.text(max_size=20)
small = st.integers(0, 5)
block_sizes = st.sampled_from([1, 3, 16, 64, 1 << 20])


def plain_steps() -> st.SearchStrategy[Step]:
    """(type, body, (operation, path, data, version)) of what may stand in a multi."""
    return st.one_of(
        st.builds(
            lambda p, d, e, c: (1, jute.create(p, d, e, c), ("create", p, d, 0)), paths, contents, st.booleans(), small
        ),
        st.builds(lambda p, d, c: (19, jute.create_container(p, d, c), ("create", p, d, 0)), paths, contents, small),
        st.builds(
            lambda p, d, t: (21, jute.create_ttl(p, d, t), ("create", p, d, 0)), paths, contents, st.integers(1, 9)
        ),
        st.builds(lambda p, k: (k, jute.text(p), ("delete", p, None, None)), paths, st.sampled_from([2, 20])),
        st.builds(lambda p, d, v: (5, jute.set_data(p, d, v), ("set_data", p, d, v)), paths, contents, small),
        st.builds(lambda p, v: (7, jute.set_acl(p, v), ("set_acl", p, None, None)), paths, small),
        st.builds(lambda p, v: (13, jute.check(p, v), ("check", p, None, v)), paths, st.integers(-1, 5)),
    )


def multi_of(steps: list[Step], refused_at: int | None) -> tuple[int, bytes, list[tuple[Any, ...]]]:
    if refused_at is None:
        return 14, jute.multi(*((kind, body) for kind, body, _ in steps)), [expected for *_, expected in steps]
    at = min(refused_at, len(steps))
    parts = [(kind, body) for kind, body, _ in steps[:at]] + [(-1, jute.integer(-110))]
    kept = [("error", *expected[1:]) for *_, expected in steps[:at]]
    return 14, jute.multi(*parts), [*kept, ("error", None, None, None)]


def close_of(listed: list[str] | None) -> tuple[int, bytes, list[tuple[Any, ...]]]:
    deletions = [("delete", path, None, None) for path in listed or ()]
    return -11, b"" if listed is None else jute.paths(*listed), [("close_session", None, None, None), *deletions]


histories = st.lists(
    st.one_of(
        plain_steps().map(lambda step: (step[0], step[1], [step[2]])),
        st.builds(multi_of, st.lists(plain_steps(), min_size=1, max_size=4), st.none() | st.integers(0, 4)),
        st.builds(close_of, st.none() | st.lists(paths, max_size=3)),
        st.just((-10, jute.integer(6000), [("create_session", None, None, None)])),
        st.just((-1, jute.integer(-101), [("error", None, None, None)])),
    ),
    min_size=1,
    max_size=8,
)
digests = st.sampled_from([b"", DIGEST])


def written(history: list[tuple[int, bytes, list[Any]]], digest: bytes) -> bytes:
    return log(*(transaction(zxid, kind, body, digest=digest) for zxid, (kind, body, _) in enumerate(history, 1)))


@given(histories, digests, st.sampled_from([0, 1, 100]), block_sizes)
def test_any_history_is_read_as_it_was_written(history, digest, zeros, block_bytes) -> None:
    rows = read_all(transaction_log.read, written(history, digest) + bytes(zeros), block_bytes=block_bytes)
    names = ("operation", "full_path", "data", "version")
    read = list(zip(*(column(rows, name) for name in names), strict=True))
    expected = [each for *_, listed in history for each in listed]
    # of a znode without data it is the same whether they are empty or null
    assert read == [(operation, path, data or None, version) for operation, path, data, version in expected]
    assert all(isinstance(row, Kept) for row in rows)


@given(histories, digests, st.data())
def test_a_log_read_in_two_parts_gives_the_rows_of_the_whole(history, digest, data) -> None:
    whole = written(history, digest)
    rows = read_all(transaction_log.read, whole)
    starts = [row.place for row in rows if column([row], "ordinal") == [0]]
    place = data.draw(st.sampled_from(starts))
    second = read_all(transaction_log.read, whole[place.offset :], offset=place.offset, line=place.line)
    if place.offset:
        assert second == [row for row in rows if row.place.offset >= place.offset]


def damaged(draw: st.DataObject, whole: bytes) -> bytes:
    """The bytes cut, changed at some places, or with others in their midst."""
    data = bytearray(whole[: draw.draw(st.integers(0, len(whole)))] if draw.draw(st.booleans()) else whole)
    for _ in range(draw.draw(st.integers(0, 4))):
        if data:
            data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.sampled_from([0, 1, 0x42, 0x7F, 0xFF]))
    at = draw.draw(st.integers(0, len(data)))
    return (
        bytes(data[:at]) + draw.draw(st.binary(max_size=30)) + bytes(data[at:]) + bytes(draw.draw(st.integers(0, 40)))
    )


@given(histories, digests, block_sizes, st.data())
def test_a_damaged_log_loses_no_byte_and_its_facts_agree(history, digest, block_bytes, data) -> None:
    broken = damaged(data, written(history, digest))
    sizes = {}
    for is_final in (False, True):
        facts = TransactionLogFacts(is_final=is_final)
        for block in in_blocks(broken, block_bytes):
            facts.take(block)
        sizes[is_final] = facts.result()["complete_bytes"]
    complete, written_bytes = sizes.values()
    rows = list(transaction_log.read(item_of(broken), in_blocks(broken, block_bytes)))
    assert rows == list(transaction_log.read(item_of(broken), [broken]))
    ends = 0
    for row in rows:
        assert row.place.offset == ends
        ends += row.place.length
        assert broken[row.place.offset : ends].startswith(row.place.data)
    assert ends == written_bytes == (len(broken.rstrip(b"\0")) if rows else 0)
    torn = complete < written_bytes
    assert complete == (ends - rows[-1].place.length if torn else ends)
    for size in (complete, written_bytes):
        part = broken[:size]
        again = list(transaction_log.read(item_of(part), [part]))
        assert again == (rows[:-1] if torn and size == complete else rows)
    new_tree().replay(operations([broken]), 0)


@given(st.binary(max_size=300), block_sizes)
def test_bytes_that_are_no_log_are_accounted_for(noise: bytes, block_bytes: int) -> None:
    for start in (b"", jute.LOG_HEADER, log(transaction(1, 2, jute.text("/a")))):
        read_all(transaction_log.read, start + record(noise) + noise + b"\1", block_bytes=block_bytes)


stats = st.builds(
    Stat,
    data=st.none() | st.binary(max_size=12),
    czxid=small,
    mzxid=small,
    version=small,
    cversion=small,
    owner=st.sampled_from([0, 7, -(1 << 63)]),
)


@st.composite
def trees(draw: st.DrawFn) -> dict[str, Stat]:
    """A tree in the order that ZooKeeper writes it: each znode, then each of its children with all below it."""
    nodes = {""}
    for path in draw(st.lists(paths, max_size=6)):
        parts = path.split("/")
        nodes |= {"/".join(parts[:count]) for count in range(1, len(parts) + 1)}
    return {path or "/": draw(stats) for path in sorted(nodes, key=lambda path: path.split("/"))}


@given(trees(), st.none() | small, st.none() | small, block_sizes)
def test_any_tree_is_read_as_it_was_written(tree, digest_zxid, last_zxid, block_bytes) -> None:
    data = snapshot(tree, {1: 2}, digest_zxid, last_zxid)
    rows = read_all(snapshots.read, data, block_bytes=block_bytes)
    assert column(rows, "path") == list(tree)
    assert column(rows, "czxid") == [stat.czxid for stat in tree.values()]
    assert column(rows, "num_children") == [
        sum(1 for other in tree if other != "/" and (other.rpartition("/")[0] or "/") == path) for path in tree
    ]
    assert rows[-1].place.offset + rows[-1].place.length == len(data)


@given(trees(), block_sizes, st.sampled_from(["", "/a", "/brokers"]), st.data())
def test_a_damaged_snapshot_loses_no_byte_and_proves_no_deletion(tree, block_bytes, chroot, data) -> None:
    whole = snapshot(tree, {1: 2}, 3)
    broken = damaged(data, whole)
    rows = read_all(snapshots.read, broken, block_bytes=block_bytes, chroot=chroot)
    assert rows == read_all(snapshots.read, broken, chroot=chroot)
    assert sum(row.place.length for row in rows) == len(broken)
    parser = SnapshotParser()
    for block in in_blocks(broken, block_bytes):
        parser.take(block)
    parser.finish()
    if broken != whole and parser.reason is not None:
        assert set(column(rows, "num_children")) <= {None}
    if parser.ending is Ending.DAMAGED:
        (row,) = rows
        assert isinstance(row, Rejected)


@given(st.binary(max_size=400), st.sampled_from([10, 50, 1 << 15]), st.data())
def test_damaged_snappy_never_raises(plain, block_bytes, data) -> None:
    packed = snappy(plain, block_bytes)
    stream = SnappyStream(io.BytesIO(packed))
    assert b"".join(iter(lambda: stream.read(33), b"")) == plain
    broken = SnappyStream(io.BytesIO(damaged(data, packed)))
    for _ in iter(lambda: broken.read(33), b""):
        pass
