"""Controllers and brokers of a real KRaft quorum, by its metadata log."""

from __future__ import annotations

from reconstruct.cluster.brokers import broker_registrations
from reconstruct.cluster.controllers import controller_tenures, judge_controller_epochs
from reconstruct.cluster.metadata_log import broker_facts, broker_settings, elected_controllers, supported_levels
from reconstruct.cluster.settings import EVERY_BROKER
from reconstruct.findings.verdicts import Verdicts
from reconstruct.metadata_log.timeline import replay_rows
from reconstruct.model.versions import release_of_level
from tests.support.metadata_log import NODES, ONE_VOTER, cluster_log

LOG, _ = cluster_log(NODES)
CHANGES = replay_rows(LOG.rows, LOG).changes


def test_each_epoch_of_the_quorum_is_a_tenure_of_its_leader() -> None:
    facts = list(elected_controllers(LOG.rows))
    spans = controller_tenures(facts)
    assert [(s.tenure.controller_epoch, s.tenure.controller_id) for s in spans] == [(1, 1), (2, 3), (3, 2), (4, 1)]
    assert [s.tenure.start for s in spans[1:]] == [s.tenure.end for s in spans[:-1]]
    assert {s.inferred_from for s in spans} == {None}
    verdicts = Verdicts()
    judge_controller_epochs(facts, spans, verdicts)
    assert verdicts.counts == {("R11", "kept"): 4}


def test_a_broker_is_live_while_it_is_not_fenced() -> None:
    found = {
        broker: [
            (span.interval.evidence[0], span.interval.evidence[1:], span.interval.value.end_reason) for span in spans
        ]
        for broker, spans in broker_registrations(broker_facts(CHANGES)).items()
    }
    assert found == {
        1: [("16@1", ("128@3",), "controlled_shutdown"), ("167@4", (), None)],
        2: [("18@1", (), None)],
        3: [("29@1", ("85@3",), "registration_lost"), ("133@3", (), None)],
    }
    spans = [span for of in broker_registrations(broker_facts(CHANGES)).values() for span in of]
    assert {span.interval.inferred_from for span in spans} == {None}
    assert all(span.ended_after == span.ended_before == span.interval.end for span in spans if span.interval.end)


def test_the_only_voter_leads_from_the_first_record_on() -> None:
    log, _ = cluster_log((ONE_VOTER,))
    (span,) = controller_tenures(elected_controllers(log.rows))
    assert (span.tenure.controller_id, span.tenure.controller_epoch, span.tenure.end) == (1, 1, None)


def test_settings_of_all_brokers_are_known_when_they_were_made() -> None:
    ((broker, setting),) = list(broker_settings(CHANGES))
    assert (broker, setting.min_insync_replicas, setting.is_first) == (EVERY_BROKER, 1, True)


def test_brokers_register_their_release() -> None:
    assert {str(release_of_level(level)) for level in supported_levels(CHANGES)} == {"4.1"}
    releases = [(7, "3.3"), (8, "3.4"), (19, "3.7"), (21, "3.9"), (25, "4.0"), (29, "4.2"), (30, "4.3"), (31, "None")]
    assert [(level, str(release_of_level(level))) for level, _ in releases] == releases
