"""Voters of a real quorum that were added and removed (KIP-853), by its control records alone."""

from __future__ import annotations

from reconstruct.quorum.timeline import quorum_timeline
from tests.support.metadata_log import VOTERS_CHANGED, cluster_log


def test_voters_that_join_and_leave_are_told_with_their_directories() -> None:
    log, _ = cluster_log([VOTERS_CHANGED])
    spans = quorum_timeline([], log)
    told = [(span.interval.value.began_by, span.interval.value.leader_id, span.interval.value.voters) for span in spans]
    assert told == [
        ("leader_elected", 102, (101, 102, 103)),
        ("voters_changed", 102, (101, 102, 103, 104)),
        ("voters_changed", 102, (101, 103, 104)),
        ("leader_elected", 101, (101, 103, 104)),
    ]
    assert {span.interval.value.kraft_version for span in spans} == {1}
    for span in spans:
        assert len(span.interval.value.voter_directory_ids or ()) == len(span.interval.value.voters or ())
    assert [span.leadership_end.end_reason for span in spans] == [None, None, "removed", None]
    assert log.voters == {101, 103, 104}
