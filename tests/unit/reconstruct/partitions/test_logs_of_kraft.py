"""A KRaft cluster of which only logs are given: every state that a line prints, none beside, and in time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.captures.packed import extract
from tests.support.captures.text import CaptureText
from tests.support.evidence.partitions import plain_capture
from tests.support.kraft_logs import compared, misread
from tests.support.lakes.kraft import LIFECYCLE, Recorded


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return Recorded(extract(LIFECYCLE, tmp_path_factory.mktemp("lifecycle")))


def logs(recorded: Recorded, is_given: Callable[[str, str], bool]) -> CaptureText:
    """The lines that are given, of these files' names."""
    files = CaptureText.read(recorded.folder).files
    return CaptureText(
        {
            name: tuple(line for line in lines if is_given(name, line))
            for name, lines in files.items()
            if "/logs/" in name
        }
    )


def number_of_states(text: CaptureText) -> int:
    return sum(len(case.decided) for case in plain_capture(text, znodes=False).fold().values())


def test_all_lines_tell_every_state(recorded: Recorded) -> None:
    text = logs(recorded, lambda name, line: True)
    assert misread(text, recorded) == []
    once = [key for key in recorded.states if key[0] != "payments"]
    states = {(key[0], key[2], compared(state)) for key in once for _, state in recorded.states[key]}
    found = {
        (topic, number, compared(span.value))
        for (topic, number), case in plain_capture(text, znodes=False).fold().items()
        if topic != "payments"
        for span in case.decided
    }
    assert found == states


@pytest.mark.parametrize(
    ("given", "least"),
    [
        pytest.param(lambda name, line: "DEBUG" not in line, 30, id="as Kafka logs by default"),
        pytest.param(lambda name, line: "broker-10" not in name, 30, id="of brokers, not of controllers"),
        pytest.param(lambda name, line: "broker-10" in name, 30, id="of controllers"),
        pytest.param(lambda name, line: "broker-1/" in name, 10, id="of one broker"),
    ],
)
def test_fewer_lines_tell_what_they_print(given: Callable[[str, str], bool], least: int, recorded: Recorded) -> None:
    text = logs(recorded, given)
    assert misread(text, recorded) == []
    assert number_of_states(text) >= least
