"""A second look at findings: each explanation that needs no broken rule, where it is possible and where it is not."""

from __future__ import annotations

from reconstruct.findings.alternatives import (
    ALTERNATIVES,
    EvidenceRecord,
    LogFile,
    LoggedHour,
    Surroundings,
    possible_alternatives,
    surroundings,
)

HOUR = 3600 * 1_000_000
OCTOBER, APRIL = 447_000 * HOUR, 451_400 * HOUR


def record(
    at: int | None, kind: str = "state_change_log", broker: int | None = 1, folder: str = "a/"
) -> EvidenceRecord:
    return EvidenceRecord("id", kind, broker, folder, at)


def names(*records: EvidenceRecord, around: Surroundings) -> list[str]:
    return [alternative.name for alternative, _ in possible_alternatives(records, around)]


def hours(*begins: int, count: int = 3) -> list[LoggedHour]:
    return [LoggedHour(begin + hour * HOUR) for begin in begins for hour in range(count)]


class TestSilence:
    around = surroundings(hours(OCTOBER, APRIL), [])

    def test_evidence_from_both_sides_of_months_without_a_line_may_be_of_two_clusters(self) -> None:
        assert names(record(OCTOBER), record(APRIL), around=self.around) == ["created_again_in_a_silence"]
        ((_, sentence),) = possible_alternatives([record(OCTOBER), record(APRIL)], self.around)
        assert "from 2020-12-29 03:00:00.000 UTC to 2021-06-30 08:00:00.000 UTC" in sentence

    def test_evidence_of_one_side_is_judged_as_ever(self) -> None:
        assert names(record(APRIL), record(APRIL + 2 * HOUR), around=self.around) == []

    def test_a_quiet_day_is_no_silence(self) -> None:
        assert surroundings(hours(OCTOBER, OCTOBER + 26 * HOUR), []).silences == ()
        assert len(surroundings(hours(OCTOBER, OCTOBER + 28 * HOUR), []).silences) == 1


class TestTwoFolders:
    @staticmethod
    def around(begin: int) -> Surroundings:
        one = LogFile("state_change_log", 1, "a/", 0, 5 * HOUR)
        return surroundings([], [one, LogFile("state_change_log", 1, "b/", begin, begin + 5 * HOUR)])

    def test_two_folders_with_logs_of_one_broker_for_one_time_may_be_two_clusters(self) -> None:
        around = self.around(HOUR)
        assert names(record(0), record(1, folder="b/"), around=around) == ["logs_of_another_cluster"]

    def test_what_one_folder_shows_alone_is_judged_as_ever(self) -> None:
        around = self.around(HOUR)
        assert names(record(0), record(1), around=around) == []
        assert names(record(0), record(1, broker=2, folder="b/"), around=around) == []
        assert names(record(0), record(1, kind="controller_log", folder="b/"), around=around) == []

    def test_folders_of_which_nothing_says_the_broker_may_be_two_brokers(self) -> None:
        files = [LogFile("state_change_log", None, folder, 0, 5 * HOUR) for folder in ("a/", "b/")]
        around = surroundings([], files)
        assert names(record(0, broker=None), record(1, broker=None, folder="b/"), around=around) == []

    def test_hourly_logs_are_held_against_each_folder_once(self) -> None:
        files = [
            LogFile("state_change_log", 1, folder, hour * HOUR, (hour + 1) * HOUR)
            for folder, hours_ in (("a/", range(0, 9, 2)), ("b/", range(1, 9, 2)), ("c/", [6]))
            for hour in hours_
        ]
        assert surroundings([], files).twins == {("state_change_log", 1, "a/", "c/")}

    def test_logs_that_were_moved_to_another_folder_are_one_broker_s(self) -> None:
        assert names(record(0), record(1, folder="b/"), around=self.around(5 * HOUR)) == []


def test_a_copy_of_which_nothing_says_when_it_was_made_accuses_nobody() -> None:
    nothing = surroundings([], [])
    copy = record(None, "leader_epoch_checkpoint")
    assert names(record(0), copy, around=nothing) == ["copy_without_a_time"]
    assert names(record(0), record(1, "leader_epoch_checkpoint"), around=nothing) == []


def test_all_that_is_possible_is_named() -> None:
    around = surroundings(hours(OCTOBER, APRIL), [])
    found = names(record(OCTOBER), record(APRIL), record(None), around=around)
    assert found == ["created_again_in_a_silence", "copy_without_a_time"]
    assert len({alternative.name for alternative in ALTERNATIVES}) == len(ALTERNATIVES)
