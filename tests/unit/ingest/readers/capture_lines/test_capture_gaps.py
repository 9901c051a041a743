"""What a capture could not record: the lines of its own are kept, and say whose broker they are of."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ingest.capture.missed import Missed
from ingest.lake.tables.bronze import CAPTURE_GAPS
from ingest.readers.batches import kept_batches
from ingest.readers.capture_lines.capture_gaps import read
from ingest.readers.work import Kept, Rejected, WorkItem

ITEM = WorkItem("/f", None, "f", "capture_gap", "c", None, "f", "f", 0)
GOOD: dict[str, Any] = {
    "missed_from": 1795232322495,
    "missed_to": 1795232322585,
    "source": "probes",
    "of": "broker 12",
    "reason": "nothing listens at kafka-12:9092",
}


def line(**changes: Any) -> bytes:
    """A gap; what is changed to ``...`` is left out."""
    return json.dumps({key: value for key, value in (GOOD | changes).items() if value is not ...}).encode() + b"\n"


def test_a_gap_fills_its_columns() -> None:
    (row,) = read(ITEM, [line()])
    assert isinstance(row, Kept)
    assert row.values == {
        "missed_from": 1795232322495000,
        "missed_to": 1795232322585000,
        "missed_source": "probes",
        "missed_of": "broker 12",
        "broker_id": 12,
        "reason": "nothing listens at kafka-12:9092",
    }
    (batch,) = kept_batches(CAPTURE_GAPS, ITEM, [row])
    assert batch.column("broker_id").to_pylist() == [12]


@pytest.mark.parametrize(
    ("whose", "broker_id"),
    [
        ("broker 1: /data/orders", 1),
        ("broker 1 and others", None),
        ("the brokers", None),
        ("ZooKeeper", None),
        ("", None),
        ("/brokers/ids", None),
        ("broker 9999999999", None),
    ],
)
def test_whose_it_was_is_said_where_it_was_a_broker_s(whose: str, broker_id: int | None) -> None:
    (row,) = read(ITEM, [line(of=whose)])
    assert isinstance(row, Kept)
    assert (row.values["missed_of"], row.values["broker_id"]) == (whose, broker_id)


def test_every_line_that_a_capture_writes_is_kept() -> None:
    written: list[bytes] = []
    missed = Missed(written.extend, lambda sentence: None)
    missed.lost("probes", "broker 2", "it does not answer in time")
    missed.lost("znodes", "ZooKeeper", "no connection", 1795232322495)
    missed.back("probes", "broker 2")
    missed.once("log dirs", "broker 1", "the broker answers CLUSTER_AUTHORIZATION_FAILED")
    missed.close()
    rows = list(read(ITEM, [b"".join(written)]))
    found = [row.values for row in rows if isinstance(row, Kept)]
    assert [(row["missed_source"], row["broker_id"], row["missed_to"] is None) for row in found] == [
        ("probes", 2, True),
        ("znodes", None, True),
        ("probes", 2, False),
        ("log dirs", 1, False),
        ("znodes", None, False),
    ]
    assert found[0]["missed_from"] == found[2]["missed_from"]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"{broken\n", "no JSON"),
        (b"\n", "empty line"),
        (line(of=..., reason=...), "without of, reason"),
        (line(source=None), "whose source is no text"),
        (line(of=7, reason="\ud800"), "whose of, reason is no text"),
        (line(missed_from=None), "no instant in milliseconds"),
        (line(missed_from="today"), "no instant in milliseconds"),
        (line(missed_to=float("inf")), "no instant in milliseconds"),
        (line(missed_to=1), "ended before it began"),
    ],
)
def test_a_bad_line_says_what_is_wrong_and_costs_no_other(data: bytes, says: str) -> None:
    rows = list(read(ITEM, [line() + data + line(missed_to=None)]))
    assert [type(row) for row in rows] == [Kept, Rejected, Kept]
    assert isinstance(rows[1], Rejected)
    assert says in rows[1].reason
