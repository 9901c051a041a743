"""The loop that stands for thousands of parametrised cases names every one that fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.loops import for_each


def test_every_case_runs_and_each_that_fails_is_named() -> None:
    met = []

    @for_each(number=range(3), letter="ab")
    def check(number: int, letter: str) -> None:
        met.append((number, letter))
        assert (number, letter) not in {(0, "b"), (2, "a")}, "not allowed"

    with pytest.raises(AssertionError, match=r"(?s)2 of 6 .*\nnumber=0, letter=b: .*\nnumber=2, letter=a: "):
        check()
    assert met == [(number, letter) for number in range(3) for letter in "ab"]


def test_a_loop_over_nothing_is_refused() -> None:
    with pytest.raises(AssertionError, match="no case of number"):
        for_each(number=[])


@for_each(number=[1, 2])
def test_fixtures_reach_a_test_of_many_cases(tmp_path: Path, number: int) -> None:
    assert tmp_path.is_dir()
    assert number in (1, 2)
