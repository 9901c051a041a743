"""What happens to logs between a broker and their reader accuses nobody."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from tests.figures import Figure
from tests.support.bends.losses import OF_PARTITIONS, FalseError, tried
from tests.support.bends.mishaps import of_mishaps, rolled_logs
from tests.support.budget import IS_HARD
from tests.support.captures.packed import Unpacker, capture_names
from tests.support.captures.text import CaptureText

TRIES, MANY_TRIES = 3, 50
#: Mishaps that once accused: all clocks set at once, so that a controller tells of a bounce an hour later; a fifth or
#: half of all lines of all logs gone, a controller's requests and their receipts among them; times without milliseconds
#: in one kind of log, so that its lines seemed to be before what had led to them.
_ONCE_ACCUSED = {
    "failover-0.8.2.2": (9,),
    "lifecycle-0.8.2.2": (5, 10050, 20026, 20030),
    "lifecycle-3.9.1": (7, 29),
    "unclean-3.9.1-info": (17,),
}


@pytest.mark.parametrize("name", capture_names())
def test_a_mishap_accuses_nobody(name: str, unpacked: Unpacker, record_property: Any) -> None:
    text, trial = of_mishaps(unpacked(name))
    numbers = (*range(MANY_TRIES if IS_HARD else TRIES), *_ONCE_ACCUSED.get(name, ()))
    found: list[FalseError] = tried(name, text, numbers, trial=trial)
    assert [str(error) for error in found] == []
    record_property(Figure.HARMLESS, len(numbers))


@pytest.mark.parametrize(
    ("name", "number"), [("unclean-3.9.1-info", 5), ("failover-1.1.1", 1011), ("reassign_busy-1.1.1", 1)]
)
def test_all_clocks_set_forward_accuse_no_replica(name: str, number: int, unpacked: Unpacker) -> None:
    text, trial = of_mishaps(unpacked(name), offsets=True)
    assert [str(error) for error in tried(name, text, range(number, number + 1), trial=trial)] == []


@pytest.mark.parametrize("name", capture_names())
def test_logs_that_were_rolled_accuse_nobody(name: str, unpacked: Unpacker, record_property: Any) -> None:
    """By default each hour: what stands in the next file is not missing in the one before."""

    def above_info(text: CaptureText) -> Counter[tuple[Any, ...]]:
        return Counter(
            (partition, finding.rule_id, finding.divergence_type, finding.broker_id, finding.replica_id)
            for partition, finding in OF_PARTITIONS.said(text)
            if finding.severity != "info"
        )

    text = CaptureText.read(unpacked(name))
    known = above_info(text)
    numbers = range(MANY_TRIES if IS_HARD else TRIES)
    tries = [rolled_logs(text, Random(f"{name} {number}")) for number in numbers]
    assert {said: found for said, rolled in tries if (found := above_info(rolled) - known)} == {}
    record_property(Figure.HARMLESS, len(numbers))
