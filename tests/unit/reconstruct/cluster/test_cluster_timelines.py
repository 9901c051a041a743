"""Controllers' tenures and brokers' registrations, from znodes and from logs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from reconstruct.cluster.brokers import broker_registrations
from reconstruct.cluster.controllers import controller_tenures, judge_controller_epochs
from reconstruct.cluster.evidence import BrokerFact, ControllerFact
from reconstruct.cluster.spans import LiveView, leave_out
from reconstruct.findings.verdicts import Verdicts


def tenures(*facts: ControllerFact) -> list[tuple[int, int, int, int | None, str | None, str | None]]:
    return [
        (s.tenure.controller_id, s.tenure.controller_epoch, s.tenure.start, s.tenure.end, s.end_reason, s.inferred_from)
        for s in controller_tenures(facts)
    ]


def test_the_controller_named_when_the_epoch_was_raised_held_it() -> None:
    second = 1_000_000
    assert tenures(
        ControllerFact("znode_controller", 10 * second, "a", controller_id=1),
        ControllerFact("znode_epoch", 10 * second + 5, "b", epoch=1),
        ControllerFact("znode_controller", 50 * second, "c", controller_id=3),
        ControllerFact("znode_epoch", 50 * second + 5, "d", epoch=2),
    ) == [
        (1, 1, 10 * second + 5, 50 * second + 5, "superseded", None),
        (3, 2, 50 * second + 5, None, None, None),
    ]


def test_a_controller_known_only_by_its_lines_is_inferred() -> None:
    assert tenures(
        ControllerFact("acted", 100, "a", controller_id=2, epoch=7, level_floor="TRACE"),
        ControllerFact("elected", 200, "b", controller_id=1, epoch=8),
    ) == [(2, 7, 100, 200, "superseded", "retention_boundary"), (1, 8, 200, None, None, None)]


def test_the_zero_that_newer_versions_write_first_is_no_election() -> None:
    assert tenures(
        ControllerFact("znode_epoch", 10, "a", epoch=0),
        ControllerFact("elected", 11, "b", controller_id=1, epoch=1),
    ) == [(1, 1, 11, None, None, None)]


def test_a_cluster_created_again_begins_its_epochs_again() -> None:
    found = tenures(
        ControllerFact("elected", 100, "a", controller_id=1, epoch=1),
        ControllerFact("elected", 200, "b", controller_id=2, epoch=2),
        ControllerFact("elected", 900, "c", controller_id=2, epoch=1),
    )
    assert [(who, epoch, end, why) for who, epoch, _, end, why, _ in found] == [
        (1, 1, 200, "superseded"),
        (2, 2, 900, "cluster_recreated"),
        (2, 1, None, None),
    ]


def test_a_resignation_ends_a_tenure_before_the_next_begins() -> None:
    found = tenures(
        ControllerFact("elected", 100, "a", controller_id=1, epoch=1),
        ControllerFact("resigned", 150, "r", controller_id=1),
        ControllerFact("elected", 200, "b", controller_id=2, epoch=2),
        ControllerFact("resigned", 250, "z", controller_id=1),
    )
    assert found[0][3:5] == (150, "resigned")
    assert found[1][3:5] == (None, None)


def judged(*facts: ControllerFact) -> Verdicts:
    verdicts = Verdicts()
    judge_controller_epochs(facts, controller_tenures(facts), verdicts)
    return verdicts


def test_two_brokers_that_claim_one_epoch_are_a_finding() -> None:
    verdicts = judged(
        ControllerFact("elected", 100, "a", controller_id=1, epoch=4),
        ControllerFact("elected", 105, "b", controller_id=2, epoch=4),
    )
    (finding,) = verdicts.findings
    assert (finding.rule_id, finding.severity, finding.evidence) == ("R11", "error", ("a", "b"))
    assert "broker 2" in finding.explanation


def test_an_epoch_that_no_evidence_shows_cannot_be_judged() -> None:
    verdicts = judged(
        ControllerFact("elected", 100, "a", controller_id=1, epoch=1),
        ControllerFact("elected", 900, "b", controller_id=2, epoch=3),
    )
    assert not verdicts.findings
    assert verdicts.counts == {("R11", "kept"): 2, ("R11", "cannot_be_judged"): 1}


def test_the_same_epochs_of_a_cluster_created_again_are_no_conflict() -> None:
    verdicts = judged(
        ControllerFact("elected", 100_000_000, "a", controller_id=1, epoch=1),
        ControllerFact("elected", 200_000_000, "b", controller_id=2, epoch=2),
        ControllerFact("elected", 900_000_000, "c", controller_id=2, epoch=1),
    )
    assert not verdicts.findings


def registrations(
    *facts: BrokerFact,
    controllers: Iterable[ControllerFact] = (),
    process_starts: Iterable[tuple[int, int, str]] = (),
) -> list[tuple[int, int, int | None, str | None, str | None]]:
    return [
        (broker, s.interval.start, s.interval.end, s.interval.value.end_reason, s.interval.inferred_from)
        for broker, spans in broker_registrations(facts, controllers, process_starts).items()
        for s in spans
    ]


def test_a_lost_registration_had_ended_when_a_controller_heard_of_it() -> None:
    assert registrations(
        BrokerFact(1, "registered", 100, "a", czxid=5),
        BrokerFact(1, "unregistered", 900, "b", czxid=5, at_upper=1900),
        BrokerFact(1, "down", 1200, "c"),
        BrokerFact(1, "registered", 5000, "d", czxid=9),
    ) == [(1, 100, 1200, "registration_lost", "effect_logged"), (1, 5000, None, None, None)]


def test_without_such_a_line_it_ends_at_the_latest_instant_and_is_inferred() -> None:
    assert registrations(
        BrokerFact(1, "registered", 100, "a", czxid=5),
        BrokerFact(1, "unregistered", 900, "b", czxid=5, at_upper=1900),
    ) == [(1, 100, 1900, "registration_lost", "znode_snapshot")]


def test_a_transaction_tells_the_end_exactly() -> None:
    assert registrations(
        BrokerFact(1, "registered", 100, "a", czxid=5),
        BrokerFact(1, "unregistered", 900, "b", czxid=5, at_upper=900),
        BrokerFact(1, "down", 1200, "c"),
    ) == [(1, 100, 900, "registration_lost", None)]


def test_in_a_cluster_that_was_created_again_no_broker_is_registered_any_more() -> None:
    """Its first controller is in the first list of both, and nobody tells that it was away."""
    assert registrations(
        BrokerFact(1, "live", 100, "a"),
        BrokerFact(2, "up", 150, "b"),
        BrokerFact(3, "up", 160, "c"),
        BrokerFact(3, "down", 170, "d"),
        BrokerFact(1, "live", 950_000_000, "e"),
        controllers=(
            ControllerFact("elected", 90, "x", controller_id=1, epoch=2),
            ControllerFact("elected", 900_000_000, "y", controller_id=1, epoch=1),
        ),
    ) == [
        (1, 100, 900_000_000, "registration_lost", "log_gap"),
        (1, 950_000_000, None, None, "retention_boundary"),
        (2, 150, 900_000_000, "registration_lost", "log_gap"),
        (3, 160, 170, "registration_lost", "effect_logged"),
    ]


def test_a_controller_that_lists_itself_after_its_process_started_had_been_away() -> None:
    """All brokers ended at once, and nobody was left to tell of it."""
    lists = (
        *(BrokerFact(broker_id, "live", 100, "a", controller_id=1) for broker_id in (1, 2)),
        BrokerFact(1, "live", 900, "b", controller_id=1),
        BrokerFact(2, "absent", 900, "b", controller_id=1),
    )
    assert registrations(*lists) == [
        (1, 100, None, None, "retention_boundary"),
        (2, 100, 900, "registration_lost", "log_gap"),
    ]
    starts = [(1, 50, "s"), (1, 800, "t"), (1, 850, "u"), (2, 700, "v")]
    elected = [ControllerFact("elected", at, "x", controller_id=1, epoch=at) for at in (90, 890)]
    assert registrations(*lists, controllers=elected, process_starts=starts) == [
        (1, 100, 850, "registration_lost", "log_gap"),
        (1, 900, None, None, "retention_boundary"),
        (2, 100, 900, "registration_lost", "log_gap"),
    ]
    asked = BrokerFact(1, "shutdown_requested", 700, "c", controller_id=1)
    assert registrations(*lists, asked, controllers=elected, process_starts=[(1, 800, "t")])[0] == (
        *(1, 100, 800),
        *("controlled_shutdown", "log_gap"),
    )
    (went_on, _) = registrations(*lists, controllers=elected[:1], process_starts=[(1, 800, "t")])
    assert went_on == (1, 100, None, None, "retention_boundary"), "a second process that could not lock the directories"


def test_in_the_list_of_another_controller_a_process_that_started_may_be_the_one_that_is_listed() -> None:
    """Its clock and the controller's need not agree: the start may be that of the registration that began before."""
    lists = (BrokerFact(2, "up", 100, "a", controller_id=1), BrokerFact(2, "live", 900, "b", controller_id=1))
    elected = [ControllerFact("elected", 300, "x", controller_id=2, epoch=1)]
    assert registrations(*lists, controllers=elected, process_starts=[(2, 105, "t")]) == [(2, 100, None, None, None)]


def test_a_broker_that_is_listed_with_a_higher_epoch_has_registered_anew() -> None:
    listed = (
        BrokerFact(1, "live", 100, "a", controller_id=1),
        BrokerFact(1, "epoch_listed", 110, "b", czxid=24, controller_id=1),
        BrokerFact(1, "live", 200, "c", controller_id=1),
        BrokerFact(1, "epoch_listed", 210, "d", czxid=24, controller_id=1),
    )
    assert registrations(*listed) == [(1, 100, None, None, "retention_boundary")]
    again = (
        BrokerFact(1, "epoch_listed", 900, "e", czxid=279, controller_id=1),
        BrokerFact(1, "live", 910, "f", controller_id=1),
    )
    assert registrations(*listed, *again) == [
        (1, 100, 900, "registration_lost", "log_gap"),
        (1, 900, None, None, "retention_boundary"),
    ]
    elected = [ControllerFact("elected", 890, "x", controller_id=1, epoch=2)]
    assert registrations(*listed, *again, controllers=elected, process_starts=[(1, 850, "s")]) == [
        (1, 100, 850, "registration_lost", "log_gap"),
        (1, 900, None, None, "retention_boundary"),
    ], "by its own start, of which the broker tells"
    alone = (listed[1], listed[0], *again)
    assert registrations(*(replace(fact, at=at) for at, fact in enumerate(alone, 100))) == [
        (1, 101, 102, "registration_lost", "log_gap"),
        (1, 102, None, None, "retention_boundary"),
    ], "the list of epochs comes first where a controller begins"
    deposed = BrokerFact(1, "epoch_listed", 920, "i", czxid=24, controller_id=2)
    after = BrokerFact(1, "epoch_listed", 930, "j", czxid=279, controller_id=1)
    assert registrations(*listed, *again, deposed, after) == registrations(*listed, *again)
    bounced = (
        BrokerFact(1, "down", 800, "g", controller_id=1),
        BrokerFact(1, "up", 800, "g", controller_id=1),
        BrokerFact(1, "epoch_listed", 810, "h", czxid=279, controller_id=1),
    )
    assert registrations(*listed, *bounced) == [
        (1, 100, 800, "registration_lost", "retention_boundary"),
        (1, 800, None, None, None),
    ]


LOST_WITHIN_A_SECOND = (
    BrokerFact(1, "registered", 100, "a", czxid=5),
    BrokerFact(1, "unregistered", 900, "b", czxid=5, at_upper=1900),
    BrokerFact(1, "down", 1400, "c"),
)


def end_with(*controllers: ControllerFact) -> tuple[int | None, int | None, tuple[str, ...]]:
    (span,) = broker_registrations(LOST_WITHIN_A_SECOND, controllers)[1]
    return span.ended_after, span.ended_before, span.interval.evidence


def test_the_registration_of_a_controller_had_ended_when_its_successor_was_elected() -> None:
    elected = ControllerFact("elected", 200, "e1", controller_id=1, epoch=1)
    successor = ControllerFact("znode_controller", 1300, "e2", controller_id=3)
    assert end_with(elected, successor) == (900, 1300, ("a", "b", "c", "e2"))
    assert end_with(successor) == (900, 1400, ("a", "b", "c")), "nothing tells that broker 1 was the controller"


def test_a_controller_that_resigned_while_it_served_on_may_have_stayed_registered() -> None:
    elected = ControllerFact("elected", 200, "e1", controller_id=1, epoch=1)
    resigned = ControllerFact("resigned", 1000, "r", controller_id=1)
    successor = ControllerFact("elected", 1300, "e2", controller_id=3, epoch=2)
    assert end_with(elected, resigned, successor)[1] == 1400
    by_another = ControllerFact("resigned", 1000, "r", controller_id=2)
    assert end_with(elected, by_another, successor)[1] == 1300, "who was no controller resigns nothing"


def test_a_broker_that_asked_for_it_was_shut_down() -> None:
    assert (
        registrations(
            BrokerFact(1, "registered", 100, "a", czxid=5),
            BrokerFact(1, "shutdown_requested", 1100, "s"),
            BrokerFact(1, "unregistered", 900, "b", czxid=5, at_upper=1900),
            BrokerFact(1, "down", 1200, "c"),
        )[0][3]
        == "controlled_shutdown"
    )


def test_logs_alone_tell_who_came_and_went() -> None:
    assert registrations(
        BrokerFact(1, "live", 100, "a"),
        BrokerFact(2, "up", 150, "b"),
        BrokerFact(1, "down", 300, "c"),
        BrokerFact(1, "up", 400, "d"),
        BrokerFact(2, "absent", 500, "e"),
    ) == [
        (1, 100, 300, "registration_lost", "retention_boundary"),
        (1, 400, None, None, None),
        (2, 150, 500, "registration_lost", "log_gap"),
    ]


CAME_AND_WENT = (
    BrokerFact(1, "up", 110, "u1"),
    BrokerFact(1, "down", 300, "d1"),
    BrokerFact(1, "up", 410, "u2"),
)


def test_logs_tell_of_a_registration_that_was_over_before_the_first_snapshot() -> None:
    first = (1, 110, 300, "registration_lost", "effect_logged")
    later = BrokerFact(1, "registered", 400, "z", czxid=9)
    assert registrations(*CAME_AND_WENT, later) == [first, (1, 400, None, None, None)]
    of_another = BrokerFact(2, "registered", 50, "z", czxid=3)
    assert registrations(*CAME_AND_WENT, of_another) == [first, (2, 50, None, None, None)]


def test_logs_tell_how_a_registration_went_on_after_the_last_snapshot() -> None:
    known = BrokerFact(1, "registered", 100, "z", czxid=5)
    assert registrations(known, *CAME_AND_WENT) == [
        (1, 100, 300, "registration_lost", "effect_logged"),
        (1, 410, None, None, None),
    ]
    gone = BrokerFact(1, "unregistered", 200, "g", czxid=5, at_upper=350)
    assert [each[1:3] for each in registrations(known, gone, *CAME_AND_WENT)] == [(100, 300), (410, None)]


def test_logs_with_a_wrong_clock_make_no_registration_of_one_that_znodes_tell_of() -> None:
    znodes = (
        BrokerFact(1, "registered", 1100, "z", czxid=5),
        BrokerFact(1, "unregistered", 1300, "g", czxid=5, at_upper=1300),
        BrokerFact(1, "registered", 1400, "y", czxid=9),
    )
    assert [each[1:3] for each in registrations(*znodes, *CAME_AND_WENT)] == [(1100, 1300), (1400, None)]


def test_a_broker_whose_registration_a_controller_ignores_is_not_live_to_it() -> None:
    second = 1_000_000
    views = [LiveView(at * second, by, frozenset({1, 2, 3}), "list") for at, by in ((10, 1), (20, 1), (20, 2))]
    leave_out(views, 1, 20 * second + 3_000, frozenset({3}))
    assert [view.live for view in views] == [{1, 2, 3}, {1, 2}, {1, 2, 3}]
    leave_out(views, 1, 40 * second, frozenset({2}))
    assert [view.live for view in views] == [{1, 2, 3}, {1, 2}, {1, 2, 3}], "of a list that is not given"
