"""Questions of ``dashboards/questions/incidents``."""

from __future__ import annotations

from tests.spark.dashboards.kraft_answers.asked import Asked, of


@of("incidents")
def incidents(ask: Asked) -> None:
    worst = ask("incidents")[0]
    assert (worst.harm, worst.brokers) == ("records_lost", [1, 2])
    assert worst.unclean_elections_count == 3
    assert worst.lost_count_lower <= 2 * 221 <= worst.lost_count_upper


@of("incident-events")
def incident_events(ask: Asked) -> None:
    kinds = {row.event_kind for row in ask("incident-events")}
    assert {"broker_died", "broker_returned", "unclean_election", "records_lost", "offline"} <= kinds
