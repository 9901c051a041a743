"""Incidents in rows and words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconstruct.incidents.causes import Absence
from reconstruct.incidents.story import Effects, Successor, Totals, events_of, incident_of
from reconstruct.time.instants import utc

SECOND = 1_000_000
DIED = Absence(
    2, 100 * SECOND, 97 * SECOND, 141 * SECOND, "broker_died", True, ("died",), ("back",), False, "effect_logged"
)


def effects(
    kind: str, start: int, end: int, rows: int = 1, partitions: int = 1, lost: tuple[int, int | None] = (0, 0)
) -> Effects:
    ends = (start * SECOND, end * SECOND, False)
    return Effects(kind, 2, *ends, rows, partitions, *lost, (2,), ("orders-0",), (), (), (kind,))


OUTAGE = replace(effects("no_live_leader", 100, 106, 12, 12), harms=("unavailable",))
ELECTIONS = effects("election", 106, 106, 9, 9)
UNCLEAN = effects("unclean_election", 106, 106, 3, 3)
LOSS = effects("records_lost", 106, 106, lost=(240, 260))
BEHIND = effects("under_replicated", 106, 150, 14, 14)
ALL = (OUTAGE, ELECTIONS, UNCLEAN, LOSS, BEHIND)
TOTALS = Totals(14, 12, 48_100_000, 0)


def test_the_death_of_a_broker_and_what_followed():
    incident = incident_of([DIED], ALL, TOTALS)
    assert (incident.cause, incident.confidence, incident.brokers, incident.harm) == (
        "broker_died",
        "observed",
        (2,),
        "records_lost",
    )
    assert (incident.valid_from_lower, incident.start, incident.end) == (97 * SECOND, 100 * SECOND, 150 * SECOND)
    assert (incident.elections_count, incident.unclean_elections_count) == (12, 3)
    assert (incident.lost_count_lower, incident.lost_count_upper) == (240, 260)
    assert incident.summary == (
        "Broker 2 died by 1970-01-01 00:01:40.000 UTC (last sign of life 1970-01-01 00:01:37.000 UTC), and was back"
        " after 41.0 s. 12 partitions had no live or no registered leader, at least 48.1 s together. 12 elections of"
        " another leader, 3 to a replica outside of the ISR. Committed records lost: 240 to 260. Over at"
        " 1970-01-01 00:02:30.000 UTC."
    )
    assert incident.evidence == (
        "died",
        "no_live_leader",
        "election",
        "unclean_election",
        "records_lost",
        "under_replicated",
    )


def test_what_has_not_ended_is_not_over_and_has_no_length():
    lasting = replace(OUTAGE, is_open=True)
    incident = incident_of([replace(DIED, end=None)], [lasting], TOTALS)
    assert (incident.end, incident.unavailable_ms) == (None, None)
    assert incident.summary.endswith("not all have one again. Not over where the evidence ends.")
    # the broker is back, and a replica is still missing
    assert incident_of([DIED], [replace(BEHIND, is_open=True)], TOTALS).end is None


def test_a_loss_without_a_bound_is_said_so():
    unbounded = replace(LOSS, event_kind="records_perhaps_lost", count_lower=0, count_upper=None)
    incident = incident_of([DIED], [LOSS, unbounded], TOTALS)
    assert (incident.lost_count_lower, incident.lost_count_upper) == (240, None)
    assert "Committed records lost: at least 240." in incident.summary
    incident = incident_of([DIED], [replace(unbounded, count_upper=3)], TOTALS)
    assert "Committed records that may be lost: at most 3." in incident.summary


def test_only_what_is_proven_is_a_harm():
    # a leader that lost its session may have gone on serving, and a deposed one that went on need not have lost any
    expired = Absence(2, 100 * SECOND, 100 * SECOND, 141 * SECOND, "session_expired", True, (), ("back",))
    outage, both = effects("offline", 100, 106), effects("two_leaders", 100, 106)
    assert incident_of([expired], [outage, both], TOTALS).harm == "possible"
    assert incident_of([expired], [replace(outage, harms=("unavailable",))], TOTALS).harm == "unavailable"


def test_what_was_inferred_of_a_part_is_said_of_the_event_and_of_the_whole():
    exact = replace(DIED, start_lower=DIED.start, is_exact=True, inferred_from=None)
    assert incident_of([exact], [ELECTIONS], TOTALS).inferred_from is None
    assert incident_of([DIED], [ELECTIONS], TOTALS).inferred_from == "effect_logged"
    behind = replace(BEHIND, inferred_from="next_request")
    assert incident_of([exact], [ELECTIONS, behind], TOTALS).inferred_from == "next_request"
    inferred = {event.event_kind: event.inferred_from for event in events_of([DIED], [], [ELECTIONS, behind])}
    assert inferred == {
        "broker_died": "effect_logged",
        "election": None,
        "under_replicated": "next_request",
        "broker_returned": None,
    }


def test_a_return_is_shown_by_its_own_evidence_and_a_cluster_made_anew_is_none():
    back = [event for event in events_of([DIED], [], []) if event.event_kind == "broker_returned"]
    assert [(event.began_at, event.evidence) for event in back] == [(141 * SECOND, ("back",))]
    anew = replace(DIED, return_evidence=())
    assert [event.event_kind for event in events_of([anew], [], [])] == ["broker_died"]
    assert "had not come back when the cluster was created again" in incident_of([anew], [], Totals()).summary


def test_a_broker_of_which_only_its_next_registration_tells_was_registered_again_by_then():
    seen = replace(DIED, end=DIED.start, is_exact=False)
    (back,) = (event for event in events_of([seen], [], []) if event.event_kind == "broker_returned")
    assert back.description == "broker 2 was registered again"
    summary = incident_of([seen], [], Totals()).summary
    assert ", and was registered again by then." in summary
    assert f" by {utc(DIED.start)}" in summary


def test_without_a_broker_that_was_away_nothing_is_made_up():
    incident = incident_of([], [replace(BEHIND, broker_id=None, brokers=(2, 3))], Totals(14))
    assert (incident.cause, incident.confidence, incident.brokers, incident.harm) == (
        "replicas_behind",
        "unknown",
        (2, 3),
        "none",
    )
    assert "those of brokers 2 and 3, and no broker was seen to be away" in incident.summary
    found = replace(
        effects("finding", 100, 100, 2, 0), broker_id=None, harms=("replicas_differ",), names=("R36 replica_diverged",)
    )
    incident = incident_of([], [found], Totals())
    assert (incident.cause, incident.findings_count, incident.harm) == ("rule_broken", 2, "replicas_differ")
    assert incident.summary.startswith("2 findings that no absence of a broker explains. Over at ")
    (event,) = events_of([], [], [found])
    assert (event.description, event.finding_types) == ("2 findings: R36 replica diverged", ("R36 replica_diverged",))


@pytest.mark.parametrize(
    ("seconds", "said"), [(30, "30.0 s"), (75, "1 min 15.0 s"), (203_681, "2 d 08 h"), (21 * 86_400, "21 d 00 h")]
)
def test_what_lasted_long_is_told_in_minutes_hours_or_days(seconds, said):
    away = replace(DIED, end=DIED.start + seconds * SECOND)
    incident = incident_of([away], [ELECTIONS], Totals(12, 12, seconds * SECOND))
    assert f"was back after {said}." in incident.summary
    (returned,) = (event for event in events_of([away], [], []) if event.event_kind == "broker_returned")
    assert returned.description == f"broker 2 was registered again after {said}"


def test_an_absence_that_did_nothing_is_an_incident_of_no_harm():
    incident = incident_of([DIED], [], Totals())
    assert (incident.harm, incident.end) == ("none", 141 * SECOND)
    assert "no partition that it did anything to" in incident.summary


def test_events_are_in_order_the_cause_before_what_it_did_at_the_same_instant():
    new = Successor(2, 3, 7, 101 * SECOND, ("elected",))
    events = events_of([DIED], [new], ALL)
    assert [event.event_kind for event in events] == [
        "broker_died",
        "no_live_leader",
        "controller_elected",
        "election",
        "unclean_election",
        "records_lost",
        "under_replicated",
        "broker_returned",
    ]
    assert {event.event_kind: event.description for event in events}["records_lost"] == (
        "240 to 260 committed records of 1 partition lost"
    )
    assert [event.began_at for event in events] == sorted(event.began_at for event in events)
