"""What is said of a run's progress, on a terminal and elsewhere."""

from __future__ import annotations

import io
import re

from jobs.session.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_off_a_terminal_is_plain_lines():
    stream = io.StringIO()
    with Progress(stream=stream) as progress:
        progress("one")
        progress("")
        progress("two")
    assert re.fullmatch(r" +0\.\d s  one\n +0\.\d s  two\n", stream.getvalue())


def test_progress_on_a_terminal_redraws_one_line_a_stage():
    stream = Terminal()
    with Progress(stream=stream) as progress:
        progress("one")
    assert stream.getvalue().endswith(" s\n")
    assert stream.getvalue().count("\n") == 1


def test_progress_can_be_silent():
    stream = Terminal()
    with Progress(quiet=True, stream=stream) as progress:
        progress("one")
    assert stream.getvalue() == ""
