"""A second look at findings: each explanation that needs no broken rule, where it is possible and where it is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from reconstruct.findings.alternatives import (
    ALTERNATIVES,
    EvidenceRecord,
    FoundDivergence,
    HandWrite,
    LogDirs,
    LogEnd,
    LoggedHour,
    StatedCluster,
    Surroundings,
    possible_alternatives,
    surroundings,
)
from reconstruct.findings.log_files import RECREATION_US, LogFile
from reconstruct.time.instants import to_micros

HOUR = 3600 * 1_000_000
OCTOBER, APRIL = 447_000 * HOUR, 451_400 * HOUR


def record(
    at: int | None, kind: str = "state_change_log", broker: int | None = 1, folder: str = "a/"
) -> EvidenceRecord:
    return EvidenceRecord("id", kind, broker, folder, at)


ANY = FoundDivergence("id", "error")


def names(*records: EvidenceRecord, around: Surroundings, finding: FoundDivergence = ANY) -> list[str]:
    return [alternative.name for alternative, _ in possible_alternatives(finding, records, around)]


def hours(*begins: int, count: int = 3) -> list[LoggedHour]:
    return [LoggedHour(begin + hour * HOUR) for begin in begins for hour in range(count)]


class TestSilence:
    around = surroundings(hours(OCTOBER, APRIL), [])

    def test_evidence_from_both_sides_of_months_without_a_line_may_be_of_two_clusters(self) -> None:
        assert names(record(OCTOBER), record(APRIL), around=self.around) == ["created_again_in_a_silence"]
        ((_, sentence),) = possible_alternatives(ANY, [record(OCTOBER), record(APRIL)], self.around)
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


class TestHoursRolledAway:
    """A folder whose state-change log has a line of twelve o'clock in the file of ten o'clock."""

    since = to_micros(datetime(2019, 7, 1, 10, 5, tzinfo=UTC))
    ten = LogFile("state_change_log", None, "a/", since, since + 2 * HOUR, "a/state-change.log.2019-07-01-10", "UTC")
    later = LogFile("state_change_log", None, "a/", since + 5 * HOUR, since + 6 * HOUR, "a/state-change.log", "UTC")
    other = LogFile("controller_log", None, "a/", since, since + 6 * HOUR, "a/controller.log", "UTC")

    def found(self, *records: EvidenceRecord, ten: LogFile = ten, others: Sequence[LogFile] = (later,)) -> list[str]:
        return names(*records, around=surroundings([], [ten, *others]))

    def test_what_two_files_hold_may_be_of_two_clusters_and_is_info(self) -> None:
        apart = [record(self.since), record(self.since + 5 * HOUR)]
        assert self.found(*apart) == ["hours_rolled_away"]
        ((alternative, sentence),) = possible_alternatives(ANY, apart, surroundings([], [self.ten, self.later]))
        assert alternative.at_most == "info"
        assert "from 2019-07-01 10:05:00.000 UTC to 2019-07-01 15:05:00.000 UTC" in sentence

    def test_what_one_file_holds_is_of_one_cluster(self) -> None:
        assert self.found(record(self.since), record(self.since + 2 * HOUR)) == []
        apart = record(self.since), record(self.since + 5 * HOUR)
        assert self.found(*apart, others=(self.later, self.other)) == []

    def test_starts_state_their_cluster_themselves(self) -> None:
        wiped = FoundDivergence("id", "error", "R37", "log_directory_wiped", 1, at=self.since + 5 * HOUR)
        apart = [record(self.since), record(self.since + 5 * HOUR)]
        assert names(*apart, around=surroundings([], [self.ten, self.later]), finding=wiped) == []

    def test_so_is_what_lies_seconds_apart(self) -> None:
        assert self.found(record(self.since + 3 * HOUR), record(self.since + 3 * HOUR + RECREATION_US)) == []

    def test_a_log_whose_every_file_ends_with_its_hour_is_one_process_s(self) -> None:
        alone = replace(self.ten, last_at=self.since + HOUR // 2)
        assert self.found(record(self.since), record(self.since + 5 * HOUR), ten=alone) == []

    def test_files_named_after_the_time_at_which_they_were_moved_show_nothing(self) -> None:
        moved = replace(self.ten, first_at=self.since - HOUR)
        assert self.found(record(self.since), record(self.since + 5 * HOUR), ten=moved) == []

    def test_a_log_that_only_one_process_writes_in_that_folder_is_judged_as_ever(self) -> None:
        apart = [record(self.since, kind="controller_log"), record(self.since + 5 * HOUR, kind="controller_log")]
        assert self.found(*apart) == []
        assert self.found(record(self.since, folder="b/"), record(self.since + 5 * HOUR, folder="b/")) == []


class TestUndatedCopy:
    conflict = FoundDivergence("id", "error", "R36", "epoch_lineage_conflict", topic="t", partition_id=0)
    nothing = surroundings([], [])
    copy = record(None, "leader_epoch_checkpoint")

    def test_held_against_a_line_a_copy_of_which_nothing_says_when_it_was_made_accuses_nobody(self) -> None:
        found = names(record(0), self.copy, around=self.nothing, finding=self.conflict)
        assert found == ["copy_without_a_time"]
        dated = record(1, "leader_epoch_checkpoint")
        assert names(record(0), dated, around=self.nothing, finding=self.conflict) == []

    def test_two_copies_of_two_brokers_are_held_against_each_other(self) -> None:
        other = record(None, "leader_epoch_checkpoint", broker=2)
        assert names(self.copy, other, around=self.nothing, finding=self.conflict) == ["copy_without_a_time"]

    def test_what_one_copy_says_against_itself_has_no_age(self) -> None:
        assert names(self.copy, self.copy, around=self.nothing, finding=self.conflict) == []

    def test_a_loss_rests_on_where_an_epoch_began_which_no_later_copy_moves(self) -> None:
        lost = replace(self.conflict, rule_id="R35", divergence_type="committed_records_lost")
        assert names(record(0), self.copy, around=self.nothing, finding=lost) == []


class TestHandOnZnodes:
    decreased = FoundDivergence("id", "error", "R01", "leader_epoch_decreased", None, "t", "i", 3, OCTOBER)

    @pytest.mark.parametrize("path", ["/brokers/topics/t/partitions/3/state", "/brokers/topics/t", "/controller_epoch"])
    def test_a_write_by_a_session_that_is_no_broker_s_is_an_operator_s(self, path: str) -> None:
        around = surroundings([], [], [HandWrite(path, OCTOBER)])
        assert names(around=around, finding=self.decreased) == ["znodes_changed_by_hand"]
        ((_, sentence),) = possible_alternatives(self.decreased, [], around)
        assert sentence.startswith(f"{path} was written or deleted at 2020-12-29")

    @pytest.mark.parametrize(
        "write",
        [
            HandWrite("/brokers/topics/t/partitions/4/state", OCTOBER),
            HandWrite("/brokers/topics/u/partitions/3/state", OCTOBER),
            HandWrite("/controller_epoch", OCTOBER + HOUR),
            HandWrite("/controller_epoch", OCTOBER - HOUR),
        ],
    )
    def test_another_znode_or_another_time_explains_nothing(self, write: HandWrite) -> None:
        assert names(around=surroundings([], [], [write]), finding=self.decreased) == []

    def test_a_write_between_the_records_of_the_evidence_counts(self) -> None:
        around = surroundings([], [], [HandWrite("/controller_epoch", OCTOBER - HOUR)])
        assert names(record(OCTOBER - 2 * HOUR), around=around, finding=self.decreased) == ["znodes_changed_by_hand"]


class TestOtherLogDirs:
    wiped = FoundDivergence("id", "error", "R37", "log_directory_wiped", 1, at=HOUR)

    @staticmethod
    def around(*given: tuple[int, str], broker: int = 1) -> Surroundings:
        return surroundings([], [], [], [LogDirs(broker, at, dirs) for at, dirs in given])

    def test_a_broker_that_was_given_other_log_dirs_lost_nothing(self) -> None:
        around = self.around((HOUR + 1_000_000, "/new"), (0, "/old"))
        ((alternative, sentence),) = possible_alternatives(self.wiped, [], around)
        assert alternative.name == "other_log_dirs"
        assert "log.dirs=/new, and with log.dirs=/old before" in sentence

    def test_a_configuration_that_is_printed_before_the_start_is_the_start_s(self) -> None:
        assert names(around=self.around((0, "/old"), (HOUR - 1_000_000, "/new")), finding=self.wiped) != []

    def test_log_dirs_that_stayed_or_are_not_known_explain_nothing(self) -> None:
        assert names(around=self.around((0, "/old"), (HOUR, "/old")), finding=self.wiped) == []
        assert names(around=self.around((0, "/old")), finding=self.wiped) == []
        assert names(around=self.around((HOUR, "/new")), finding=self.wiped) == []
        # changed later
        assert names(around=self.around((0, "/old"), (HOUR, "/old"), (2 * HOUR, "/new")), finding=self.wiped) == []
        assert names(around=self.around((0, "/old"), (HOUR, "/new"), broker=2), finding=self.wiped) == []

    def test_they_explain_nothing_else_than_what_directories_lack(self) -> None:
        other = replace(self.wiped, rule_id="R30", divergence_type="high_watermark_decreased")
        assert names(around=self.around((0, "/old"), (HOUR, "/new")), finding=other) == []

    def test_what_was_opened_is_another_though_the_configuration_is_the_same(self) -> None:
        """A path without its drive, or a relative one, is of the folder that Kafka was started in."""
        given = [LogDirs(1, at, "/tmp") for at in (0, HOUR)]
        opened = [LogDirs(1, at + 1, dirs, is_opened=True) for at, dirs in ((0, r"C:\tmp"), (HOUR, r"D:\tmp"))]
        ((alternative, sentence),) = possible_alternatives(self.wiped, [], surroundings([], [], [], given + opened))
        assert alternative.name == "other_log_dirs"
        assert r"log directories D:\tmp, and with log directories C:\tmp before" in sentence
        same = [replace(one, log_dirs="/tmp") for one in opened]
        assert names(around=surroundings([], [], [], given + same), finding=self.wiped) == []
        # what was configured is not held against what was opened
        assert names(around=surroundings([], [], [], [given[0], opened[1]]), finding=self.wiped) == []


class TestStartOfAnotherCluster:
    wiped = TestOtherLogDirs.wiped

    @staticmethod
    def around(*stated: tuple[int, str], broker: int = 1) -> Surroundings:
        return surroundings([], [], stated=[StatedCluster(broker, at, cluster) for at, cluster in stated])

    def test_a_process_that_states_another_id_is_of_another_cluster(self) -> None:
        around = self.around((0, "one"), (HOUR + 1, "other"), (2 * HOUR, "one"))
        ((alternative, sentence),) = possible_alternatives(self.wiped, [], around)
        assert alternative.name == "start_of_another_cluster"
        assert sentence.startswith("it stated the cluster id other when it started, and one before")

    def test_an_id_that_stayed_or_is_not_known_explains_nothing(self) -> None:
        assert names(around=self.around((0, "one"), (HOUR, "one"), (2 * HOUR, "other")), finding=self.wiped) == []
        assert names(around=self.around((HOUR, "other")), finding=self.wiped) == []
        # of a later process
        assert names(around=self.around((0, "one"), (HOUR + 60_000_001, "other")), finding=self.wiped) == []
        assert names(around=self.around((0, "one"), (HOUR, "other"), broker=2), finding=self.wiped) == []

    def test_it_explains_nothing_else_than_what_directories_lack(self) -> None:
        other = replace(self.wiped, rule_id="R30", divergence_type="high_watermark_decreased")
        assert names(around=self.around((0, "one"), (HOUR, "other")), finding=other) == []


class TestLogsThatShrank:
    lost = FoundDivergence("id", "error", "R35", "committed_records_lost", 2, "t", "i", 0, 3 * HOUR)

    @staticmethod
    def around(*ends: int | None, broker: int = 1, incarnation: str = "i") -> Surroundings:
        return surroundings(
            [], [], [], [], [LogEnd(broker, "t", incarnation, 0, at * HOUR, end) for at, end in enumerate(ends)]
        )

    def test_a_log_that_was_made_anew_was_deleted_by_somebody(self) -> None:
        assert names(around=self.around(40, 0), finding=self.lost) == ["partition_directory_deleted"]

    def test_a_log_that_ends_lower_at_its_next_start_was_restored(self) -> None:
        ((alternative, sentence),) = possible_alternatives(self.lost, [], self.around(40, 30))
        assert alternative.name == "data_directory_restored"
        assert "broker 1 loaded the log up to 40" in sentence

    def test_a_log_that_grew_or_was_cut_by_the_broker_explains_nothing(self) -> None:
        assert names(around=self.around(30, 40), finding=self.lost) == []
        assert names(around=self.around(40, None, 30), finding=self.lost) == []
        assert names(around=self.around(40, None, 0), finding=self.lost) == []

    def test_another_topic_of_that_name_or_a_later_start_explains_nothing(self) -> None:
        assert names(around=self.around(40, 30, incarnation="j"), finding=self.lost) == []
        assert names(around=self.around(40, 40, 40, 40, 40, 30), finding=self.lost) == []

    def test_the_rule_that_says_so_itself_is_not_explained_by_it(self) -> None:
        wiped = replace(self.lost, rule_id="R37", divergence_type="checkpoint_beyond_log")
        assert names(around=self.around(40, 30), finding=wiped) == []


def test_all_that_is_possible_is_named() -> None:
    around = surroundings(hours(OCTOBER, APRIL), [])
    conflict = FoundDivergence("id", "error", "R36", "epoch_lineage_conflict")
    found = names(
        record(OCTOBER), record(APRIL), record(None, "leader_epoch_checkpoint"), around=around, finding=conflict
    )
    assert found == ["created_again_in_a_silence", "copy_without_a_time"]
    assert len({alternative.name for alternative in ALTERNATIVES}) == len(ALTERNATIVES)
