"""Logs rolled as log4j rolls them, whatever is logged when: what was given whole has no proven gap, what was taken away
is found where names prove it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import accumulate, groupby
from zoneinfo import ZoneInfo

from hypothesis import assume, given
from hypothesis import strategies as st

from ingest.lake.tables.bronze import LOG_KINDS
from reconstruct.coverage.gaps import MISSING_NUMBER, MISSING_PERIOD, NO_LATER_FILE, LogFile, gaps
from reconstruct.time.instants import to_micros

#: Berlin's clock goes back at 01:00 UTC: the local hour from two to three comes twice.
BEGIN = datetime(2026, 10, 24, 20, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")
SECONDS = st.lists(st.sampled_from((1, 40, 900, 3_600, 9_000)), min_size=1, max_size=60)
BASES = (("server.log", "server_log"), ("controller.log", "controller_log"), ("state-change.log", "state_change_log"))


def instants(pauses: list[int]) -> list[datetime]:
    return [BEGIN + timedelta(seconds=seconds) for seconds in accumulate(pauses)]


def log_file(name: str, kind: str, events: list[datetime]) -> LogFile:
    if not events:
        return LogFile(kind, f"logs/{name}", "empty")
    first, last = to_micros(events[0]), to_micros(events[-1])
    return LogFile(kind, f"logs/{name}", "ingested", first, last, len(events), "INFO", "Europe/Berlin")


def by_the_hour(base: str, kind: str, events: list[datetime]) -> list[LogFile]:
    """What ``DailyRollingFileAppender`` leaves: a file per hour with events, the last one under the log's own name."""
    hours = [
        (name, list(group))
        for name, group in groupby(events, lambda event: event.astimezone(BERLIN).strftime("%Y-%m-%d-%H"))
    ]
    rolled = [log_file(f"{base}.{name}", kind, group) for name, group in hours[:-1]]
    return [*rolled, log_file(base, kind, hours[-1][1])]


def by_size(base: str, kind: str, events: list[datetime], size: int) -> list[LogFile]:
    """What ``RollingFileAppender`` leaves: files of one size, the last of which may be empty yet."""
    chunks = [events[start : start + size] for start in range(0, len(events) + 1, size)]
    return [
        log_file(f"{base}.{number}" if number else base, kind, chunk) for number, chunk in enumerate(reversed(chunks))
    ]


@given(st.lists(SECONDS, min_size=3, max_size=3))
def test_logs_given_whole_and_rolled_by_the_hour_have_no_proven_gap(pauses):
    files = [
        f for (base, kind), each in zip(BASES, pauses, strict=True) for f in by_the_hour(base, kind, instants(each))
    ]
    assert {gap.reason for gap in gaps(files, LOG_KINDS)} <= {MISSING_PERIOD}


@given(st.lists(SECONDS, min_size=3, max_size=3), st.integers(1, 9))
def test_logs_given_whole_and_rolled_by_size_have_no_gap(pauses, size):
    files = [
        f for (base, kind), each in zip(BASES, pauses, strict=True) for f in by_size(base, kind, instants(each), size)
    ]
    assert gaps(files, LOG_KINDS) == []


@given(SECONDS, st.integers(1, 9), st.data())
def test_a_file_taken_out_of_numbered_ones_is_found_with_all_its_lines(pauses, size, data):
    files = [file for file in by_size("server.log", "server_log", instants(pauses), size) if file.status == "ingested"]
    assume(len(files) >= 3)
    lost = files.pop(data.draw(st.integers(1, len(files) - 2)))
    [gap] = gaps(files, LOG_KINDS)
    assert gap.reason == MISSING_NUMBER
    assert gap.start < lost.first <= lost.last < gap.end


@given(SECONDS, st.integers(1, 5))
def test_files_cut_off_at_the_end_of_hourly_ones_are_found_while_the_broker_speaks(pauses, cut):
    files = by_the_hour("server.log", "server_log", instants(pauses))
    assume(len(files) > cut)
    kept, lost = files[:-cut], files[-cut:]
    controller = log_file("controller.log", "controller_log", [BEGIN, BEGIN + timedelta(days=9)])
    proven = [gap for gap in gaps([*kept, controller], LOG_KINDS) if gap.reason != MISSING_PERIOD]
    assert [gap.reason for gap in proven] == [NO_LATER_FILE]
    assert kept[-1].last <= proven[0].start <= lost[0].first
    assert lost[-1].last < proven[0].end
