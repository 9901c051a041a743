"""What is printed of a log is text, whatever it says."""

from __future__ import annotations

import pytest

from jobs.session.printable import printable
from jobs.sql.output import no_formula


@pytest.mark.parametrize(
    "text", ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "=", "－1", "|calc"]
)
def test_a_spreadsheet_runs_nothing(text: str) -> None:
    assert no_formula(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "-1", "+1.5", "-1e-9", "a=1", "2026-11-21T03:37:08Z", "[1,2]", "'=1"])
def test_what_is_no_formula_is_as_it_is(text: str) -> None:
    assert no_formula(text) == text


@pytest.mark.parametrize("text", ["\x1b[31m", "\u202eabc", "\x07", "a\rb", "\u2066"])
def test_a_terminal_obeys_nothing(text: str) -> None:
    assert printable(text).isprintable()
