"""Between which files of a log there is no other, by their names (log4j's DailyRollingFileAppender)."""

from __future__ import annotations

from datetime import datetime, timedelta

from ingest.readers.logs.times import zone
from reconstruct.offsets.bound_steps import EVER_AFTER
from reconstruct.offsets.spark.context import covered_spans, with_runs
from reconstruct.time.instants import to_micros
from reconstruct.time.log_names import RolledFile, runs_of_files

S = 1_000_000
DAY = "2026-11-21"


def at(text: str, zone_name: str = "UTC") -> int:
    return to_micros(datetime.fromisoformat(text).replace(tzinfo=zone(zone_name)))


def file(name: str, first: str, last: str, time_zone: str | None = "UTC") -> RolledFile:
    instants = (at(f"{DAY} {text}", time_zone or "UTC") for text in (first, last))
    return RolledFile(name, f"logs/{name}", *instants, time_zone)


def rolled(hour: int, minutes: str = "10:20", base: str = "server.log", time_zone: str | None = "UTC") -> RolledFile:
    first, last = minutes.split(":")
    return file(f"{base}.{DAY}-{hour:02}", f"{hour:02}:{first}", f"{hour:02}:{last}", time_zone)


def test_hours_that_follow_each_other_have_no_file_between() -> None:
    files = [rolled(hour) for hour in (8, 5, 4, 3)]
    assert runs_of_files(files) == [[f"server.log.{DAY}-0{hour}" for hour in (3, 4, 5)]]


def test_the_log_itself_comes_after_the_hour_before_its_first_line() -> None:
    assert runs_of_files([rolled(3), file("server.log", "04:10", "06:30")]) == [[f"server.log.{DAY}-03", "server.log"]]
    assert runs_of_files([rolled(3), file("server.log", "05:10", "06:30")]) == []
    assert runs_of_files([rolled(3), file("server.log.1", "04:10", "04:30")]) == []


def test_hours_are_those_of_the_broker_s_clock() -> None:
    files = [rolled(3, time_zone="Asia/Kolkata"), file("server.log", "04:40", "05:50", "Asia/Kolkata")]
    assert [len(run) for run in runs_of_files(files)] == [2]
    assert runs_of_files([rolled(3, time_zone=None), rolled(4, time_zone=None)]) == []


def test_an_event_of_the_old_hour_may_be_the_first_of_the_new_one() -> None:
    late = RolledFile("late", f"server.log.{DAY}-04", at(f"{DAY} 04:00") - S // 2, at(f"{DAY} 04:30"), "UTC")
    assert runs_of_files([rolled(3), late]) == [[f"server.log.{DAY}-03", "late"]]


def test_a_log_named_by_another_rule_has_no_runs() -> None:
    moved = RolledFile("moved", f"server.log.{DAY}-04", at(f"{DAY} 03:10"), at(f"{DAY} 03:20"), "UTC")
    assert runs_of_files([rolled(5), rolled(6), moved]) == []
    assert [
        len(run) for run in runs_of_files([*map(rolled, (5, 6)), moved, *(rolled(h, base="b") for h in (1, 2))])
    ] == [2]


def test_files_of_other_logs_and_copies_of_an_hour() -> None:
    copy = RolledFile("copy", f"backup/server.log.{DAY}-03.gz", at(f"{DAY} 03:10"), at(f"{DAY} 03:20"), "UTC")
    assert runs_of_files([rolled(3), rolled(4, base="kafkaServer.out"), copy]) == [[f"server.log.{DAY}-03", "copy"]]


def test_days_follow_each_other_too() -> None:
    days = [
        RolledFile(day, f"server.log.{day}", at(f"{day} 01:00"), at(f"{day} 02:00"), "UTC")
        for day in ("2026-11-21", "2026-11-22", "2026-11-24")
    ]
    assert runs_of_files(days) == [["2026-11-21", "2026-11-22"]]


def test_what_a_silent_log_covers_is_known_by_the_names_of_its_files() -> None:
    """A file of the run may have no event; of other brokers, and of files that are none of a run, nothing is joined."""
    hours = [rolled(hour) for hour in (3, 4, 5, 8)]
    spans = [
        {"broker_id": 1, "file_id": one.file_id, "first_us": one.first, "last_us": one.last}
        for one in hours
        if not one.file_id.endswith("-04")
    ]
    logs = [{"broker_id": 1, **{name: getattr(one, name) for name in RolledFile.__dataclass_fields__}} for one in hours]

    def covered(logs: list[dict[str, object]]) -> list[tuple[int, int]]:
        own = [row for row in with_runs(spans, logs) if row["broker_id"] == 1]
        return covered_spans([(row["first_us"], row["last_us"]) for row in own], [])

    hour = int(timedelta(hours=1) / timedelta(microseconds=1))
    begin = hours[0].first
    assert covered(logs) == [(begin, hours[2].last), (hours[3].first, EVER_AFTER)]
    assert covered([row | {"broker_id": 2} for row in logs])[:2] == [
        (begin, hours[0].last),
        (begin + 2 * hour, hours[2].last),
    ]
