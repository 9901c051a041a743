"""Writes to znodes from transaction logs, alone and beside snapshots, on operations made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ingest.lake.tables.bronze import ZNODE_SNAPSHOTS, ZNODE_TRANSACTIONS
from reconstruct.events.spark.znode_transactions import logged_changes
from reconstruct.events.spark.znodes import znode_changes

START = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
STATE = "/brokers/topics/t/partitions/0/state"
BROKER = 11  # the session of broker 1
OTHER = 12


def at(zxid: int) -> datetime:
    return START + timedelta(seconds=zxid)


def operation(zxid: int, name: str, path: str | None = None, **more: Any) -> dict[str, Any]:
    return (
        dict.fromkeys(ZNODE_TRANSACTIONS.column_names)
        | {
            "record_id": f"z{zxid}.{more.get('ordinal', 0)}",
            "cluster_id": "c",
            "file_id": "log",
            "source_file": "log.1",
            "source_line": zxid,
            "byte_offset": zxid,
            "byte_length": 1,
            "zxid": zxid,
            "ordinal": 0,
            "transaction_time": at(zxid),
            "session_id": BROKER,
            "operation": name,
            "path": path,
            "full_path": path,
            "is_ephemeral": False if name == "create" else None,
            "version": 0 if name == "create" else None,
        }
        | more
    )


def create(zxid: int, path: str, data: str | None = None, **more: Any) -> dict[str, Any]:
    return operation(zxid, "create", path, data=data, **more)


def put(zxid: int, path: str, version: int, data: str | None = None, **more: Any) -> dict[str, Any]:
    return operation(zxid, "set_data", path, version=version, data=data, **more)


def snapshot(path: str, second: int, czxid: int, mzxid: int, version: int, **more: Any) -> dict[str, Any]:
    return (
        dict.fromkeys(ZNODE_SNAPSHOTS.column_names)
        | {
            "record_id": f"{path}@{second}",
            "cluster_id": "c",
            "file_id": f"f{second}",
            "source_file": "z",
            "source_line": 1,
            "byte_offset": 0,
            "byte_length": 1,
            "captured_at": at(second),
            "path": path,
            "czxid": czxid,
            "mzxid": mzxid,
            "ctime": at(czxid),
            "mtime": at(mzxid),
            "version": version,
            "ephemeral_owner": 0,
            "num_children": 0,
        }
        | more
    )


def fuzzy(path: str, second: int, czxid: int, **more: Any) -> dict[str, Any]:
    return snapshot(path, second, czxid, czxid, 0, snapshot_zxid=second, file_id=f"z{second}", **more)


#: What logs and snapshots hold in each case.
FIRST = [fuzzy("/brokers/ids", 10, 1, num_children=1), fuzzy("/brokers/ids/1", 10, 2)]
WITHOUT = fuzzy("/brokers/ids", 20, 1, num_children=0)
LATER = fuzzy("/other", 30, 25)
CASES: dict[str, tuple[Sequence[dict[str, Any]], Sequence[dict[str, Any]]]] = {
    "created again": (
        [create(1, "/a", "x"), put(2, "/a", 1, "y"), operation(3, "delete", "/a"), create(4, "/a"), put(5, "/a", 1)],
        [],
    ),
    "two servers": ([create(1, "/a"), create(1, "/a", record_id="other server", file_id="other")], []),
    "session closes": (
        [
            create(1, "/brokers/ids/1", "{}", is_ephemeral=True),
            create(2, "/controller", "{}", is_ephemeral=True),
            create(3, "/brokers/ids/2", "{}", is_ephemeral=True, session_id=OTHER),
            operation(4, "delete", "/controller"),
            operation(5, "close_session"),
        ],
        [],
    ),
    "closing lists": (
        [
            create(1, "/brokers/ids/1", is_ephemeral=True),
            operation(5, "close_session"),
            operation(5, "delete", "/brokers/ids/1", ordinal=1),
        ],
        [],
    ),
    "two writes in one transaction": (
        [
            create(1, "/brokers/ids/1", "first", is_ephemeral=True),
            put(1, "/brokers/ids/1", 1, "second", ordinal=1),
            put(2, STATE, 3),
        ],
        [],
    ),
    "older than the log": ([put(7, STATE, 2), put(9, STATE, 3)], [snapshot(STATE, 8, 4, 7, 2)]),
    "older than the log, no snapshot": ([put(7, STATE, 2)], []),
    "ephemeral in a snapshot only": (
        [operation(5, "close_session"), put(4, STATE, 1)],
        [snapshot("/brokers/ids/1", 3, 2, 2, 0, ephemeral_owner=BROKER)],
    ),
    "log and snapshot": (
        [create(1, "/a", "x")],
        [snapshot("/a", second, 1, mzxid, 0 if mzxid == 1 else 4) for second, mzxid in ((2, 1), (3, 1), (9, 8))],
    ),
    "refused": ([operation(1, "error", "/a", error_code=-110), operation(2, "check", "/a", version=0)], []),
    "missing, no next round": ([], [*FIRST, WITHOUT]),
    "missing, with a next round": ([], [*FIRST, WITHOUT, LATER]),
    "snapshots of two servers": (
        [],
        [*FIRST, WITHOUT, WITHOUT | {"file_id": "other server", "record_id": "other"}, LATER],
    ),
}


@pytest.fixture(scope="module")
def changes(spark: Any) -> Any:
    """``changes(name)``: the rows of that case. Each case is a cluster of its own, and all go through Spark at once."""
    logged = [row | {"cluster_id": name} for name, (rows, _) in CASES.items() for row in rows]
    shown = [row | {"cluster_id": name} for name, (_, rows) in CASES.items() for row in rows]
    transactions = spark.createDataFrame(logged, ZNODE_TRANSACTIONS.struct)
    snapshots = spark.createDataFrame(shown, ZNODE_SNAPSHOTS.struct)
    by_case: dict[str, list[dict[str, Any]]] = {name: [] for name in CASES}
    logged = logged_changes(transactions, snapshots)
    for row in znode_changes(snapshots, transactions, logged).orderBy("changed_at", "path", "change").collect():
        values = {
            name: value.replace(tzinfo=UTC) if isinstance(value, datetime) else value
            for name, value in row.asDict().items()
        }
        by_case[row["cluster_id"]].append(values)
    return by_case.__getitem__


def columns(rows: Sequence[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


def test_a_znode_created_again_is_another_znode(changes: Any) -> None:
    rows = changes("created again")
    assert columns(rows, "change", "zxid", "czxid", "mzxid", "version", "data") == [
        ("written", 1, 1, 1, 0, "x"),
        ("written", 2, 1, 2, 1, "y"),
        ("deleted", 3, 1, 2, 1, None),
        ("written", 4, 4, 4, 0, None),
        ("written", 5, 4, 5, 1, None),
    ]
    assert [row["created_at"] for row in rows] == [at(1), at(1), at(1), at(4), at(4)]
    assert {row["hidden_writes_count"] for row in rows if row["change"] == "written"} == {0}
    assert all(row["inferred_from"] is None and row["changed_at"] == row["changed_at_upper"] for row in rows)


def test_the_servers_of_an_ensemble_log_the_same_write_once(changes: Any) -> None:
    rows = changes("two servers")
    assert columns(rows, "path", "change") == [("/a", "written")]


def test_a_session_that_closes_takes_its_ephemeral_znodes_along(changes: Any) -> None:
    rows = changes("session closes")
    gone = [row for row in rows if row["change"] == "deleted"]
    assert columns(gone, "path", "zxid", "czxid", "ephemeral_owner", "evidence") == [
        ("/controller", 4, 2, BROKER, ["z4.0"]),
        ("/brokers/ids/1", 5, 1, BROKER, ["z5.0"]),
    ]


def test_znodes_that_a_closing_lists_are_deleted_once(changes: Any) -> None:
    rows = changes("closing lists")
    assert columns(rows, "path", "change", "zxid") == [
        ("/brokers/ids/1", "written", 1),
        ("/brokers/ids/1", "deleted", 5),
    ]


def test_a_broker_that_registers_by_create_and_set_in_one_transaction_writes_once(changes: Any) -> None:
    rows = changes("two writes in one transaction")
    assert columns(rows, "path", "data", "version", "hidden_writes_count", "written_by_broker_id") == [
        ("/brokers/ids/1", "second", 1, 0, 1),
        (STATE, None, 3, None, 1),
    ]


def test_a_snapshot_names_the_creation_of_a_znode_that_is_older_than_the_log(changes: Any) -> None:
    later = changes("older than the log")
    assert columns(later, "zxid", "czxid", "version", "created_at") == [(7, 4, 2, at(4)), (9, 4, 3, at(4))]
    unknown = changes("older than the log, no snapshot")
    assert columns(unknown, "czxid", "created_at", "hidden_writes_count") == [(0, None, None)]


def test_an_ephemeral_znode_that_only_a_snapshot_saw_dies_with_its_session(changes: Any) -> None:
    rows = changes("ephemeral in a snapshot only")
    assert columns(rows, "path", "change", "changed_at", "written_by_broker_id") == [
        ("/brokers/ids/1", "written", at(2), None),
        (STATE, "written", at(4), 1),
        ("/brokers/ids/1", "deleted", at(5), 1),
    ]


def test_a_write_that_log_and_snapshot_show_is_one_row_and_the_log_wins(changes: Any) -> None:
    rows = changes("log and snapshot")
    assert columns(rows, "zxid", "version", "session_id", "evidence", "hidden_writes_count") == [
        (1, 0, BROKER, ["z1.0"], 0),
        (8, 4, None, ["/a@9"], 3),
    ]
    assert columns(rows, "first_shown_at", "last_shown_at") == [(at(2), at(3)), (at(9), at(9))]
    own = changes("missing, no next round")  # ZooKeeper's own, whose times are of another clock
    assert {row["last_shown_at"] for row in own} == {None}


def test_what_was_refused_changes_nothing(changes: Any) -> None:
    assert changes("refused") == []


def test_a_znode_missing_from_a_snapshot_of_zookeepers_own_was_gone_by_the_next_round(changes: Any) -> None:
    assert [row["change"] for row in changes("missing, no next round")] == ["written", "written"], "no bound is known"
    rows = changes("missing, with a next round")
    gone = [row for row in rows if row["change"] == "deleted"]
    assert columns(gone, "path", "changed_at", "changed_at_upper") == [("/brokers/ids/1", at(10), at(30))]


def test_the_same_snapshot_of_two_servers_is_two_rounds(changes: Any) -> None:
    rows = changes("snapshots of two servers")
    assert [row["path"] for row in rows if row["change"] == "deleted"] == ["/brokers/ids/1"]
