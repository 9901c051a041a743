"""Times as logs print them."""

from __future__ import annotations

import pytest

from ingest.readers.logs.times import NO_CALENDAR, NO_DATE, LogClock, date_in_name, prints_zone

SECOND = 1_614_676_364_000_000


@pytest.mark.parametrize(
    ("text", "zone", "utc_micros"),
    [
        ("1970-01-01 00:00:01,002", "UTC", 1_002_000),
        ("1970-01-01T00:00:01.000002Z", "Europe/Berlin", 1_000_002),
        ("1970-01-01 01:00:01,500", "+01:00", 1_500_000),
        ("1970-01-01 00:00:01+0100", "UTC", -3_599_000_000),
        ("1970-01-01 00:00:01+01", "UTC", -3_599_000_000),
        ("1970-01-01 00:00:01.5 UTC", "Europe/Berlin", 1_500_000),
        ("1970-01-01 02:00:01,000 CEST", "UTC", 1_000_000),
        ("2026-07-01 02:00:00,000", "Europe/Berlin", 1_782_864_000_000_000),
        ("1970-01-01 00:00:01,123456789", "UTC", 1_123_456),
        ("1970-01-01T00:00:01.12Z", "UTC", 1_120_000),
        ("1970-13-01 00:00:01,002", "UTC", None),
        ("1970-01-01 00:00:01,002 XYZ", "UTC", None),
        ("2021/03/02 09:12:44.001", "UTC", SECOND + 1000),
        ("02 Mar 2021 09:12:44,001", "UTC", SECOND + 1000),
        ("02 Foo 2021 09:12:44,001", "UTC", None),
        ("02.03.2021 09:12:44,001", "UTC", SECOND + 1000),
        ("20210302T091244,001", "UTC", SECOND + 1000),
        ("20210302091244001", "UTC", SECOND + 1000),
        ("1614676364", "Europe/Berlin", SECOND),
        ("1614676364.001", "UTC", SECOND + 1000),
        ("1614676364001", "UTC", SECOND + 1000),
        ("1614676364001002", "UTC", SECOND + 1002),
        ("1614676364001002003", "UTC", SECOND + 1002),
        ("2564-03-02 09:12:44,001", "UTC", SECOND + 1000),  # of the Buddhist calendar
        ("2567-02-29 00:00:00,000", "UTC", 1_709_164_800_000_000),
        ("", "UTC", None),
        ("yesterday", "UTC", None),
    ],
)
def test_times_become_instants(text: str, zone: str, utc_micros: int | None) -> None:
    clock = LogClock(zone)
    assert [clock.micros(text), clock.micros(text)] == [utc_micros, utc_micros]


def test_a_time_of_the_usual_length_with_a_zone_is_no_local_one() -> None:
    clock = LogClock("UTC")
    assert clock.micros("1970-01-01T00:00:01,002") == 1_002_000
    assert clock.micros("1970-01-01T00:00:01.12Z") == 1_120_000


def test_a_time_without_a_day_needs_one() -> None:
    assert LogClock("UTC", "1970-01-02").micros("00:00:01,002") == 86_401_002_000
    assert LogClock("UTC").micros("00:00:01,002") is None
    assert LogClock("UTC").problem("00:00:01,002") == NO_DATE
    assert LogClock("UTC").problem("2026-02-30 00:00:01,002") == NO_CALENDAR
    assert LogClock("UTC").problem("2026-02-20 00:00:01,002") is None


@pytest.mark.parametrize(
    ("name", "date"),
    [
        ("a/server.log.2024-03-11-10", "2024-03-11"),
        ("a/server.log.2024-03-11", "2024-03-11"),
        ("a.tar.gz!b/server.log.2024-03-11-10.gz", "2024-03-11"),
        ("server-2024-03-11-1.log.gz", "2024-03-11"),
        ("server.2024-03-11.log", "2024-03-11"),
        ("server.log-20240311", None),
        ("2024-03-11/server.log", None),
        ("incident-2024-03-11.tar!server.log", None),
        ("server.log", None),
    ],
)
def test_the_day_is_that_of_a_rotated_name(name: str, date: str | None) -> None:
    assert date_in_name(name) == date


def test_times_that_are_a_little_out_of_order_begin_no_second_pass() -> None:
    clock = LogClock("Europe/Berlin")
    texts = ["2024-10-27 02:10:00,500", "2024-10-27 02:09:59,900", "2024-10-27 02:10:01,000"]
    first = [clock.micros(text) for text in texts]
    assert first == [LogClock("+02:00").micros(text) for text in texts]


def test_a_zone_that_does_not_exist_is_named() -> None:
    with pytest.raises(ValueError, match="Mars/Base is no time zone"):
        LogClock("Mars/Base")


def test_zones_that_are_printed_are_seen() -> None:
    assert prints_zone("2024-01-01T00:00:00Z")
    assert prints_zone("1614676364001")
    assert not prints_zone("2024-01-01 00:00:00,000")
    assert not prints_zone("00:00:00,000")
