"""What happens to logs between a broker and their reader accuses nobody."""

from __future__ import annotations

from typing import Any

import pytest

from tests.figures import Figure
from tests.support.bends.losses import FalseError, tried
from tests.support.bends.mishaps import of_mishaps
from tests.support.budget import IS_HARD
from tests.support.captures.packed import Unpacker, capture_names

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
