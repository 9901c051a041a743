"""Which spans of a log leave out what the rules read, by the lowest level seen."""

from __future__ import annotations

import pytest

from reconstruct.coverage.gaps import LogFile
from reconstruct.coverage.levels import FEW_RECORDS, CoarseSpan, coarse_spans, hides


def file(name: str, first: int, last: int, floor: str | None, records: int = 100, kind: str = "state_change_log"):
    return LogFile(kind, name, "ingested", first, last, records, floor, "UTC")


@pytest.mark.parametrize(
    ("kind", "floor", "is_hidden"),
    [
        ("state_change_log", "TRACE", False),
        ("state_change_log", "DEBUG", True),
        ("state_change_log", "INFO", True),
        ("controller_log", "INFO", False),
        ("controller_log", "WARN", True),
        ("server_log", "INFO", False),
        ("server_log", "ERROR", True),
        ("server_log", None, False),
        ("server_log", "NOTICE", False),
        ("offset_probe", "ERROR", False),
    ],
)
def test_what_a_level_hides(kind, floor, is_hidden):
    assert hides(kind, floor) is is_hidden


def test_files_of_one_floor_that_follow_are_one_span():
    files = [file("b", 50, 90, "INFO"), file("a", 10, 40, "INFO"), file("c", 95, 99, "WARN")]
    assert coarse_spans(files) == [
        CoarseSpan("state_change_log", "a", "INFO", 10, 90, 200),
        CoarseSpan("state_change_log", "c", "WARN", 95, 99, 100),
    ]


def test_a_file_that_holds_everything_parts_two_spans():
    files = [file("a", 10, 40, "INFO"), file("b", 50, 90, "TRACE"), file("c", 95, 99, "INFO")]
    assert [(span.start, span.end) for span in coarse_spans(files)] == [(10, 40), (95, 99)]


def test_a_few_records_do_not_tell_the_level_where_other_files_do():
    few = file("b", 50, 60, "INFO", FEW_RECORDS - 1)
    assert coarse_spans([file("a", 10, 40, "TRACE"), few, file("c", 70, 90, "TRACE")]) == []
    assert [span.source_file for span in coarse_spans([few])] == ["b"]


def test_a_file_without_a_level_says_nothing():
    assert coarse_spans([file("a", 10, 40, None)]) == []
