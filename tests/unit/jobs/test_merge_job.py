"""Options of ``merge``: what they mean, and what is refused in one sentence."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta, timezone

import pytest

from jobs.command.job import Common, UsageError
from jobs.merge_job import add_arguments, to_params


def params(tmp_path, *argv):
    (tmp_path / "bronze").mkdir(exist_ok=True)
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return to_params(parser.parse_args(argv), Common(lake=str(tmp_path))).selection


def test_options_are_those_of_the_merger(tmp_path):
    given = ("--topic", "t", "--partitions", "2, 0,2", "--start-time", '"2026-11-21 03:28:06,155"', "--logs", "a,b")
    selection = params(tmp_path, *given, "--end-time", "2026-11-21T04:28:06+01:00", "--corrected")
    assert selection["partitions"] == (0, 2)
    assert selection["start"] == datetime(2026, 11, 21, 3, 28, 6, 155000, tzinfo=UTC)
    assert selection["end"] == datetime(2026, 11, 21, 4, 28, 6, tzinfo=timezone(timedelta(hours=1)))
    assert (selection["logs"], selection["is_corrected"]) == (("a", "b"), True)


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (("--partitions", "0"), "needs --topic"),
        (("--topic", "t", "--partitions", "0,x"), "give their numbers"),
        (("--logs", "a", "--logs-regex", "b"), "not both"),
        (("--logs-regex", "("), "no regular expression"),
        (("--start-time", "noon"), "is no time"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path, argv, says):
    with pytest.raises(UsageError, match=says):
        params(tmp_path, *argv)
