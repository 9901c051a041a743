"""Which absence of a broker an effect is of, and which absences are one incident."""

from __future__ import annotations

import pytest

from reconstruct.cluster.brokers import RegistrationSpan
from reconstruct.cluster.ends import RegistrationEnd
from reconstruct.cluster.spans import Departure, Registration, Tenure
from reconstruct.incidents.causes import Absence, absences, causes_of, connected, successors
from reconstruct.time.intervals import Interval

SECOND = 1_000_000


def registered(start: int, end: int | None, reason: str | None = None) -> RegistrationSpan:
    interval = Interval(
        start * SECOND, end and end * SECOND, Registration(reason, end and end * SECOND), (f"r{start}",)
    )
    return RegistrationSpan(interval, interval.end)


def away(broker_id: int, start: int, end: int | None, lower: int | None = None) -> Absence:
    first = start if lower is None else lower
    return Absence(broker_id, start * SECOND, first * SECOND, end and end * SECOND, "broker_died", True, ())


def test_a_broker_is_away_between_its_registrations():
    registrations = {2: [registered(10, 100), registered(140, 200, "controlled_shutdown"), registered(230, None)]}
    ends = {2: [RegistrationEnd("crash"), RegistrationEnd(None, 195 * SECOND), RegistrationEnd()]}
    gone = Departure(93 * SECOND, 95 * SECOND, 99 * SECOND, 100 * SECOND, ("died",))
    died, stopped = absences(registrations, ends, {2: [gone]})
    assert (died.start_lower, died.start, died.end) == (93 * SECOND, 95 * SECOND, 140 * SECOND)
    assert (died.cause, died.is_explained, died.evidence) == ("broker_died", True, ("died", "r10"))
    # gone by then, and not just then: inferred of what others logged
    assert (died.is_exact, died.inferred_from, died.return_evidence) == (False, "effect_logged", ("r140",))
    # what a controlled shutdown does begins before the registration ends
    assert (stopped.start_lower, stopped.start, stopped.end) == (195 * SECOND, 200 * SECOND, 230 * SECOND)
    assert stopped.cause == "broker_stopped"


def test_an_end_that_nothing_explains_is_a_lost_registration_without_an_end():
    (lost,) = absences({1: [registered(0, 50)]}, {1: [RegistrationEnd()]}, {})
    assert (lost.cause, lost.is_explained, lost.end) == ("broker_lost", False, None)
    assert (lost.is_exact, lost.inferred_from, lost.return_evidence) == (True, None, ())


def test_no_absence_lasts_beyond_the_cluster_that_it_is_of():
    registrations = {1: [registered(0, 50), registered(90, 120), registered(125, None)], 2: [registered(0, 40)]}
    ends = {1: [RegistrationEnd(), RegistrationEnd(), RegistrationEnd()], 2: [RegistrationEnd()]}
    found = absences(registrations, ends, {}, [80 * SECOND])
    # broker 1 is registered in the new cluster at 90, and was away from that for five seconds
    assert [(one.broker_id, one.start, one.end, one.return_evidence) for one in found] == [
        (2, 40 * SECOND, 80 * SECOND, ()),
        (1, 50 * SECOND, 80 * SECOND, ()),
        (1, 120 * SECOND, 125 * SECOND, ("r125",)),
    ]


@pytest.mark.parametrize(
    ("brokers", "at", "found"),
    [
        ((2,), 99, []),  # it was still there
        ((2,), 100, [2]),
        ((2,), 250, [2]),  # back since 200, and may still be catching up
        ((2,), 261, []),
        ((3,), 120, []),  # of another broker
        ((2, 3), 120, [2]),
        ((), 120, [2]),  # names none: by its time
        ((), 300, []),
    ],
)
def test_an_effect_is_of_a_broker_that_it_names_and_that_was_away(brokers, at, found):
    causes = causes_of("under_replicated", brokers, at * SECOND, None, [away(2, 100, 200)])
    assert [cause.broker_id for cause in causes] == found


def test_what_may_have_begun_before_the_return_is_of_the_absence():
    known = [away(2, 100, 200)]
    assert causes_of("no_live_leader", (2,), 900 * SECOND, 250 * SECOND, known) == tuple(known)


def test_of_several_absences_the_last_is_the_cause_and_outages_connect_them():
    known = [away(1, 100, None), away(2, 400, 460), away(2, 500, 560)]
    outage = causes_of("offline", (1, 2), 505 * SECOND, None, known)
    assert outage == (known[2], known[0])
    # who was elected outside of the ISR had been away itself
    back = [away(1, 495, None), away(2, 400, 460)]
    assert causes_of("unclean_election", (1, 2), 500 * SECOND, None, back) == tuple(back)
    # a partition that is merely under-replicated, as it had been for hours, connects nothing
    assert causes_of("under_replicated", (1, 2), 505 * SECOND, None, known) == (known[2],)


def test_absences_that_outages_connect_are_one_incident_that_of_the_first():
    keys = ["1@100", "2@400", "3@450", "2@500", "3@900"]
    roots = connected(keys, [["2@500", "3@450"], ["2@400", "1@100"], ["3@450", "2@400"]])
    assert roots == {"1@100": "1@100", "2@400": "1@100", "3@450": "1@100", "2@500": "1@100", "3@900": "3@900"}


def test_who_becomes_controller_while_the_controller_is_away_is_its_successor():
    tenures = [
        Tenure(2, 1, 0, 101 * SECOND, ()),
        Tenure(3, 2, 102 * SECOND, 500 * SECOND, ()),
        Tenure(1, 3, 501 * SECOND, None, ()),
    ]
    assert [one.controller_epoch for one in successors(away(2, 100, 200), tenures)] == [2]
    assert successors(away(1, 100, 200), tenures) == []
    assert successors(away(3, 300, 400), tenures) == []  # back before another was elected
