"""At rest, what each live broker holds is what was decided last (R24)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconstruct.partitions.evidence import Evidence
from reconstruct.time.intervals import Interval
from tests.support.captures.packed import Unpacker
from tests.unit.reconstruct.partitions.rules.bent_beliefs import Subject, Which, types

#: A partition of which nothing is decided at the end for more than half a minute, a broker that caches, a replica.
RESTING = {
    "lifecycle-0.8.2.2": ("orders", 2, 2, 2),
    "lifecycle-1.1.1": ("audit.log_v2", 0, 2, 1),
    "lifecycle-3.9.1": ("audit.log_v2", 0, 2, 1),
}
NAMES = tuple(RESTING)
REQUESTS = ("leader_and_isr_sent", "update_metadata_sent")
CACHED = ("metadata_cached", "update_metadata_sent")


def resting(name: str, unpacked: Unpacker) -> tuple[Subject, int]:
    """A partition, and the leader epoch that its last leader began with."""
    subject = Subject.of(unpacked(name), *RESTING[name][:2])
    decided = [interval.value for interval in subject.fold().decided]
    others = [state.leader_epoch for state in decided if state.leader != decided[-1].leader]
    return subject, min(state.leader_epoch for state in decided if state.leader_epoch > max(others))


def never_told(subject: Subject, broker_id: int, epoch: int, kinds: tuple[str, ...]) -> list[Evidence]:
    """Without the lines that tell the broker of the epoch or a later one, those of the controller included."""
    is_later = [fact for fact in subject.facts if fact.leader_epoch is not None and fact.leader_epoch >= epoch]
    own = {
        (fact.controller_id, fact.controller_epoch, fact.correlation_id)
        for fact in subject.facts
        if fact.kind == "leader_and_isr_received" and fact.broker_id == broker_id and fact in is_later
    }
    requests = own if "metadata_cached" not in kinds else set()

    def is_of_request(fact: Evidence) -> bool:
        request = (fact.controller_id, fact.controller_epoch, fact.correlation_id)
        return fact.broker_id == broker_id and fact.kind != "metadata_cached" and request in requests

    kept = []
    for fact in subject.facts:
        sends = fact.kind in REQUESTS and fact.kind in kinds and fact in is_later
        if sends and broker_id in (fact.to_broker_ids or ()):
            others = tuple(b for b in fact.to_broker_ids or () if b != broker_id)
            if others:
                kept.append(replace(fact, to_broker_ids=others))
            continue
        told = fact.broker_id == broker_id and fact.kind in kinds and fact in is_later
        if not (told and fact.kind not in REQUESTS) and not is_of_request(fact):
            kept.append(fact)
    assert len(kept) < len(subject.facts)
    return kept


ROLE = ("leader_and_isr_sent", "leader_and_isr_received", "leader_epoch_started", "leader_and_isr_ignored")


@pytest.mark.parametrize("name", NAMES)
def test_a_cache_that_was_never_told(name: str, unpacked: Unpacker) -> None:
    (subject, epoch), broker_id = resting(name, unpacked), RESTING[name][2]
    bent = never_told(subject, broker_id, epoch, CACHED)
    found = subject.found(bent)
    assert [(f.divergence_type, f.broker_id, f.severity) for f in found if f.rule_id == "R24"] == [
        ("cache_differs_at_rest", broker_id, "warning")
    ]
    assert_nothing_else_is_accused(subject, bent, broker_id)


@pytest.mark.parametrize("name", NAMES)
def test_a_role_that_was_never_told(name: str, unpacked: Unpacker) -> None:
    (subject, epoch), broker_id = resting(name, unpacked), RESTING[name][3]
    bent = never_told(subject, broker_id, epoch, ROLE)
    found = subject.found(bent)
    assert [(f.divergence_type, f.broker_id, f.severity) for f in found if f.rule_id == "R24"] == [
        ("role_differs_at_rest", broker_id, "warning")
    ]
    assert_nothing_else_is_accused(subject, bent, broker_id)


def assert_nothing_else_is_accused(subject: Subject, bent: list[Evidence], broker_id: int) -> None:
    """The same evidence where the broker need not have been told, or its log may lack the line."""
    view = subject.view
    last = view.liveness[broker_id][-1]
    until = max(span.end for span in view.logs[broker_id])
    late = Interval(until - 29_000_000, None, last.value, last.evidence)
    gone = replace(last, end=until - 1)
    for neighbour in (
        replace(view, liveness={**view.liveness, broker_id: (late,)}),
        replace(view, liveness={**view.liveness, broker_id: (gone,)}),
        replace(view, process_starts={**view.process_starts, broker_id: ((until - 29_000_000, "again"),)}),
        replace(view, lossy_logs=frozenset({broker_id})),
        replace(view, logs={**view.logs, broker_id: ()}),
        replace(view, tenures=(replace(view.tenures[-1], start=until - 29_000_000),)),
    ):
        assert "R24" not in {finding.rule_id for finding in subject.found(bent, neighbour)}


@pytest.mark.parametrize("name", NAMES)
def test_a_line_that_is_missing_is_no_difference(name: str, unpacked: Unpacker) -> None:
    (subject, epoch), broker_id = resting(name, unpacked), RESTING[name][3]

    def is_last(kind: str) -> Which:
        return lambda fact: fact.kind == kind and fact.broker_id == broker_id and fact.leader_epoch == epoch

    if name != "lifecycle-3.9.1":  # since 2.6 what is sent to the caches is logged as a number only
        assert types(subject.found(subject.without(is_last("metadata_cached")))) == set()
    assert "role_differs_at_rest" not in types(subject.found(subject.without(is_last("leader_and_isr_received"))))


def test_a_topic_on_its_way_out_is_not_judged(unpacked: Unpacker) -> None:
    (subject, epoch), broker_id = resting("lifecycle-1.1.1", unpacked), 2
    bent = never_told(subject, broker_id, epoch, CACHED)
    deletion = replace(bent[-1], kind="znode_deletion_requested", source_kind="znode", broker_id=None, evidence_id="z")
    assert subject.found([*bent, deletion]) == []
