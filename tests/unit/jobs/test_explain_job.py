"""The times that people write, as the instants they may mean."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from jobs.command.job import UsageError
from jobs.explain_job import Params, span_of


@pytest.mark.parametrize(
    ("text", "start", "width"),
    [
        ("2026-11-21T03:37:08.676Z", datetime(2026, 11, 21, 3, 37, 8, 676000, UTC), timedelta(milliseconds=1)),
        ("2026-11-21 03:37:08", datetime(2026, 11, 21, 3, 37, 8, 0, UTC), timedelta(seconds=1)),
        ("2026-11-21T05:37+02:00", datetime(2026, 11, 21, 3, 37, 0, 0, UTC), timedelta(minutes=1)),
        ("2026-11-21", datetime(2026, 11, 21, 0, 0, 0, 0, UTC), timedelta(days=1)),
        ("2026-11-21T03:37:08.676001", datetime(2026, 11, 21, 3, 37, 8, 676001, UTC), timedelta(microseconds=1)),
    ],
)
def test_a_time_means_as_much_as_it_is_exact(text: str, start: datetime, width: timedelta) -> None:
    assert span_of(text) == (start, start + width)


@pytest.mark.parametrize("text", ["", "yesterday", "03:37", "2026-13-01T00:00"])
def test_what_is_no_time_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(UsageError, match="is no time: write 2026-11-21T03:28:06"):
        span_of(text)


def test_all_between_two_times_may_be_asked_for() -> None:
    params = Params.of("lake", "orders", 0, "2026-11-21T03:37", until="2026-11-21T04:00", named="--from")
    assert (params.at, params.until) == (
        datetime(2026, 11, 21, 3, 37, tzinfo=UTC),
        datetime(2026, 11, 21, 4, tzinfo=UTC),
    )
    with pytest.raises(UsageError, match="--to must be later than --from"):
        Params.of("lake", "orders", 0, "2026-11-21T03:37", until="2026-11-21T03:37", named="--from")
    with pytest.raises(UsageError, match=r"^--from 'now' is no time"):
        Params.of("lake", "orders", 0, "now", until="2026-11-21", named="--from")
