"""What held when of settings that were changed while the cluster ran."""

from __future__ import annotations

from dataclasses import replace

from reconstruct.cluster.evidence import ClusterFacts
from reconstruct.cluster.settings import EVERY_BROKER, Configuration, SettingChange, SettingsOverTime
from reconstruct.cluster.view import ClusterView
from reconstruct.model.versions import VersionRange, v
from reconstruct.partitions.evidence import ZNODE_ASSIGNMENT, ZNODE_STATE, Evidence
from reconstruct.partitions.timeline import fold_partition

SECOND = 1_000_000
VERSION = VersionRange.exactly(v(2, 3))


def change(at: int, min_isr: int | None = None, unclean: bool | None = None, *, first: bool = False) -> SettingChange:
    return SettingChange(at * SECOND, min_isr, unclean, first)


def view(
    *topic: SettingChange, default: SettingChange | None = None, broker: SettingChange | None = None
) -> ClusterView:
    brokers = {id_: (c,) for id_, c in ((EVERY_BROKER, default), (1, broker)) if c is not None}
    topics = {"t": topic} if topic else {}
    return ClusterView(
        "c",
        VERSION,
        settings=SettingsOverTime(topics, brokers),
        configurations={1: Configuration({})},
    )


def test_a_setting_holds_from_its_write_to_the_next() -> None:
    changed = view(change(0, 2, first=True), change(100, 3))
    assert changed.min_isr("t", 1, 50 * SECOND, 90 * SECOND) == 2
    assert changed.min_isr("t", 1, 150 * SECOND) == 3
    assert changed.min_isr("t", 1, 50 * SECOND, 150 * SECOND) is None
    assert changed.min_isr("t", 1, 50 * SECOND) is None, "it lasts to the change and beyond"


def test_before_the_first_write_that_is_known_nothing_is_known() -> None:
    for first in (False, True):
        changed = view(change(100, 2, True, first=first))
        assert changed.min_isr("t", 1, 0, 50 * SECOND) is None
        assert changed.min_isr("t", 1, 50 * SECOND, 150 * SECOND) is None
        assert changed.unclean_election_allowed("t", 50 * SECOND) is None
        assert changed.unclean_election_allowed("t", 150 * SECOND) is True
        assert changed.unclean_election_allowed("t") is True, "as far as it is known"


def test_a_metadata_log_says_that_nothing_was_set_before_and_nothing_of_others() -> None:
    first = view(change(100, 2, first=True))
    whole = replace(first, settings=replace(first.settings, is_whole=True))
    assert whole.min_isr("t", 1, 0, 50 * SECOND) == 1
    assert whole.min_isr("u", 1, 0, 50 * SECOND) == 1
    from_snapshot = replace(whole.settings, topics={"t": [change(100, 2)]})
    assert replace(whole, settings=from_snapshot).min_isr("t", 1, 0, 50 * SECOND) is None
    assert [ClusterFacts(has_all_settings=given).settings.is_whole for given in (True, False)] == [True, False]


def test_a_broker_s_is_not_known_before_its_first_write_unless_that_made_the_znode() -> None:
    plain = change(0, first=True)
    assert view(plain, broker=change(100, 3)).min_isr("t", 1, 0, 50 * SECOND) is None
    assert view(plain, broker=change(100, 3, first=True)).min_isr("t", 1, 0, 50 * SECOND) == 1
    assert view(change(0, 2, first=True), broker=change(100, 3)).min_isr("t", 1, 0, 50 * SECOND) == 2


def test_a_topic_s_own_goes_before_a_broker_s_and_that_before_the_default_and_the_file() -> None:
    everything = view(change(0, 4), default=change(0, 2), broker=change(0, 3))
    assert everything.min_isr("t", 1, 0, 1) == 4
    plain = change(0)
    assert view(plain, default=change(0, 2), broker=change(0, 3)).min_isr("t", 1, 0, 1) == 3
    assert view(plain, default=change(0, 2), broker=change(0, 3)).min_isr("t", 2, 0, 1) == 2
    assert view(plain).min_isr("t", 1, 0, 1) == 1
    assert view().min_isr("t", 1, 0, 1) is None, "nothing is known of the topic"


def test_brokers_do_not_read_theirs_from_znodes_up_to_1_0() -> None:
    facts = ClusterFacts(broker_settings={1: [change(0, 3)]}, stated_versions=["1.0.2"])
    assert facts.settings.brokers == {}
    facts.stated_versions[0] = "1.1.0"
    assert facts.settings.brokers == {1: [change(0, 3)]}


def state(at: int, leader: int, epoch: int, isr: tuple[int, ...]) -> Evidence:
    return Evidence(
        f"z{epoch}",
        ZNODE_STATE,
        at * SECOND,
        source_kind="znode",
        leader=leader,
        leader_epoch=epoch,
        isr=isr,
        partition_epoch=epoch,
        state_controller_epoch=1,
    )


def test_an_unclean_election_is_judged_by_what_held_then() -> None:
    facts = [
        Evidence("a", ZNODE_ASSIGNMENT, 0, replicas=(1, 2), source_kind="znode"),
        state(0, 1, 0, (1,)),
        state(50, 2, 1, (2,)),
    ]

    def said(changed: ClusterView) -> list[str]:
        found = fold_partition("t", facts, changed).verdicts.findings
        return [finding.severity for finding in found if finding.divergence_type == "unclean_election"]

    allowed_then = view(change(0, unclean=True, first=True), change(60, unclean=False))
    forbidden_then = view(change(0, unclean=False, first=True), change(60, unclean=True))
    assert said(allowed_then) == ["warning"]
    assert said(forbidden_then) == ["error"]


def test_a_partition_is_under_min_isr_while_the_setting_asks_for_more() -> None:
    facts = [Evidence("a", ZNODE_ASSIGNMENT, 0, replicas=(1, 2, 3)), state(0, 1, 0, (1, 2))]
    case = fold_partition("t", facts, view(change(0, 2, first=True), change(100, 3), change(200, 1)))
    spans = [(s.start // SECOND, s.end and s.end // SECOND) for s in case.availability if s.kind == "under_min_isr"]
    assert spans == [(100, 200)]
