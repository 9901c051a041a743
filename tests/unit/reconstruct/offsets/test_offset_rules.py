"""The rules about data on histories small enough to read: what is broken, how bad by version, and what stays unjudged.

Broker 1 leads from second 1 on, 2 follows it; both logs are complete. Instants are in seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import pytest

from ingest.shapes.broker_settings import BrokerSetting
from reconstruct.cluster.settings import Configuration, SettingChange, SettingsOverTime
from reconstruct.cluster.view import ClusterView
from reconstruct.findings.verdicts import CANNOT_BE_JUDGED, Verdicts
from reconstruct.model.versions import ANY_VERSION, KafkaVersion, VersionRange
from reconstruct.offsets import evidence as oe
from reconstruct.offsets.bound_steps import EVER_AFTER
from reconstruct.offsets.clocks import UNBOUNDED_US, OffsetClocks
from reconstruct.offsets.evidence import (
    DecidedState,
    OffsetEvidence,
    OffsetObservation,
    ReplicaEvent,
    ReplicaEventKind,
    TruncationCause,
)
from reconstruct.offsets.losses import CLEAN_ELECTION, SAME_LEADER, UNCLEAN_ELECTION, OffsetLoss
from reconstruct.offsets.rules import IsrMove, IsrMoveKind, OffsetCase, judge_offsets
from reconstruct.offsets.rules.case import printed_lag_us

SECOND = 1_000_000
LEADS = ReplicaEvent(1, ReplicaEventKind.LEADS, SECOND, None, 1, 0, "leads")
FOLLOWS = ReplicaEvent(2, ReplicaEventKind.FOLLOWS, SECOND, None, 1, 0, "follows")
CUT_TO_HIGH_WATERMARK = ReplicaEvent(
    2, ReplicaEventKind.TRUNCATION_DECIDED, 4 * SECOND, 5, cause=TruncationCause.HIGH_WATERMARK
)
CUT_BY_EPOCH = replace(CUT_TO_HIGH_WATERMARK, cause=TruncationCause.LEADER_EPOCH)
BOTH_IN_SYNC = DecidedState(SECOND, None, 1, 0, (1, 2))


def seen(replica: int, kind: str, offset: int, at: float, *, lasts: float = 0.1) -> OffsetObservation:
    """An answer given between ``at`` and ``lasts`` later."""
    start, end = round(at * SECOND), round((at + lasts) * SECOND)
    return OffsetObservation(replica, kind, offset, start, end, source=oe.PROBE, evidence_id=f"{replica}-{kind}-{at:g}")


def started(replica: int, at: float) -> ReplicaEvent:
    return ReplicaEvent(replica, ReplicaEventKind.STARTED, round(at * SECOND), evidence_id="start")


def case(
    *observations: OffsetObservation,
    events: Sequence[ReplicaEvent] = (),
    version: str = "3.9.1",
    lag_times: Mapping[int, int] = MappingProxyType({}),
    **more: object,
) -> OffsetCase:
    view = ClusterView(
        "c",
        VersionRange.exactly(KafkaVersion.parse(version) or pytest.fail(version)),
        configurations={b: Configuration({BrokerSetting.LAG_TIME: [str(us // 1000)]}) for b, us in lag_times.items()},
    )
    evidence = OffsetEvidence(
        observations, [LEADS, FOLLOWS, *events], [BOTH_IN_SYNC], {1: [(0, EVER_AFTER)], 2: [(0, EVER_AFTER)]}
    )
    return replace(OffsetCase("t", view, evidence), **more)  # type: ignore[arg-type]


def verdicts_of(judged: OffsetCase) -> Verdicts:
    verdicts = Verdicts()
    judge_offsets(judged, verdicts)
    return verdicts


def said(judged: OffsetCase) -> list[tuple[str, str]]:
    """(divergence type, severity) of every finding, sorted."""
    return sorted((finding.divergence_type, finding.severity) for finding in verdicts_of(judged).findings)


HIGH_FALLS = (seen(1, oe.HIGH_WATERMARK, 10, 5), seen(1, oe.HIGH_WATERMARK, 7, 8))


def test_a_high_watermark_that_falls_without_a_cause_is_an_error() -> None:
    assert said(case(*HIGH_FALLS)) == [("high_watermark_decreased", "error")]


def test_one_that_falls_at_a_start_is_told_with_its_cause() -> None:
    verdicts = verdicts_of(case(*HIGH_FALLS, events=[started(1, 6)]))
    assert [(f.divergence_type, f.severity) for f in verdicts.findings] == [("high_watermark_rolled_back", "info")]
    assert "start" in verdicts.findings[0].evidence


def test_one_that_its_broker_tells_of_without_a_cause_is_no_error() -> None:
    told = ReplicaEvent(1, ReplicaEventKind.LOWERED, 6 * SECOND, 7, evidence_id="non-monotonic")
    (finding,) = verdicts_of(case(*HIGH_FALLS, events=[told])).findings
    assert (finding.divergence_type, finding.severity) == ("high_watermark_decreased", "warning")
    assert "non-monotonic" in finding.evidence
    both = verdicts_of(case(*HIGH_FALLS, events=[told, started(1, 6)])).findings
    assert [(f.divergence_type, f.severity) for f in both] == [("high_watermark_rolled_back", "info")]


def test_a_high_watermark_that_fell_tells_that_the_log_may_have_been_cut() -> None:
    above = (seen(1, oe.HIGH_WATERMARK, 10, 5), seen(1, oe.LOG_END_OFFSET, 8, 8))
    assert ("high_watermark_above_log_end", "error") in said(case(*above))
    told = ReplicaEvent(1, ReplicaEventKind.LOWERED, 6 * SECOND, 7, evidence_id="non-monotonic")
    assert said(case(*above, events=[told])) == []


def test_one_that_may_have_risen_is_not_judged() -> None:
    overlapping = (seen(1, oe.HIGH_WATERMARK, 10, 5, lasts=4), seen(1, oe.HIGH_WATERMARK, 7, 8))
    assert said(case(*overlapping)) == []


def test_nothing_is_said_of_a_fall_in_a_log_that_has_a_hole() -> None:
    whole = case(*HIGH_FALLS)
    holed = replace(whole.evidence, covered={1: [(0, 6 * SECOND), (7 * SECOND, EVER_AFTER)], 2: [(0, EVER_AFTER)]})
    verdicts = verdicts_of(replace(whole, evidence=holed))
    assert verdicts.findings == []
    assert verdicts.counts["R30", CANNOT_BE_JUDGED] > 0


def test_a_log_end_below_a_high_watermark_seen_before_is_an_error() -> None:
    assert said(case(seen(1, oe.HIGH_WATERMARK, 10, 5), seen(1, oe.LOG_END_OFFSET, 9, 8))) == [
        ("high_watermark_above_log_end", "error")
    ]


def test_a_recovery_point_above_the_log_end_of_later_is_an_error_unless_the_broker_started_between() -> None:
    observations = (seen(1, oe.RECOVERY_POINT, 10, 5), seen(1, oe.LOG_END_OFFSET, 9, 8))
    assert said(case(*observations)) == [("recovery_point_above_log_end", "error")]
    assert said(case(*observations, events=[started(1, 6)])) == []


FOLLOWER_FETCHES = (seen(2, oe.HIGH_WATERMARK, 1, 2), seen(2, oe.HIGH_WATERMARK, 2, 3))


def test_a_follower_above_its_leader_is_an_error_once_its_first_fetch_is_proven() -> None:
    above = (seen(2, oe.HIGH_WATERMARK, 12, 5), seen(1, oe.HIGH_WATERMARK, 10, 8))
    assert said(case(*FOLLOWER_FETCHES, *above)) == [("follower_high_watermark_above_leader", "error")]
    assert said(case(*above)) == []


@pytest.mark.parametrize(
    ("version", "severity"), [("0.10.2.1", "info"), ("1.1.1", "warning"), ("2.0.1", "warning"), ("3.9.1", "error")]
)
def test_a_member_of_the_isr_that_is_behind_is_as_bad_as_its_version_makes_it(version: str, severity: str) -> None:
    behind = (seen(1, oe.HIGH_WATERMARK, 10, 5), seen(2, oe.LOG_END_OFFSET, 8, 7))
    assert said(case(*behind, version=version)) == [("isr_member_behind_high_watermark", severity)]


def test_a_member_that_started_meanwhile_may_have_lost_what_was_not_flushed() -> None:
    behind = (seen(1, oe.HIGH_WATERMARK, 10, 5), seen(2, oe.LOG_END_OFFSET, 8, 7))
    assert said(case(*behind, events=[started(2, 6)])) == [("isr_member_behind_high_watermark", "warning")]


def test_a_member_that_its_leader_took_out_meanwhile_is_not_accused() -> None:
    behind = (seen(1, oe.HIGH_WATERMARK, 10, 5), seen(2, oe.LOG_END_OFFSET, 8, 7))
    left = IsrMove(1, 2, IsrMoveKind.LEFT, 6 * SECOND, None, "shrink")
    assert said(case(*behind, isr_moves=[left])) == []


def shrink(end_offset: int, at: float = 20) -> dict[str, Sequence[IsrMove]]:
    return {"isr_moves": [IsrMove(1, 2, IsrMoveKind.LEFT, round(at * SECOND), end_offset, "shrink")]}


PRINTED = tuple(
    OffsetObservation(1, kind, offset, 20 * SECOND, source="log_record", evidence_id="shrink")
    for kind, offset in ((oe.HIGH_WATERMARK, 10), (oe.LOG_END_OFFSET, 12))
)


@pytest.mark.parametrize(
    ("version", "end_offset", "expected"),
    [
        ("3.9.1", 11, []),
        ("3.9.1", 12, [("isr_shrink_without_reason", "error")]),
        ("2.8.2", 12, [("isr_shrink_without_reason", "warning")]),
        ("2.8.2", 13, [("isr_shrink_without_reason", "error")]),
        ("3.9.1", 9, [("leader_high_watermark_above_isr", "error")]),
    ],
)
def test_a_shrink_is_judged_by_what_its_line_prints(
    version: str, end_offset: int, expected: list[tuple[str, str]]
) -> None:
    assert said(case(*PRINTED, version=version, **shrink(end_offset))) == expected


@pytest.mark.parametrize(
    ("version", "end_offset", "at", "lag_times", "expected"),
    [
        ("3.9.1", 3, 5.0, {1: 10 * SECOND}, [("isr_shrink_without_reason", "warning")]),
        ("2.1.1", None, 5.0, {1: 10 * SECOND}, [("isr_shrink_without_reason", "warning")]),
        ("3.9.1", 3, 12.0, {1: 10 * SECOND}, []),
        ("3.9.1", 3, 5.0, {}, []),
        # "endOffset: unknown": a reassignment has removed the replica, its leader counts it as none
        ("3.9.1", None, 5.0, {1: 10 * SECOND}, []),
    ],
)
def test_a_shrink_needs_the_lag_time_since_the_election_but_of_who_is_no_replica(
    version: str, end_offset: int | None, at: float, lag_times: dict[int, int], expected: list[tuple[str, str]]
) -> None:
    begin = OffsetObservation(
        1, oe.LOG_END_OFFSET, 0, SECOND, leader_epoch=0, source="log_record", evidence_id=LEADS.evidence_id
    )
    move = IsrMove(1, 2, IsrMoveKind.LEFT, round(at * SECOND), end_offset, "shrink")
    assert said(case(begin, isr_moves=[move], lag_times=lag_times, version=version)) == expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (4.0, 8.0, [("isr_join_too_early", "error")]),
        (5.0, 6.5, [("isr_join_too_early", "warning")]),
        (5.8, 6.2, []),
    ],
)
def test_a_replica_joins_only_with_all_that_was_committed(
    before: float, after: float, expected: list[tuple[str, str]]
) -> None:
    """Seen a quarter of a second around the line, a clock that is a little off explains it."""
    join = IsrMove(1, 2, IsrMoveKind.JOINED, 6 * SECOND, None, "expand")
    early = (seen(1, oe.HIGH_WATERMARK, 10, before), seen(2, oe.LOG_END_OFFSET, 8, after))
    judged = case(*early, isr_moves=[join])
    alone = replace(judged.evidence, decided=[replace(BOTH_IN_SYNC, isr=(1,))])
    assert said(replace(judged, evidence=alone)) == expected


def written(at: float, *isr: int) -> list[IsrMove]:
    """A leader's line "ISR updated to"."""
    return [IsrMove(1, one, IsrMoveKind.WRITTEN, round(at * SECOND), evidence_id=f"written-{at:g}") for one in isr]


def test_a_join_that_a_leader_logs_as_written_is_judged_by_its_own_clock() -> None:
    early = (seen(1, oe.HIGH_WATERMARK, 10, 4), seen(2, oe.LOG_END_OFFSET, 8, 8))
    alone = [DecidedState(SECOND, None, 1, 0, (1,))]
    judged = case(*early, isr_moves=written(6, 1, 2))
    # no line before it: the ISR that its epoch began with
    judged = replace(judged, evidence=replace(judged.evidence, decided=alone))
    assert said(judged) == [("isr_join_too_early", "error")]
    # a third broker's clock makes decided states uncertain, not the leader's lines
    uncertain = replace(judged.evidence, clocks=OffsetClocks({3: UNBOUNDED_US}))
    assert said(replace(judged, evidence=uncertain)) == [("isr_join_too_early", "error")]
    # it was in the ISR before, by the line before or by the epoch's begin: R33 judges that
    both = replace(judged.evidence, decided=[BOTH_IN_SYNC])
    known = {finding.rule_id for finding in verdicts_of(replace(judged, evidence=both)).findings}
    assert known == {"R33"}
    again = replace(judged, isr_moves=written(3, 1, 2) + written(6, 1, 2))
    assert said(again) == []
    left = replace(judged, isr_moves=written(3, 1) + written(6, 1, 2))
    assert said(left) == [("isr_join_too_early", "error")]
    # where lines may be missing between, nothing says when it joined
    holes = replace(
        left.evidence, decided=[], covered={1: [(0, 4 * SECOND), (5 * SECOND, EVER_AFTER)], 2: [(0, EVER_AFTER)]}
    )
    assert said(replace(left, evidence=holes)) == []


def test_a_join_that_is_asked_for_and_written_is_judged_once() -> None:
    early = (seen(1, oe.HIGH_WATERMARK, 10, 4), seen(2, oe.LOG_END_OFFSET, 8, 8))
    asked = IsrMove(1, 2, IsrMoveKind.JOINED, 6 * SECOND, None, "expand")
    judged = case(*early, isr_moves=[asked, *written(6.01, 1, 2)], version="2.7.2")
    alone = replace(judged.evidence, decided=[DecidedState(SECOND, None, 1, 0, (1,))])
    assert said(replace(judged, evidence=alone)) == [("isr_join_too_early", "error")]


@pytest.mark.parametrize(
    ("version", "cause", "events", "expected"),
    [
        ("3.9.1", CLEAN_ELECTION, [], ("error", None)),
        ("3.9.1", CLEAN_ELECTION, [started(2, 6)], ("warning", None)),
        ("1.1.1", CLEAN_ELECTION, [], ("warning", None)),
        ("1.1.1", CLEAN_ELECTION, [CUT_TO_HIGH_WATERMARK], ("warning", "KAFKA-7415 (since 0.11, fixed in 2.1)")),
        ("1.1.1", CLEAN_ELECTION, [CUT_BY_EPOCH], ("warning", None)),
        ("2.1.0", CLEAN_ELECTION, [CUT_TO_HIGH_WATERMARK], ("error", None)),
        ("0.9.0.1", CLEAN_ELECTION, [], ("warning", "KIP-101 (fixed in 0.11)")),
        ("0.9.0.1", UNCLEAN_ELECTION, [], ("warning", None)),
        ("3.9.1", UNCLEAN_ELECTION, [], ("warning", None)),
        ("3.9.1", SAME_LEADER, [], ("warning", None)),
    ],
)
def test_a_loss_is_as_bad_as_its_cause(
    version: str, cause: str, events: Sequence[ReplicaEvent], expected: tuple[str, str | None]
) -> None:
    states = [replace(BOTH_IN_SYNC, valid_to=9 * SECOND), DecidedState(9 * SECOND, None, 2, 1, (2,))]
    loss = OffsetLoss(9 * SECOND, cause, 2, 1, 1, 5, 9, 9, 5, 5, evidence=("begin",))
    judged = case(events=events, version=version, losses=[loss])
    verdicts = verdicts_of(replace(judged, evidence=replace(judged.evidence, decided=states)))
    assert [(f.severity, f.known_issue) for f in verdicts.findings] == [expected]
    forbids = replace(judged.view, configurations={1: Configuration({BrokerSetting.UNCLEAN: ["false"]})})
    own = SettingsOverTime({judged.topic: [SettingChange(0, is_first=True)]})
    for view, severity in ((forbids, "warning"), (replace(forbids, settings=own), "error")):
        verdicts = verdicts_of(replace(judged, view=view, evidence=replace(judged.evidence, decided=states)))
        assert cause != UNCLEAN_ELECTION or [f.severity for f in verdicts.findings] == [severity]


def test_an_election_that_may_have_lost_something_is_not_judged() -> None:
    states = [replace(BOTH_IN_SYNC, valid_to=9 * SECOND), DecidedState(9 * SECOND, None, 2, 1, (2,))]
    judged = case(losses=[OffsetLoss(9 * SECOND, UNCLEAN_ELECTION, 2, 1, 1, 5, None, 9, 0, 5)])
    verdicts = verdicts_of(replace(judged, evidence=replace(judged.evidence, decided=states)))
    assert verdicts.findings == []
    assert verdicts.counts["R35", CANNOT_BE_JUDGED] == 1


def lineage(replica: int, *entries: tuple[int, int]) -> list[OffsetObservation]:
    return [
        OffsetObservation(
            replica,
            oe.EPOCH_START,
            start,
            50 * SECOND,
            51 * SECOND,
            epoch,
            "leader_epoch_checkpoint",
            evidence_id=f"{replica}:{epoch}",
        )
        for epoch, start in entries
    ]


@pytest.mark.parametrize(
    ("one", "other", "version", "expected"),
    [
        ([(0, 0), (1, 10)], [(0, 0), (1, 10)], "3.9.1", []),
        ([(0, 0), (1, 10)], [(0, 0), (1, 12)], "3.9.1", ["warning"]),
        ([(1, 10), (2, 20)], [(1, 15), (2, 20)], "3.9.1", []),
        ([(0, 0), (1, 10), (2, 20)], [(0, 0), (2, 20)], "3.9.1", ["warning"]),
        ([(0, 0), (2, 20)], [(0, 0), (2, 20)], "3.9.1", []),
        ([(0, 5), (1, 5)], [], "3.9.1", ["error"]),
        ([(0, 5), (1, 5)], [], "1.1.1", []),
        ([(0, 5), (1, 4)], [], "1.1.1", ["error"]),
    ],
)
def test_lineages_agree(
    one: list[tuple[int, int]], other: list[tuple[int, int]], version: str, expected: list[str]
) -> None:
    found = said(case(*lineage(1, *one), *lineage(2, *other), version=version))
    assert found == [("epoch_lineage_conflict", severity) for severity in expected]


def test_no_epoch_begins_below_where_its_leader_says() -> None:
    begin = OffsetObservation(
        1, oe.LOG_END_OFFSET, 10, SECOND, leader_epoch=1, source="log_record", evidence_id=LEADS.evidence_id
    )
    assert said(case(begin, *lineage(2, (0, 0), (1, 9)))) == [("epoch_lineage_conflict", "error")]
    assert said(case(begin, *lineage(2, (0, 0), (1, 11)))) == []


def test_copies_of_one_directory_from_several_days_that_name_no_time_are_told_apart() -> None:
    later = [replace(entry, copy="later") for entry in lineage(1, (0, 0), (3, 12), (4, 15))]
    earlier = [replace(entry, copy="earlier") for entry in lineage(1, (0, 0), (2, 15))]
    assert said(case(*later, *earlier)) == []
    # the longest lineage is the last one
    other = lineage(2, (0, 0), (3, 11), (4, 15))
    assert said(case(*later, *earlier, *other)) == [("epoch_lineage_conflict", "warning")]


def test_a_leader_that_starts_again_at_its_epoch_says_where_its_log_ends_and_not_where_the_epoch_begins() -> None:
    end = OffsetObservation(
        1, oe.LOG_END_OFFSET, 60, SECOND, leader_epoch=0, source="log_record", evidence_id=LEADS.evidence_id
    )
    first_known = case(end, *lineage(1, (0, 0)))
    assert said(first_known) == []
    later = replace(end, leader_epoch=1)
    rotated_away = replace(first_known.evidence, observations=(later, *lineage(1, (0, 0), (1, 9))), covered={})
    assert said(replace(first_known, evidence=rotated_away)) == []


def test_writes_with_acks_all_fail_while_the_isr_is_too_small() -> None:
    states = [replace(BOTH_IN_SYNC, valid_to=5 * SECOND), DecidedState(5 * SECOND, 9 * SECOND, 1, 0, (1,))]
    given = case(decided_evidence={(5 * SECOND, 0): ("shrunk",)})
    given = replace(given, evidence=replace(given.evidence, decided=states))
    assert said(given) == []
    strict = replace(given, view=requiring(given, SettingChange(0, 2, is_first=True)))
    finding = verdicts_of(strict).findings[0]
    assert (finding.divergence_type, finding.severity) == ("acks_all_unavailable", "warning")
    assert finding.evidence == ("shrunk",)
    assert "for 4.000 s" in finding.explanation
    impossible = replace(given, view=requiring(given, SettingChange(0, 3, is_first=True)))
    assert said(impossible) == []


def test_what_min_isr_was_is_known_from_its_first_sighting_on() -> None:
    states = [replace(BOTH_IN_SYNC, valid_to=5 * SECOND), DecidedState(5 * SECOND, 9 * SECOND, 1, 0, (1,))]
    given = case(decided_evidence={(5 * SECOND, 0): ("shrunk",)})
    given = replace(given, evidence=replace(given.evidence, decided=states))
    allowed_then = [SettingChange(0, 1, is_first=True), SettingChange(9 * SECOND, 2)]
    asked_for_then = [SettingChange(0, 2, is_first=True), SettingChange(9 * SECOND, 1)]
    not_known_then = [SettingChange(9 * SECOND, 2)]
    changed_meanwhile = [SettingChange(0, 2, is_first=True), SettingChange(7 * SECOND, 1)]
    judged = {
        "kept": verdicts_of(replace(given, view=requiring(given, *allowed_then))),
        "broken": verdicts_of(replace(given, view=requiring(given, *asked_for_then))),
        "not known": verdicts_of(replace(given, view=requiring(given, *not_known_then))),
        "changed": verdicts_of(replace(given, view=requiring(given, *changed_meanwhile))),
    }
    types = {name: [f.divergence_type for f in verdicts.findings] for name, verdicts in judged.items()}
    assert types == {"kept": [], "broken": ["acks_all_unavailable"], "not known": [], "changed": []}
    assert judged["kept"].counts["R39", "kept"] == 2
    assert judged["not known"].counts["R39", CANNOT_BE_JUDGED] == 2
    # a broker's own counts for a topic that is known to set none
    by_broker = replace(given.view, configurations={1: Configuration({BrokerSetting.MIN_ISR: ["2"]})})
    unset = replace(by_broker, settings=SettingsOverTime({given.topic: [SettingChange(0, is_first=True)]}))
    assert said(replace(given, view=unset)) == [("acks_all_unavailable", "warning")]
    assert said(replace(given, view=by_broker)) == []


def requiring(given: OffsetCase, *changes: SettingChange) -> ClusterView:
    """The view of a case with what its topic set when."""
    return replace(given.view, settings=SettingsOverTime({given.topic: changes}))


def test_of_an_unknown_version_the_mildest_is_said() -> None:
    behind = case(seen(1, oe.HIGH_WATERMARK, 10, 5), seen(2, oe.LOG_END_OFFSET, 8, 7))
    unknown = replace(behind, view=replace(behind.view, version=ANY_VERSION))
    assert said(unknown) == [("isr_member_behind_high_watermark", "info")]


@pytest.mark.parametrize(
    ("version", "lag_ms", "expected"),
    [
        ("3.9.1", 3_001, []),
        ("3.9.1", 3_000, [("isr_shrink_without_reason", "error")]),
        ("3.6.2", 10, [("isr_shrink_without_reason", "warning")]),
        ("3.9.1", -1, []),
        ("3.9.1", None, []),
    ],
)
def test_a_replica_that_was_caught_up_within_the_lag_time_is_in_sync(
    version: str, lag_ms: int | None, expected: list[tuple[str, str]]
) -> None:
    move = replace(shrink(11)["isr_moves"][0], lag_us=None if lag_ms is None else 1000 * lag_ms)
    judged = case(*PRINTED, version=version, isr_moves=[move], lag_times={1: 3 * SECOND})
    assert said(judged) == expected
    assert said(replace(judged, view=replace(judged.view, configurations={}))) == []


def test_a_shrink_is_judged_by_the_limit_that_held_then() -> None:
    """The leader was started with 10 s, and with 3 s again, by what it printed; its file has 10 s."""
    limit, file = BrokerSetting.LAG_TIME, {BrokerSetting.LAG_TIME: ["10000"]}
    own = Configuration(file, [(0, {limit: "10000"}), (8 * SECOND, {limit: "3000"})])
    move = replace(shrink(11)["isr_moves"][0], lag_us=5 * SECOND)
    for at, expected in ((7, [("isr_shrink_without_reason", "error")]), (9, [])):
        judged = case(*PRINTED, version="3.9.1", isr_moves=[replace(move, at=at * SECOND)])
        assert said(replace(judged, view=replace(judged.view, configurations={1: own}))) == expected


def test_the_printed_lag_is_the_most_that_it_was() -> None:
    assert printed_lag_us(9_250_000, 9_000) == 251_000
    assert printed_lag_us(9_000_000, 8_000) == 2_000_000, "a whole second may have lost its milliseconds"
    assert printed_lag_us(9_250_000, 0) is None
    assert printed_lag_us(9_250_000, None) is None


def test_the_order_of_the_evidence_changes_nothing() -> None:
    first = case(*HIGH_FALLS, *FOLLOWER_FETCHES, *PRINTED, **shrink(9))
    turned = replace(
        first.evidence,
        observations=list(reversed(first.evidence.observations)),
        events=list(reversed(first.evidence.events)),
    )
    assert verdicts_of(replace(first, evidence=turned)).findings == verdicts_of(first).findings
