"""Every scenario on four releases, some on those between: captured, read, and compared with what the cluster truly did.

``make test-cluster`` runs them all; a short one of the oldest release and one of the newest run in ``make test``.
"""

from __future__ import annotations

import json
from typing import Final

import pytest

from jobs.lab.machines.releases import BETWEEN, RELEASES
from jobs.lab.scenarios.catalogue import SCENARIOS
from tests.cluster.bent import bends_misjudged
from tests.cluster.conftest import Figures, Player
from tests.cluster.measuring import LOGS_ALONE, Measured, measure_played
from tests.support.truth.alignment import Score
from tests.support.truth.departures import deaths_misjudged, registrations_misjudged, silences_misjudged, written

pytestmark = pytest.mark.timeout(900)

#: What the releases between those of the whole matrix play: what versions do in different ways.
ON_RELEASES_BETWEEN: Final = ("reassignment", "unclean-election", "zombie", "deletion-dead-broker")
IN_EVERY_RUN: Final = (("preferred-election", "0.8.2.2"), ("kill", "3.9.1"))
LOWEST_RECALL: Final = 0.97
HIGHEST_EXTRAS: Final = 0.03
#: A line is printed when its thread gets to it: on a machine with too much to do, later.
LONGEST_MEDIAN_TIME_ERROR_MS: Final = 500
FEWEST_PROBES: Final = 30
#: Records that the leader had when it was killed, and that the producer was not told of.
IN_FLIGHT: Final = 25
LEADERS_DIE: Final = ("kill", "controller-failover", "zombie", "session-expiry", "unclean-election")

MATRIX: Final = [
    pytest.param(
        name,
        release.version,
        marks=[] if (name, release.version) in IN_EVERY_RUN else [pytest.mark.cluster],
        id=f"{name}-{release.version}",
    )
    for release in (*RELEASES, *BETWEEN)
    for name, scenario in SCENARIOS.items()
    if scenario.plays_on(release) and not scenario.migrates and (release in RELEASES or name in ON_RELEASES_BETWEEN)
]


@pytest.mark.parametrize(("scenario", "version"), MATRIX)
def test_what_was_captured_tells_what_the_cluster_did(
    scenario: str, version: str, player: Player, figures: Figures
) -> None:
    measured = measure_played(player(scenario, version))
    figures.add(measured)
    assert problems(measured) == []


def problems(measured: Measured) -> list[str]:
    """Everything that is not as it must be: all of it at once, since a run of a cluster costs half a minute."""
    found = []
    for subject, score in measured.scores.items():
        if not is_good(score, one_more=subject == LOGS_ALONE):
            found.append(f"{subject}: recall {score.recall:.1%}, extras {score.extras:.1%}\n{score.diff()}")
    if not measured.states.truth_count:
        found.append("the cluster decided nothing")
    if measured.median_time_error_ms > LONGEST_MEDIAN_TIME_ERROR_MS:
        found.append(f"states begin {measured.median_time_error_ms:.0f} ms off in the median")
    found += [
        f"{probe} is not in [{low:g}, {high:g}], which the logs and checkpoints are said to prove"
        for probe, low, high in measured.probes.outside
    ]
    if measured.probes.inside < FEWEST_PROBES:
        found.append(f"only {measured.probes.inside} answers of brokers were captured")
    found += [f"error that nothing explains: {error}" for error in measured.unexplained_errors]
    found += scenario_shown(measured)
    found += losses_misjudged(measured)
    found += registrations_misjudged(measured.truth, measured.plain)
    found += deaths_misjudged(measured.played.truth, measured.truth, measured.plain)
    found += silences_misjudged(measured.played.truth, measured.truth, measured.plain)
    found += bends_misjudged(measured.played)
    return found


def losses_misjudged(measured: Measured) -> list[str]:
    """What is said to be lost, against the records that the producer was told are kept."""
    if measured.played.scenario.name != "unclean-election":
        return [f"{partition} is said to have lost records" for partition in measured.losses]
    events = [json.loads(line) for line in (measured.played.truth / "events.jsonl").read_text().splitlines()]
    acknowledged = next(event for event in events if event["what"] == "load_done")["last_acked_offset"]
    wrong = []
    for number in (0, 1):
        losses, last = measured.losses.get(("ledger", number), ()), acknowledged[f"ledger-{number}"]
        if len(losses) != 1:
            wrong.append(f"ledger-{number} lost records once, not {len(losses)} times")
            continue
        (loss,) = losses
        low, high = loss.lost_to_offset_lower, loss.lost_to_offset_upper
        if low is None or high is None or not low - IN_FLIGHT <= last <= high:
            wrong.append(f"ledger-{number} lost up to {last}, which is not within [{low}, {high}]")
    return wrong + [
        f"{partition} is said to have lost records" for partition in measured.losses if partition[0] != "ledger"
    ]


def is_good(score: Score, one_more: bool) -> bool:
    """Whether nearly all is found, and nearly nothing else; ``one_more`` forgives one of each."""
    missed, extra = score.truth_count - score.matched_count, score.ours_count - score.matched_count
    return (score.recall >= LOWEST_RECALL or missed <= one_more) and (
        score.extras <= HIGHEST_EXTRAS or extra <= one_more
    )


def scenario_shown(measured: Measured) -> list[str]:
    """What the scenario must have done to the cluster, by ZooKeeper's log: else nothing was tested."""
    truth, name = measured.truth, measured.played.scenario.name
    epochs = {state.leader_epoch for state in truth.states}
    shrunk = any(len(state.isr) < 2 for state in truth.states) or len({len(state.isr) for state in truth.states}) > 1
    shown = {
        "controller-failover": len(truth.controllers) >= 2,
        "zombie": len(truth.controllers) >= 2,
        "session-expiry": len(truth.registrations) >= 4,
        "paused-broker": shrunk and len(truth.registrations) == 3,
        "preferred-election": len(epochs) >= 3,
        "added-partitions": len({state.partition_id for state in truth.states}) == 4,
        "reassignment": len({assignment.replicas for assignment in truth.assignments}) >= 5,
        "deletion-dead-broker": any(life.deleted for life in truth.topics),
        "creation": len(truth.topics) == 3,
        "produce": epochs == {0},
    }
    if name in LEADERS_DIE and not any(known.silences for _, known in written(measured.played.truth)):
        return ["a leader died, and the producer was answered all the time"]
    missing = [] if shown.get(name, len(epochs) >= 2) else [f"the cluster did not do what {name} is about"]
    types = {finding.divergence_type for _, finding in measured.findings}
    return missing + [f"nothing tells of {wanted}" for wanted in measured.played.scenario.shows if wanted not in types]
