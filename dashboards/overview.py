"""A cluster in a few sentences: what was lost, found, offline, who was controller; for the page and the terminal."""

from __future__ import annotations

from dashboards.section import Cluster
from dashboards.sections import availability, findings
from dashboards.sections.cluster import brokers, controllers
from dashboards.sections.coverage import certainty
from dashboards.sections.offsets import offsets
from dashboards.sections.offsets.words import loss_verdict
from dashboards.sections.timelines import partitions


def losses(cluster: Cluster) -> str:
    """What was lost; empty where nothing is known to be."""
    curves = cluster.of(offsets.SECTION)
    return loss_verdict(curves)


def verdict(cluster: Cluster) -> tuple[str, ...]:
    """The verdict without the losses, a sentence each, that of the findings first."""
    found, available = cluster.of(findings.SECTION), cluster.of(availability.SECTION)
    tenures, registrations = cluster.of(controllers.SECTION), cluster.of(brokers.SECTION)
    judged = partitions.is_judged(cluster)
    sentences = (
        findings.verdict(found.counts, judged, found.rules),
        availability.offline_verdict(available, judged, partitions.totals(cluster).partitions_total),
        availability.isr_verdict(available),
        controllers.verdict(tenures),
        brokers.verdict(registrations),
    )
    return tuple(filter(None, sentences))


def certainty_sentence(cluster: Cluster) -> str:
    """How much of the timelines was observed."""
    inferences = cluster.of(certainty.SECTION)
    return certainty.sentence(inferences, partitions.totals(cluster).without_timeline_total)


def broker_ids(cluster: Cluster) -> list[int]:
    """Every broker id that the cluster's evidence names, in order."""
    ids = {broker for broker in cluster.totals.brokers if broker is not None}
    ids |= {row.broker_id for row in cluster.of(brokers.SECTION)}
    ids |= {row.controller_id for row in cluster.of(controllers.SECTION)}
    for lane in cluster.of(partitions.SECTION):
        for segment in lane.segments:
            ids |= {segment.leader, *segment.isr}
        ids |= {replica for row in lane.assignments for replica in row.replicas}
    ids |= {step.replica_id for curve in cluster.of(offsets.SECTION) for step in curve.steps}
    return sorted(broker for broker in ids if broker >= 0)


def tenures_total(cluster: Cluster) -> int:
    """How many controller tenures the cluster has."""
    tenures = cluster.of(controllers.SECTION)
    return tenures[0].total if tenures else 0
