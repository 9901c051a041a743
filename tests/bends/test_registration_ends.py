"""How a registration ended is told, or not known, and never told wrong, where lines of it are missing or are others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.bends.registration_ends import bends_of
from tests.support.captures.packed import Unpacker, capture_names


@pytest.fixture(scope="module", params=[name for name in capture_names() if not name.startswith("quiet")])
def folder(request: pytest.FixtureRequest, unpacked: Unpacker) -> Path:
    return unpacked(request.param)


def test_an_end_whose_lines_are_taken_away_or_changed_is_called_nothing_wrong(folder: Path) -> None:
    bends = list(bends_of(folder.name, folder))
    assert bends
    assert [(made.kind, made.broker_id, ended_as) for made, ended_as in bends if ended_as not in made.allowed] == []
