"""A departure from the ISR that is another member's is counted as that one's, and nothing else is."""

from __future__ import annotations

import pytest

from tests.support.bends.faults.drafts import Site
from tests.support.bends.flaps import flap_bends, is_right
from tests.support.budget import IS_HARD
from tests.support.captures.packed import Unpacker, capture_names
from tests.support.captures.text import CaptureText

#: Captures without a departure and a return of a follower of which no line of the controller tells.
_OTHERS = ("checkpoints", "lifecycle-3.9.1", "quiet", "reassign_busy", "unclean")
WITH_FLAPS = [name for name in capture_names() if not name.startswith(_OTHERS)]


@pytest.mark.parametrize("name", WITH_FLAPS if IS_HARD else ["failover-0.8.2.2", "failover-3.9.1"])
def test_a_departure_is_counted_of_the_one_that_left(name: str, unpacked: Unpacker) -> None:
    site = Site.read(name, CaptureText.read(unpacked(name)))
    bends = list(flap_bends(site))
    assert bends
    assert [bend for bend in bends if not is_right(site, bend)] == []
