"""Which spans of a broker's logs are gaps, and which are only silent."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from ingest.lake.tables.bronze import LOG_KINDS
from ingest.lake.tables.quality import GAP_REASONS
from reconstruct.coverage.gaps import HABIT_RECORDS, Gap, LogFile, gaps
from reconstruct.time.instants import to_datetime, to_micros
from reconstruct.time.log_names import local_hour, log_name, period_span

DAY = "2026-11-21"


def at(clock: str) -> int:
    """The instant of a clock's reading on the day, UTC, in µs; ``24:30`` is half past midnight of the next."""
    hours, minutes = map(int, clock.split(":"))
    return to_micros(datetime(2026, 11, 21, tzinfo=UTC) + timedelta(hours=hours, minutes=minutes))


def log(name: str, first: str, last: str, records: int = 500, kind: str = "server_log", **values: object) -> LogFile:
    made = LogFile(kind, f"broker-1/logs/{name}", "ingested", at(first), at(last), records, "INFO", "UTC")
    return replace(made, **values)


def hourly(base: str, *hours: int, kind: str = "server_log", records: int = 500) -> list[LogFile]:
    """Files rolled by the hour, each with lines from five past to ten to."""
    return [log(f"{base}.{DAY}-{h:02}", f"{h:02}:05", f"{h:02}:50", records, kind) for h in hours]


def unread(name: str, status: str = "rejected") -> LogFile:
    return LogFile("unrecognised", f"broker-1/logs/{name}", status)


def found(*files: LogFile) -> list[tuple[str, str, str, str]]:
    """The gaps as (kind, reason, from, to), the same for any order of the files."""
    told = gaps(files, LOG_KINDS)
    assert gaps(files[::-1], LOG_KINDS) == told
    assert {gap.reason for gap in told} <= set(GAP_REASONS)
    return [(gap.source_kind, gap.reason, _clock(gap.start), _clock(gap.end)) for gap in told]


def _clock(instant: int) -> str:
    return to_datetime(instant).strftime("%H:%M")


@pytest.mark.parametrize(
    ("source_file", "directory", "base", "period", "number"),
    [
        ("logs/server.log", "logs", "server.log", None, 0),
        ("server.log.2026-11-21-10", "", "server.log", datetime(2026, 11, 21, 10), None),
        ("a.tar!k/server.log.2026-11-21-10.gz", "a.tar/k", "server.log", datetime(2026, 11, 21, 10), None),
        ("logs/server.log.2026-11-21", "logs", "server.log", datetime(2026, 11, 21), None),
        ("logs/server.log.2569-11-21", "logs", "server.log", datetime(2026, 11, 21), None),
        ("logs/server.log.12", "logs", "server.log", None, 12),
        ("logs/server.log.3.zst", "logs", "server.log", None, 3),
        ("logs/server.log.2026-13-41-10", "logs", "server.log.2026-13-41-10", None, 0),
    ],
)
def test_a_name_is_taken_apart_as_log4j_makes_it(source_file, directory, base, period, number):
    name = log_name(source_file)
    assert (name.directory, name.base, name.period, name.number) == (directory, base, period, number)


def test_an_hour_that_the_clock_repeats_is_one_period_and_one_that_it_skips_none():
    def hours(month: int, day: int, hour: int) -> float | None:
        span = period_span(datetime(2026, month, day, hour), timedelta(hours=1), "Europe/Berlin")
        return None if span is None else (span[1] - span[0]) / 3_600_000_000

    assert [hours(10, 25, hour) for hour in (1, 2, 3)] == [1, 2, 1]
    assert [hours(3, 29, hour) for hour in (1, 2, 3)] == [1, None, 1]
    assert period_span(datetime(2026, 1, 1), timedelta(hours=1), "Nowhere/Such") is None


def test_the_local_hour_of_an_instant():
    assert local_hour(at("10:20"), "Europe/Berlin") == datetime(2026, 11, 21, 11)
    assert local_hour(at("10:20"), "-02:30") == datetime(2026, 11, 21, 7)
    assert local_hour(at("10:20"), "Nowhere/Such") is None


def test_hours_one_after_another_have_no_gap_though_their_lines_lie_inside():
    assert found(*hourly("server.log", 8, 9, 10, 11), log("server.log", "12:03", "12:20")) == []


def test_an_hour_without_a_file_is_silent_where_nothing_else_speaks():
    assert found(*hourly("server.log", 8, 9, 11, 12), log("server.log", "13:03", "13:20")) == []


def test_a_quiet_state_change_log_is_no_gap_though_its_broker_lives():
    quiet = hourly("state-change.log", 3, 4, 9, 10, kind="state_change_log")
    live = log("state-change.log", "12:00", "12:01", kind="state_change_log")
    assert found(*quiet, live, *hourly("server.log", *range(3, 12)), log("server.log", "12:03", "12:20")) == []


def test_an_hour_is_most_likely_missing_where_the_hours_around_are_full_and_another_log_speaks_in_it():
    files = [*hourly("server.log", 8, 9, 11, 12), log("server.log", "13:03", "13:20")]
    controller = [log("controller.log", "08:00", "10:30", kind="controller_log")]
    assert found(*files, *controller) == [("server_log", "missing_period", "10:00", "11:00")]


@pytest.mark.parametrize(
    "files",
    [
        [*hourly("server.log", 8, 9, 11, 12, records=HABIT_RECORDS - 1), log("server.log", "13:03", "13:20")],
        [*hourly("server.log", 9, 11, 12), log("server.log", "13:03", "13:20")],
        [*hourly("server.log", 8, 9, 11), log("server.log", "13:03", "13:20")],
    ],
    ids=["the log writes little", "only one hour before", "only one hour after"],
)
def test_an_hour_is_not_called_missing_on_little_evidence(files):
    assert found(*files, log("controller.log", "08:00", "10:30", kind="controller_log")) == []


def test_each_missing_hour_wants_its_own_sign_of_life():
    files = [*hourly("server.log", 6, 7, 10, 11), log("server.log", "12:03", "12:20")]
    assert found(*files, log("controller.log", "06:00", "08:30", kind="controller_log")) == []
    both = [log(f"controller.log.{DAY}-{h:02}", f"{h:02}:10", f"{h:02}:30", kind="controller_log") for h in (8, 9)]
    live = log("controller.log", "10:30", "10:40", kind="controller_log")
    assert found(*files, *both, live) == [("server_log", "missing_period", "08:00", "10:00")]


def test_the_local_zone_tells_which_hour_a_name_means():
    def berlin(base: str, hour: int, kind: str = "server_log") -> LogFile:
        name = f"{base}.{DAY}-{hour + 1:02}"
        return log(name, f"{hour:02}:05", f"{hour:02}:50", kind=kind, time_zone="Europe/Berlin")

    files = [berlin("server.log", hour) for hour in (8, 9, 11, 12)]
    live = log("server.log", "13:03", "13:20", time_zone="Europe/Berlin")
    spoken = berlin("controller.log", 10, "controller_log")
    controller = log("controller.log", "11:30", "11:31", kind="controller_log", time_zone="Europe/Berlin")
    assert found(*files, live, spoken, controller) == [("server_log", "missing_period", "10:00", "11:00")]


def test_names_that_do_not_fit_the_lines_prove_nothing():
    # logrotate's names are of the instant of the rotation, one period late
    late = [log(f"server.log.{DAY}-{h + 1:02}", f"{h:02}:05", f"{h:02}:50") for h in (8, 9, 11, 12)]
    assert found(*late, log("controller.log", "08:00", "10:30", kind="controller_log")) == []


def test_a_line_a_moment_late_does_not_spoil_its_name():
    files = hourly("server.log", 8, 9)
    files[1] = replace(files[1], last=at("10:00") + 400_000)
    assert found(*files, log("controller.log", "08:00", "12:30", kind="controller_log")) == [
        ("server_log", "no_later_file", "10:00", "12:30")
    ]


def test_a_rolled_file_proves_a_later_one():
    controller = log("controller.log", "08:00", "12:30", kind="controller_log")
    assert found(*hourly("server.log", 8, 9), controller) == [("server_log", "no_later_file", "10:00", "12:30")]


@pytest.mark.parametrize(
    "other",
    [
        log("server.log", "10:03", "10:04"),
        unread("server.log", "empty"),
        log("kafkaServer.out", "07:00", "12:00"),
        unread(f"server.log.{DAY}-12", "empty"),
    ],
    ids=["the log itself", "the log itself, empty", "the same lines under another name", "a later file, empty"],
)
def test_nothing_is_missing_after_a_rolled_file_where_a_later_one_is_there(other):
    controller = log("controller.log", "08:00", "12:30", kind="controller_log")
    assert found(*hourly("server.log", 8, 9), controller, other) == []


def test_a_rolled_file_is_no_gap_where_the_evidence_ends_with_it():
    controller = log("controller.log", "08:00", "09:30", kind="controller_log")
    assert found(*hourly("server.log", 8, 9), controller) == []


def test_days_are_rolled_by_more_tools_than_log4j_and_prove_no_later_file():
    controller = log("controller.log", "08:00", "30:30", kind="controller_log")
    assert found(log(f"server.log.{DAY}", "08:00", "23:00"), controller) == []


def test_a_file_that_could_not_be_read_is_a_gap_of_its_hour():
    live = log("server.log", "11:03", "11:20")
    assert found(*hourly("server.log", 8, 9), unread(f"server.log.{DAY}-10"), live) == [
        ("server_log", "unread_file", "10:00", "11:00")
    ]
    assert found(*hourly("server.log", 8, 9), unread(f"server.log.{DAY}-10", "empty"), live) == []


def test_a_number_between_two_others_that_is_not_there_is_a_gap():
    files = [log("server.log", "12:00", "12:30"), log("server.log.1", "11:00", "11:59")]
    files.append(log("server.log.3", "9:00", "9:59"))
    assert found(*files) == [("server_log", "missing_number", "09:59", "11:00")]
    assert found(*files, log("server.log.2", "10:00", "10:59")) == []
    assert found(*files, unread("server.log.2")) == [("server_log", "unread_file", "09:59", "11:00")]


def test_the_log_itself_counts_as_number_zero():
    files = [log("server.log", "12:00", "12:30"), log("server.log.2", "10:00", "10:59")]
    assert found(*files) == [("server_log", "missing_number", "10:59", "12:00")]


def test_numbers_of_another_direction_or_of_two_copies_prove_nothing():
    assert found(log("server.log.1", "9:00", "9:59"), log("server.log.3", "11:00", "11:59")) == []
    twice = [log("server.log.1", "12:00", "12:30"), log("server.log.1", "11:00", "11:30")]
    assert found(*twice, log("server.log.3", "9:00", "9:59")) == []


def test_a_gap_by_numbers_is_none_where_another_copy_has_the_lines():
    files = [log("server.log", "12:00", "12:30"), log("server.log.2", "10:00", "10:59")]
    copy = replace(log("server.log", "11:05", "11:50"), source_file="old.tar.gz!kafka/server.log")
    assert found(*files, copy) == []


def test_the_gap_names_the_file_before_it():
    [gap] = gaps([log("server.log", "12:00", "12:30"), log("server.log.2", "10:00", "10:59")], LOG_KINDS)
    assert gap == Gap("server_log", "broker-1/logs/server.log.2", at("10:59"), at("12:00"), "missing_number")


def test_two_logs_of_unlike_names_say_nothing_of_one_another():
    assert found(log("previous.log", "08:00", "09:00"), log("current.log", "14:00", "15:00")) == []
