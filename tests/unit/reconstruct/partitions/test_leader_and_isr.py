"""The decided leader and ISR from every kind of source, and what must not be believed."""

from __future__ import annotations

import random

from reconstruct.model.versions import VersionRange, v
from reconstruct.partitions.leader_and_isr import reconstruct_leader_and_isr
from reconstruct.time.intervals import close_intervals
from tests.support.loops import for_each
from tests.unit.reconstruct.partitions.tables import facts, shown

OLD = VersionRange.exactly(v(0, 8, 2, 2))
MIDDLE = VersionRange.exactly(v(1, 1, 1))
NEW = VersionRange.exactly(v(3, 9, 1))


def states(table: str, version: VersionRange = OLD) -> list[str]:
    history = reconstruct_leader_and_isr(facts(table), version)
    return [shown(interval.value) for interval in close_intervals(history.changes)]


def test_a_request_shows_the_state_that_its_controller_decided() -> None:
    assert states(
        """
        at | kind                | broker | by | cepoch | leader | epoch | isr
        10 | leader_and_isr_sent | 1      | 1  | 1      | 1      | 0     | 1,2
        20 | leader_and_isr_sent | 1      | 1  | 1      | 2      | 1     | 2
        """
    ) == ["1/0 [1, 2]", "2/1 [2]"]


def test_an_isr_change_of_the_leader_is_known_from_its_own_log_alone() -> None:
    history = reconstruct_leader_and_isr(
        facts(
            """
            at | kind                | broker | by | cepoch | leader | epoch | isr | old_isr | source
            10 | leader_and_isr_sent | 1      | 1  | 1      | 1      | 0     | 1,2 |         | state_change_log
            20 | isr_shrink_proposed | 1      |    |        |        |       | 1   | 1,2     | server_log
            """
        ),
        OLD,
    )
    shrunk = close_intervals(history.changes)[-1]
    assert shown(shrunk.value) == "1/0 [1]"
    assert (shrunk.value.written_by, shrunk.inferred_from, shrunk.start) == ("leader", "isr_proposal", 20_000)


def test_a_proposal_that_failed_is_no_state() -> None:
    assert states(
        """
        at | kind                | broker | by | cepoch | leader | epoch | isr   | old_isr | source
        10 | leader_and_isr_sent | 1      | 1  | 1      | 2      | 0     | 2,3,1 |         | state_change_log
        20 | isr_shrink_proposed | 2      |    |        |        |       | 2     | 2,3,1   | server_log
        21 | isr_update_failed   | 2      |    |        |        |       |       |         | server_log
        """
    ) == ["2/0 [2, 3, 1]"]


def test_a_proposal_is_refused_in_the_epoch_it_was_made_in_though_the_controller_decided_another_meanwhile() -> None:
    """kill-0.8.2.2: the broker hears of epoch 1 when its write has failed because of it."""
    assert states(
        """
        at | kind                    | broker | by | cepoch | leader | epoch | isr   | old_isr | source
        10 | leader_and_isr_sent     | 1      | 1  | 1      | 3      | 0     | 3,1,2 |         | state_change_log
        11 | leader_and_isr_received | 3      | 1  | 1      | 3      | 0     | 3,1,2 |         | state_change_log
        20 | isr_shrink_proposed     | 3      |    |        |        |       | 3     | 3,1,2   | server_log
        24 | leader_and_isr_sent     | 2      | 2  | 1      | 3      | 1     | 3,2   |         | state_change_log
        26 | isr_update_failed       | 3      |    |        |        |       |       |         | server_log
        31 | leader_and_isr_received | 3      | 2  | 1      | 3      | 1     | 3,2   |         | state_change_log
        """
    ) == ["3/0 [3, 1, 2]", "3/1 [3, 2]"]


def test_a_proposal_of_a_deposed_leader_is_no_state() -> None:
    assert states(
        """
        at | kind                | broker | by | cepoch | leader | epoch | isr   | old_isr | source
        10 | leader_and_isr_sent | 1      | 1  | 1      | 2      | 0     | 2,3   |         | state_change_log
        20 | leader_and_isr_sent | 1      | 1  | 1      | 3      | 1     | 3     |         | state_change_log
        30 | isr_shrink_proposed | 2      |    |        |        |       | 2     | 2,3     | server_log
        """
    ) == ["2/0 [2, 3]", "3/1 [3]"]


def test_a_proposal_without_its_commit_is_no_state_where_commits_are_logged() -> None:
    assert states(
        """
        at | kind                 | broker | leader | epoch | isr | old_isr | version | role   | source
        10 | leader_epoch_started | 1      |        | 0     | 1,2 |         | 0       | leader | state_change_log
        20 | isr_shrink_proposed  | 1      |        |       | 1   | 1,2     |         |        | server_log
        """,
        NEW,
    ) == ["1/0 [1, 2]"]


def test_a_retried_proposal_counts_once() -> None:
    assert states(
        """
        at | kind                | broker | by | cepoch | leader | epoch | isr   | old_isr | source
        10 | leader_and_isr_sent | 1      | 1  | 1      | 1      | 0     | 1,3   |         | state_change_log
        20 | isr_expand_proposed | 1      |    |        |        |       | 1,3,2 | 1,3     | server_log
        25 | isr_expand_proposed | 1      |    |        |        |       | 1,3,2 | 1,3     | server_log
        """
    ) == ["1/0 [1, 3]", "1/0 [1, 3, 2]"]


def test_the_same_isr_again_in_a_later_epoch_does_not_take_back_a_proposal() -> None:
    assert states(
        """
        at | kind                | broker | by | cepoch | leader | epoch | isr   | old_isr | source
        10 | leader_and_isr_sent | 1      | 1  | 1      | 1      | 0     | 1,3   |         | state_change_log
        20 | isr_expand_proposed | 1      |    |        |        |       | 1,3,2 | 1,3     | server_log
        30 | leader_and_isr_sent | 1      | 1  | 1      | 1      | 1     | 1,3   |         | state_change_log
        40 | isr_expand_proposed | 1      |    |        |        |       | 1,3,2 | 1,3     | server_log
        """
    ) == ["1/0 [1, 3]", "1/0 [1, 3, 2]", "1/1 [1, 3]", "1/1 [1, 3, 2]"]


def test_a_restatement_of_a_state_that_was_left_opens_nothing() -> None:
    # 0.8: nothing tells the controller that the leader changed the ISR
    assert states(
        """
        at | kind                 | broker | by | cepoch | leader | epoch | isr | old_isr | source
        10 | leader_and_isr_sent  | 1      | 1  | 1      | 3      | 1     | 3   |         | state_change_log
        20 | isr_expand_proposed  | 3      |    |        |        |       | 3,2 | 3       | server_log
        99 | update_metadata_sent | 1      | 1  | 1      | 3      | 1     | 3   |         | state_change_log
        99 | metadata_cached      | 2      | 1  | 1      | 3      | 1     | 3   |         | state_change_log
        """
    ) == ["3/1 [3]", "3/1 [3, 2]"]


def test_a_state_that_recurs_within_one_epoch_is_told_from_its_first_time() -> None:
    assert states(
        """
        at   | kind                | broker | by | cepoch | leader | epoch | isr   | old_isr | source
        1000 | leader_and_isr_sent | 1      | 1  | 1      | 3      | 1     | 3,1   |         | state_change_log
        3000 | isr_expand_proposed | 3      |    |        |        |       | 3,1,2 | 3,1     | server_log
        6000 | isr_shrink_proposed | 3      |    |        |        |       | 3,1   | 3,1,2   | server_log
        9000 | isr_expand_proposed | 3      |    |        |        |       | 3,1,2 | 3,1     | server_log
        """
    ) == ["3/1 [3, 1]", "3/1 [3, 1, 2]", "3/1 [3, 1]", "3/1 [3, 1, 2]"]


def test_a_stale_epoch_sent_after_a_reassignment_opens_nothing() -> None:
    # up to 2.2 the controller's cache keeps the epoch from before the reassignment
    assert states(
        """
        at | kind                             | broker | by | cepoch | leader | epoch | isr   | version
        10 | leader_and_isr_sent              | 1      | 1  | 1      | 1      | 0     | 1,2   | 0
        20 | reassignment_leader_and_isr_sent | 1      | 1  | 1      | 1      | 1     | 1,2   |
        30 | leader_and_isr_sent              | 1      | 1  | 1      | 1      | 0     | 1,2   | 0
        40 | leader_and_isr_received          | 3      | 1  | 1      | 1      | 0     | 1,2   | 0
        """,
        MIDDLE,
    ) == ["1/0 [1, 2]", "1/1 [1, 2]"]


def test_the_tombstone_of_a_deletion_is_no_state() -> None:
    assert states(
        """
        at | kind                 | broker | by | cepoch | leader | epoch | isr
        10 | leader_and_isr_sent  | 1      | 1  | 1      | 1      | 0     | 1,2
        20 | update_metadata_sent | 1      | 1  | 1      | -2     | 0     | 1,2
        """
    ) == ["1/0 [1, 2]"]


def test_versions_order_states_whatever_the_clocks_say() -> None:
    assert states(
        """
        at | kind                   | broker | by | cepoch | leader | epoch | isr   | version
        50 | partition_state_change | 1      | 1  | 1      | 1      | 0     | 1,2,3 | 0
        10 | isr_update_committed   | 1      |    |        |        |       | 1,2   | 1
        40 | metadata_cached        | 2      | 1  | 1      | 1      | 0     | 1     | 2
        """,
        NEW,
    ) == ["1/0 [1, 2, 3]", "1/0 [1, 2]", "1/0 [1]"]


def test_a_snapshot_gives_time_controller_epoch_and_version() -> None:
    history = reconstruct_leader_and_isr(
        facts(
            """
            at | kind                | broker | by | cepoch | stored_cepoch | leader | epoch | isr | version
            10 | znode_state         |        |    |        | 1             | 1      | 0     | 1,2 | 0
            12 | leader_and_isr_sent | 1      | 1  | 1      |               | 1      | 0     | 1,2 |
            30 | znode_state         |        |    |        | 1             | 1      | 0     | 1   | 1
            """
        ),
        OLD,
    )
    first, second = close_intervals(history.changes)
    assert (first.start, first.end, first.value.partition_epoch, first.value.controller_epoch) == (10_000, 30_000, 0, 1)
    assert first.evidence == ("e1", "e2")
    assert (second.value.written_by, second.inferred_from) == ("leader", None)


def test_offline_replicas_of_a_topic_in_deletion_shrink_the_isr_without_a_line() -> None:
    table = """
        at | kind                 | broker | by | cepoch | leader | epoch | isr | version | replica | from          | to
        10 | leader_and_isr_sent  | 1      | 1  | 1      | 1      | 0     | 1,2 | 0       |         |               |
        20 | replica_state_change | 1      | 1  | 1      |        |       |     |         | 2       | OnlineReplica | OfflineReplica
        30 | replica_state_change | 1      | 1  | 1      |        |       |     |         | 1       | OnlineReplica | OfflineReplica
        """  # noqa: E501
    assert states(table, MIDDLE) == ["1/0 [1, 2]", "1/1 [1]", "-1/2 [1]"]
    # before 1.1 whether the last member stays depends on a setting: nothing is claimed
    assert states(table, OLD) == ["1/0 [1, 2]", "1/1 [1]"]


@for_each(seed=range(20))
def test_the_order_of_the_input_changes_nothing(seed: int) -> None:
    rows = facts(
        """
        at   | kind                | broker | by | cepoch | leader | epoch | isr   | old_isr | version | source
        1000 | znode_state         |        |    |        | 1      | 0     | 1,2,3 |         | 0       | znode
        1000 | leader_and_isr_sent | 1      | 1  | 1      | 1      | 0     | 1,2,3 |         |         | state_change_log
        2000 | isr_shrink_proposed | 1      |    |        |        |       | 1     | 1,2,3   |         | server_log
        2003 | znode_state         |        |    |        | 1      | 0     | 1     |         | 1       | znode
        3000 | leader_and_isr_sent | 1      | 1  | 1      | 2      | 1     | 2     |         |         | state_change_log
        3001 | metadata_cached     | 3      | 1  | 1      | 2      | 1     | 2     |         |         | state_change_log
        """  # noqa: E501
    )
    expected = reconstruct_leader_and_isr(rows, OLD)
    random.Random(seed).shuffle(rows)
    assert reconstruct_leader_and_isr(rows, OLD) == expected


def test_what_a_quorum_s_controllers_log_of_changes_is_read_one_after_the_other() -> None:
    table = """
        at | kind              | epoch | leader | isr | version | source
        10 | partition_created | 0     | 1      | 1,2 | 0       | controller_log
        11 | partition_created | 0     | 1      | 1,2 | 0       | controller_log
        20 | partition_changed |       |        | 1   | 1       | controller_log
        30 | partition_changed | 1     | -1     | []  | 2       | controller_log
        50 | partition_changed | 3     | 2      | 2   | 5       | controller_log
        60 | partition_changed |       |        | 1,2 | 6       | controller_log
        70 | partition_changed |       |        | 1   | 9       | controller_log
        """
    history = reconstruct_leader_and_isr(facts(table), NEW)
    intervals = close_intervals(history.changes)
    assert [(shown(one.value), one.value.partition_epoch, one.start) for one in intervals] == [
        ("1/0 [1, 2]", 0, 10_000),
        ("1/0 [1]", 1, 20_000),
        ("-1/1 []", 2, 30_000),
        ("2/3 [2]", 5, 50_000),
        ("2/3 [1, 2]", 6, 60_000),
    ]  # nothing is known of version 8: what 9 left as it was is not known
    assert {one.inferred_from for one in intervals} == {"request_sent"}
    assert [one.value.written_by for one in intervals] == ["controller", None, "controller", None, None]


def test_what_a_broker_skips_it_had_learned_of() -> None:
    assert states(
        """
        at | kind                    | broker | role   | leader | epoch | isr | version
        10 | leader_epoch_started    | 1      | leader |        | 0     | 1,2 | 0
        20 | become_leader_skipped   | 1      |        | 1      | 0     | 1   | 1
        30 | become_follower_skipped | 2      |        | -1     | 1     | []  | 3
        """,
        NEW,
    ) == ["1/0 [1, 2]", "1/0 [1]", "-1/1 []"]


def test_records_that_a_controller_replays_of_a_deleted_topic_are_of_another() -> None:
    assert states(
        """
        at | kind                 | broker | role   | leader | epoch | isr | version | topic_id | source
        10 | leader_epoch_started | 1      | leader |        | 0     | 1,2 | 0       | new      | state_change_log
        20 | partition_created    |        |        | 3      | 0     | 3   | 0       | old      | controller_log
        21 | partition_changed    |        |        | 2      | 4     | 2   | 7       | old      | controller_log
        22 | partition_created    |        |        | 1      | 0     | 1,2 | 0       | new      | controller_log
        """,
        NEW,
    ) == ["1/0 [1, 2]"]
