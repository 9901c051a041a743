"""Faults made in raw text are found with the right rule, subject and severity, and accuse nobody else."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

import pytest

from tests.figures import Figure
from tests.support.bends.faults.drafts import Fault, Site
from tests.support.bends.faults.measure import (
    KINDS,
    Outcome,
    Result,
    findings_of,
    kind_name,
    outcome,
    outcomes,
    table,
)
from tests.support.budget import IS_HARD
from tests.support.captures.packed import Unpacker, capture_names
from tests.support.captures.text import CaptureText

LOWEST_RECALL = 0.98
#: Captures of each era that have most kinds between them; with HYPOTHESIS_PROFILE=hard all, at four places.
_CAPTURES = ("failover-0.8.2.2", "lifecycle-1.1.1", "failover-3.9.1")
#: Kinds that have no place in these.
_MORE: Final = {
    "lifecycle-3.9.1": ("stop_replica_not_sent", "deletion_not_sent", "bounce_unnoticed"),
    "reassign_busy-1.1.1": ("reassignment_shrinks_early",),
    "unclean-3.9.1-info": ("unclean_election", "unclean_election_of_last"),
}
#: By capture: kinds and places that were once missed.
_ONCE_MISSED: Final = {
    "failover-0.8.2.2": (
        ("good_request_refused", "broker-1/logs/state-change.log:191 epoch 1 against 3"),  # later written to the znode
        ("fetches_from_a_stranger", "orders-1 broker-2/logs/server.log:300"),  # told of the same epoch again, later
    ),
    "failover-1.1.1": (
        ("update_metadata_not_sent", "broker-3/logs/state-change.log:124 to 2"),  # asked for by no transition
    ),
    "lifecycle-1.1.1": (
        ("update_metadata_not_sent", "broker-2/logs/state-change.log:234 to 3"),  # the last of its tenure
        ("leader_and_isr_not_sent", "broker-1/logs/state-change.log:633 to 2"),  # sent again for a reassignment
        ("leader_and_isr_not_sent", "broker-1/logs/state-change.log:826 to 1"),  # received of another epoch
        ("update_metadata_not_sent", "broker-1/logs/state-change.log:799 to 1"),  # what was decided before came with it
        ("deletion_with_dead_replica", "doomed-1 broker-1/logs/state-change.log:1042 replica 3"),  # worded as by 0.8
    ),
    "failover-3.9.1": (
        ("follows_another_leader", "broker-2/logs/state-change.log:149"),  # a leader that was not available
        ("older_epoch_in_cache", "broker-1/logs/controller.log:115: broker 2"),  # in the controller's list alone
        ("update_metadata_not_sent", "broker-1/logs/state-change.log:187"),  # the next request restates the state
    ),
    "lifecycle-3.9.1": (
        ("sent_to_no_replica", "broker-3/logs/state-change.log:483"),  # of a topic that is not told of later
        ("isr_outside_assignment", "payments-0 version 1"),  # the next assignment was logged before its znode was read
        ("leader_and_isr_not_sent", "broker-3/logs/state-change.log:474 to 1"),  # the controller went 0.2 s later
        ("deletion_not_sent", "broker-1/logs/state-change.log:840 to 3"),  # the StopReplica without deletion was
        ("reassignment_removes_first", "broker-1/logs/state-change.log:710: new [1], old [3]"),  # created before
    ),
    "lifecycle-0.8.2.2": (
        ("update_metadata_not_sent", "broker-2/logs/state-change.log:722 to 1"),  # sent with a later batch
    ),
    "reassign_busy-1.1.1": (
        ("leader_and_isr_not_sent", "broker-1/logs/state-change.log:714 to 3"),  # to a replica that goes next
    ),
    "checkpoints-1.1.1": (
        ("good_request_refused", "broker-3/logs/state-change.log:70 epoch 1 against 3"),  # decided by its controller
        ("good_request_refused", "broker-2/logs/state-change.log:97 epoch 1 against 3"),  # it held epoch 1 later
        ("leader_and_isr_not_sent", "broker-1/logs/state-change.log:153 to 1"),  # to a broker that died later
    ),
}
#: By capture and kind: what was once said beside the fault of somebody who did nothing wrong, of the same lines.
_ONCE_ACCUSED: Final = {
    ("failover-1.1.1", "leaders_of_two_sources"): {"request_not_decided", "cache_never_decided"},
    ("failover-1.1.1", "partition_epoch_repeats"): {"request_not_decided", "cache_never_decided", "caches_disagree"},
    ("failover-1.1.1", "isr_empty"): {"caches_disagree"},
    ("failover-0.8.2.2", "leader_epoch_repeats"): {"caches_disagree"},
    ("failover-0.8.2.2", "leader_epoch_falls"): {"ignored_without_reason"},
    ("failover-0.8.2.2", "isr_change_raises_epoch"): {"stale_controller_wrote"},
    ("failover-0.8.2.2", "illegal_partition_move"): {"step_out_of_order"},
    ("lifecycle-3.9.1", "partition_epoch_repeats"): {"leader_epoch_raised_by_isr_change"},
    ("failover-3.9.1", "sent_another_epoch"): {"ignored_without_reason"},
    ("lifecycle-0.8.2.2", "leader_epoch_repeats"): {"cache_differs_at_rest", "role_differs_at_rest"},
}


@pytest.fixture(scope="module")
def site(unpacked: Unpacker) -> Callable[[str], Site]:
    return cache(lambda name: Site.read(name, CaptureText.read(unpacked(name))))


@pytest.fixture(scope="module")
def found(site: Callable[[str], Site]) -> list[Outcome]:
    names, places = (capture_names(), 4) if IS_HARD else (_CAPTURES, 1)
    result = [outcome for name in names for outcome in outcomes(site(name), places)]
    for name, kinds in () if IS_HARD else _MORE.items():
        result += outcomes(site(name), 1, kinds=[kind for kind in KINDS if kind_name(kind) in kinds])
    print(table(result))
    return result


def _named(fault: Fault) -> str:
    topic, partition_id = fault.partition or ("the cluster", "")
    return f"{topic}-{partition_id} {fault.note}"


@pytest.mark.parametrize("name", _ONCE_MISSED)
def test_what_was_once_missed_is_found(name: str, site: Callable[[str], Site]) -> None:
    wanted = _ONCE_MISSED[name]
    of_kinds = [kind for kind in KINDS if kind_name(kind) in {kind for kind, _ in wanted}]
    faults = [(kind_name(kind), fault) for kind in of_kinds for fault in kind(site(name))]
    for kind, place in wanted:
        own = [fault for of_kind, fault in faults if of_kind == kind and place in (fault.note, _named(fault))]
        assert own, f"{kind}: {place} is no place of {name}"
        results = {outcome(site(name), fault, findings_of(site(name).plain)).result for fault in own}
        assert results == {Result.FOUND}, f"{kind}: {place}"


def test_faults_are_found_with_the_right_rule_subject_and_severity(found: list[Outcome], record_property: Any) -> None:
    missed = [
        f"{each.result}: {each.capture}: {each.fault.kind} {each.fault.partition} {each.fault.note}"
        for each in found
        if each.result not in (Result.FOUND, Result.UNPROVABLE)
    ]
    provable = [each for each in found if each.result is not Result.UNPROVABLE]
    assert len(provable) - len(missed) >= LOWEST_RECALL * len(provable), "\n".join([table(found), *missed])
    record_property(Figure.PLANTED, len(provable))
    record_property(Figure.FOUND, len(provable) - len(missed))


def test_what_other_rules_say_beside_is_known_to_be_true_of_the_lines(found: list[Outcome]) -> None:
    unknown = [(each.capture, each.fault.kind, each.fault.note, each.not_looked_at) for each in found]
    assert [said for said in unknown if said[-1]] == []


def test_no_other_partition_is_accused(found: list[Outcome]) -> None:
    assert [(each.capture, each.fault.kind, each.fault.note, each.others) for each in found if each.others] == []


@pytest.mark.parametrize(("name", "kind"), _ONCE_ACCUSED)
def test_who_did_as_was_decided_is_not_accused_beside(name: str, kind: str, site: Callable[[str], Site]) -> None:
    (of_kind,) = (one for one in KINDS if kind_name(one) == kind)
    tried = outcomes(site(name), 4, kinds=[of_kind])
    assert {each.result for each in tried} == {Result.FOUND}
    beside = {said.split()[1] for each in tried for said in each.beside}
    assert beside.isdisjoint(_ONCE_ACCUSED[name, kind])


def test_every_kind_is_tried(found: list[Outcome]) -> None:
    assert len(KINDS) >= 40
    assert len({each.fault.kind for each in found}) >= 42
