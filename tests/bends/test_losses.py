"""What is lost of real captures accuses nobody."""

from __future__ import annotations

from typing import Any

import pytest

from tests.figures import Figure
from tests.support.bends.losses import OF_PARTITIONS, FalseError, errors_of, set_from, tried
from tests.support.budget import IS_HARD
from tests.support.captures.packed import Unpacker, capture_names
from tests.support.captures.text import CaptureText

TRIES, MANY_TRIES = 8, 100
#: Losses that once accused: lines of a controller.log that told that a broker was gone, and of a controller's own
#: requests beside what its broker received of them, refusals among them; what ended a reassignment. And clocks
#: that were set with too little before it to prove it, as brokers came back and were shut down. And snapshots between
#: which a leader's registration ended, with the lines of its controller that told so.
_ONCE_ACCUSED = {
    "failover-0.8.2.2": (394,),
    "failover-3.9.1": (74, 136),
    "lifecycle-0.8.2.2": (58, 78, 86, 251, 2140, 5147, 20515, 130009),
    "lifecycle-1.1.1": (617, 200485),
    "lifecycle-3.9.1": (10, 45, 287, 1348),
    "unclean-0.8.2.2": (38, 57, 161),
}


@pytest.mark.parametrize("name", capture_names())
def test_a_loss_accuses_nobody(name: str, unpacked: Unpacker, record_property: Any) -> None:
    text = CaptureText.read(unpacked(name))
    numbers = (*range(MANY_TRIES if IS_HARD else TRIES), *_ONCE_ACCUSED.get(name, ()))
    found: list[FalseError] = tried(name, text, numbers)
    assert [str(error) for error in found] == []
    record_property(Figure.HARMLESS, len(numbers))


def test_a_request_that_a_clock_set_meanwhile_shows_as_received_later_was_sent(unpacked: Unpacker) -> None:
    """One line of the controller's requests is lost; the broker that received it had set its clock just before."""
    text = CaptureText.read(unpacked("lifecycle-3.9.1"))
    set_ = set_from(text, "broker-2", 600, "2026-11-21 03:32:51,332")
    log = "broker-3/logs/state-change.log"
    lines = set_.files[log]
    assert "LeaderAndIsr request LeaderAndIsrPartitionState(topicName='orders', partitionIndex=3" in lines[104]
    lost = CaptureText({**set_.files, log: (*lines[:104], *lines[105:])})
    known = {key for key, _, _ in errors_of(OF_PARTITIONS.said(text))}
    assert [key for key, _, _ in errors_of(OF_PARTITIONS.said(lost)) if key not in known] == []
