"""What is lost of real captures accuses nobody by the rules about offsets and checkpoints."""

from __future__ import annotations

from typing import Any

import pytest

from tests.figures import Figure
from tests.support.bends.losses import FalseError, errors_of, tried
from tests.support.bends.offset_losses import of_offsets
from tests.support.budget import IS_HARD
from tests.support.captures.packed import Unpacker, capture_names
from tests.support.captures.text import CaptureText

TRIES, MANY_TRIES = 1, 20
#: Losses that once accused: clocks of which nothing but one other broker tells that they were set, or that were set
#: back; a start that is missing, and all that is left of it is a log loaded that waited for its deletion, or that the
#: broker registered itself again; all snapshots, so that a topic's own settings are not known. And a clock set soon
#: after a start, so that what was proven of it later was taken for the start too, or set and right again with nothing
#: to prove either; the lines of a cut, but for the warning that its high watermark fell. And a clock
#: set forward with nothing after it but what follows others' events; or soon after the start, so that few registrations
#: bind the clocks to ZooKeeper's, against many requests between them.
_ONCE_ACCUSED = {
    "checkpoints-1.1.1": (11,),
    "failover-0.8.2.2": (20033,),
    "failover-3.9.1": (90003,),
    "lifecycle-0.8.2.2": (10049,),
    "lifecycle-1.1.1": (21,),
    "lifecycle-3.9.1": (15,),
    "unclean-0.8.2.2": (16, 10006, 20024),
    "unclean-3.9.1-info": (13, 37, 53, 10006, 10018, 20013, 20053),
}


@pytest.mark.parametrize("name", capture_names())
def test_a_loss_accuses_nobody(name: str, unpacked: Unpacker, record_property: Any) -> None:
    text, trial = of_offsets(unpacked(name))
    numbers = (*range(MANY_TRIES if IS_HARD else TRIES), *_ONCE_ACCUSED.get(name, ()))
    found: list[FalseError] = tried(name, text, numbers, trial=trial)
    assert [str(error) for error in found] == []
    record_property(Figure.HARMLESS, len(numbers))


def test_what_somebody_did_is_an_error_beside_a_loss(unpacked: Unpacker) -> None:
    """A harness that finds nothing of what was done to the files would find no false error either."""
    text, trial = of_offsets(unpacked("checkpoints-1.1.1"))
    left = CaptureText({name: lines for name, lines in text.files.items() if not name.startswith("broker-2/logs")})
    kinds = {key[2:4] for key, _, _ in errors_of(trial.said(text))}
    assert kinds == {("checkpoint_malformed", 1), ("checkpoint_missing", 2), ("log_directory_wiped", 3)}
    assert {key[2:4] for key, _, _ in errors_of(trial.said(left))} == kinds - {("checkpoint_missing", 2)}
