"""What the report says of controllers' episodes and of what replicas went through."""

from __future__ import annotations

from dashboards.render import render
from dashboards.sections.cluster.episodes import WIDTH, Episode
from dashboards.sections.timelines.replicas import Cut, Flap, GivenUp, Replicas, Stop, between
from tests.unit.dashboards.test_render import PLACE, cluster, data

STEPS = (
    "epoch_incremented +0",
    "register_handlers +20",
    "initialise_context +50",
    "ready +100",
    "start_scheduler +130",
)


def test_the_bar_of_a_take_over_is_as_long_as_it_took_and_ends_when_it_was_ready():
    bar = Episode(1, 4, 0.0, took_over_ms=100, steps=STEPS).bar
    assert [(step.name, step.at_ms, step.x, step.width) for step in bar] == [
        ("epoch incremented", 0, 0.0, 40.0),
        ("register handlers", 20, 40.0, 60.0),
        ("initialise context", 50, 100.0, 100.0),
    ]
    assert bar[-1].x + bar[-1].width == WIDTH
    assert Episode(1, 4, 0.0, steps=STEPS).bar == ()


def test_an_episode_says_what_there_was_and_nothing_else():
    quiet = Episode(1, 1, 0.0)
    assert (quiet.found, quiet.did, quiet.failed) == ("–", "–", "")
    busy = Episode(
        2,
        3,
        0.0,
        found_brokers=(1, 2),
        found_partitions_count=5,
        found_offline_count=1,
        elections_count=2,
        left_leaderless_count=1,
        requests_count=7,
        brokers_went_count=1,
        trouble=("controller_event_failed x2",),
        resigned_ms=30,
    )
    assert busy.found == "2 brokers live, 5 partitions, 1 offline"
    assert busy.did == "2 elections, 1 partition left leaderless, 7 requests, 1 broker went, resigned in 30 ms"
    assert busy.failed == "controller event failed x2"


def test_counts_are_as_exact_as_they_are_known():
    shown = [between(3, 3), between(3, 5), between(3, None), between(0, None)]
    assert shown == ["3", "3 to 5", "3 or more", "not known"]


def test_the_page_shows_cuts_flaps_fetchers_stops_and_episodes_and_where_the_rest_is():
    replicas = Replicas(
        cuts=(Cut(**PLACE, replica_id=2, at_ms=2000, truncated_to=40, cause="leader_epoch", leader=1, total=12),),
        flaps=(Flap(**PLACE, replica_id=3, from_ms=3000, shrink_count=4, expand_count=3, longest_absence_ms=2500),),
        given_up=(GivenUp(**PLACE, broker_id=3, from_ms=4000, to_ms=None),),
        stops=(Stop(1, 5000, "clean_stop", shutdown_took_ms=1200, shutdown_retry_count=2),),
    )
    episodes = (Episode(1, 4, 1000.0, took_over_ms=100, steps=STEPS),)
    page = render(data(cluster(timelines__replicas=replicas, cluster__episodes=episodes)), "Test")
    assert "broker 1: clean stop (1.200 s to move its leaders, asked 2 times again)" in page
    assert "1 of 12 cuts" in page
    assert "5.000 s</td></tr>" in page, "still given up when the evidence ends"
    assert page.count("ledger-0") >= 3
    assert "register handlers, 20 ms after the first step" in page
    empty = render(data(cluster()), "Test")
    assert "what replicas went through" not in empty
    assert "take-over" not in empty
