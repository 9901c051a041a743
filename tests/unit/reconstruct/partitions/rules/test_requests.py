"""The controller's transitions done again, and what it sent (R15)."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from reconstruct.cluster.spans import Registration
from reconstruct.cluster.view import ClusterView
from reconstruct.model.versions import ANY_VERSION, v
from reconstruct.partitions.evidence import Evidence, in_order
from reconstruct.partitions.reexecution.controller_log import controller_logs
from reconstruct.partitions.reexecution.model_runs import (
    ControllerCache,
    Leadership,
    SentRequest,
    requests_of_election,
    requests_of_replica,
)
from reconstruct.partitions.reexecution.reexecution import reexecuted_steps
from reconstruct.partitions.rules.requests import may_be_removed
from reconstruct.partitions.timeline import fold_partition
from reconstruct.time.intervals import Interval
from tests.support.captures.packed import Unpacker, capture_names
from tests.support.evidence.partitions import Partition
from tests.unit.reconstruct.partitions import tables
from tests.unit.reconstruct.partitions.rules.bent_beliefs import Subject, is_line, read
from tests.unit.reconstruct.partitions.rules.controllers import (
    CONTROLLERS,
    findings,
    is_receipt_of,
    named,
    with_proven_losses,
)

ERAS = ("lifecycle-0.8.2.2", "lifecycle-1.1.1", "lifecycle-3.9.1")
LEADER_AND_ISR = "leader_and_isr_sent"
#: Lines that tell of what a controller holds, and of what it sent.
TELLING = (
    LEADER_AND_ISR,
    "update_metadata_sent",
    "isr_shrunk_by_controller",
    "leader_and_isr_received",
    "metadata_cached",
)
Capture = dict[Partition, list[Evidence]]


def accusations(name: str, unpacked: Unpacker, change: Callable[[Capture], Capture]) -> list[str]:
    """What is found, above info, of a changed capture of which the losses that it proves are known."""
    capture = read(unpacked(name))
    changed = change({key: in_order(facts) for key, facts in capture.facts.items()})
    view = with_proven_losses(capture.view, changed)
    return [
        f"{key}: {finding.rule_id} {finding.explanation}"
        for key, facts in sorted(changed.items())
        for finding in fold_partition(key[0], facts, view).verdicts.findings
        if finding.rule_id in CONTROLLERS and finding.severity != "info"
    ]


@pytest.mark.parametrize("name", capture_names())
def test_real_controllers_sent_what_the_model_sends(name: str, unpacked: Unpacker) -> None:
    capture = read(unpacked(name))
    counts = {"kept": 0, "broken": 0, "cannot_be_judged": 0}
    reexecuted = required = 0
    not_done_again = []
    for history in capture.fold().values():
        for verdict in counts:
            counts[verdict] += history.verdicts.counts["R15", verdict]
        for log in controller_logs(history.facts):
            for step in reexecuted_steps(history, log):
                reexecuted += len(step.reexecuted)
                required += sum(len(each.required or ()) for each in step.reexecuted)
                not_done_again += [each.line.evidence_id for each in step.reexecuted if each.required is None]
    assert counts["broken"] == 0
    if name.endswith("-info"):
        assert counts["cannot_be_judged"] > 0  # requests are not logged at this level
    else:
        assert counts["kept"] >= 20 * (counts["cannot_be_judged"] + 1)
        assert reexecuted >= 30
        assert not_done_again == []
        assert required >= 20


@pytest.mark.parametrize("name", ERAS)
def test_a_creation_that_was_not_told_to_a_replica(name: str, unpacked: Unpacker) -> None:
    subject = Subject.of(unpacked(name), "orders", 1)
    request = subject.lines(is_line(LEADER_AND_ISR, leader_epoch=0, to_broker_ids=(3,)))[0]
    is_receipt = is_receipt_of(request, 3)
    neither = subject.without(lambda fact: fact is request or is_receipt(fact))
    (finding,) = [f for f in findings(subject, neither) if f.divergence_type == "request_not_sent"]
    assert (finding.rule_id, finding.broker_id) == ("R15", 3)
    assert finding.severity in ("error", "warning")
    received = [
        f
        for f in findings(subject, subject.without(lambda fact: fact is request))
        if f.divergence_type == "request_not_sent"
    ]
    assert {f.severity for f in received} == {"info"}
    unknown = replace(subject.view, logs={})
    assert findings(subject, neither, unknown) == []
    lossy = replace(subject.view, lossy_logs=frozenset({1, 2, 3}))
    assert findings(subject, neither, lossy) == []


def test_a_log_that_lacks_the_begin_of_another_request_proves_little_by_its_silence(unpacked: Unpacker) -> None:
    """One line of the many of a request is gone: of the controller's own broker, or of one that is not asked about."""
    subject = Subject.of(unpacked("failover-1.1.1"), "orders", 1)
    request = subject.lines(is_line(LEADER_AND_ISR, leader_epoch=2, controller_epoch=3, to_broker_ids=(3,)))[0]
    is_receipt = is_receipt_of(request, 3)
    neither = subject.without(lambda fact: fact is request or is_receipt(fact))

    is_begin = is_line("leader_and_isr_received", leader_epoch=2)

    def not_sent(lacking: int | None) -> set[str]:
        found = findings(subject, [fact for fact in neither if not (is_begin(fact) and fact.broker_id == lacking)])
        return {f.severity for f in found if f.divergence_type == "request_not_sent"}

    assert [not_sent(broker) for broker in (None, 2, 1)] == [{"error"}, {"info"}, {"warning"}]


def test_a_controller_s_log_that_lacks_another_sending_proves_little_by_its_silence(unpacked: Unpacker) -> None:
    """A broker received about then what stands in no line of the controller's log."""
    subject = Subject.of(unpacked("checkpoints-1.1.1"), "orders", 0)
    request, *_ = subject.lines(is_line(LEADER_AND_ISR, isr=(1, 3), to_broker_ids=(3,)))
    other, *_ = subject.lines(is_line(LEADER_AND_ISR, isr=(1, 3), to_broker_ids=(2,)))
    is_receipt = is_receipt_of(request, 3)

    def not_sent(lacking: Evidence | None) -> set[str]:
        left = subject.without(lambda fact: fact in (request, lacking) or is_receipt(fact))
        found = [f for f in findings(subject, left) if f.divergence_type == "request_not_sent"]
        return {f.severity for f in found if f.broker_id == 3 and abs(f.at - request.at) < 1_000_000}

    assert [not_sent(lacking) for lacking in (None, other)] == [{"error"}, {"warning"}]


def test_a_replica_that_goes_offline_as_its_broker_s_registration_ends(unpacked: Unpacker) -> None:
    subject = Subject.of(unpacked("lifecycle-3.9.1"), "doomed", 0)
    request = subject.lines(is_line("stop_replica_sent", is_delete=False))[0]
    (broker,) = request.to_broker_ids or ()
    neither = subject.without(
        lambda fact: fact is request or (fact.broker_id == broker and fact.kind.startswith("stop_replica_r"))
    )

    def not_sent(view: ClusterView) -> set[int | None]:
        return {f.broker_id for f in findings(subject, neither, view) if f.divergence_type == "request_not_sent"}

    assert not_sent(subject.view) == {broker}
    ended = (Interval(0, request.at + 3_000_000, Registration(), ()),)
    assert not_sent(replace(subject.view, liveness={**subject.view.liveness, broker: ended})) == set()


@pytest.mark.parametrize("name", ERAS)
def test_a_request_that_names_another_leader_than_was_decided(name: str, unpacked: Unpacker) -> None:
    subject = Subject.of(unpacked(name), "orders", 1)
    request = subject.lines(is_line(LEADER_AND_ISR, leader_epoch=0))[0]
    wrong = next(broker for broker in (1, 2, 3) if broker != request.leader)
    found = findings(subject, subject.bent(request, leader=wrong))
    assert "request_not_decided" in {f.divergence_type for f in found}
    finding = next(f for f in found if f.divergence_type == "request_not_decided")
    assert finding.evidence[0] == request.evidence_id
    assert findings(subject, subject.bent(request, isr=tuple(reversed(request.isr or ())))) == []


@pytest.mark.parametrize("name", ["lifecycle-1.1.1", "lifecycle-3.9.1"])
def test_a_request_older_than_its_own_controller_s_decision(name: str, unpacked: Unpacker) -> None:
    subject = Subject.of(unpacked(name), "orders", 0)
    decision = subject.lines(is_line("partition_state_change", from_state="OnlinePartition", leader_epoch=1))[0]
    request = next(
        fact for fact in subject.lines(is_line(LEADER_AND_ISR, leader_epoch=1)) if fact.offset > decision.offset
    )
    old = next(fact for fact in subject.lines(is_line(LEADER_AND_ISR, leader_epoch=0)))
    bent = subject.bent(request, leader=old.leader, leader_epoch=0, isr=old.isr, partition_epoch=old.partition_epoch)
    assert ("request_not_decided", "error") in named(findings(subject, bent))


def test_up_to_2_3_metadata_lags_behind_a_raised_epoch(unpacked: Unpacker) -> None:
    subject = Subject.of(unpacked("lifecycle-1.1.1"), "payments", 0)
    raised = subject.lines(is_line("reassignment_leader_and_isr_sent"))[0]
    told = [fact for fact in subject.lines(is_line("update_metadata_sent")) if 0 < raised.offset - fact.offset < 10]
    assert {fact.leader_epoch for fact in told} == {(raised.leader_epoch or 0) - 1}
    assert findings(subject) == []


@pytest.mark.parametrize("name", ERAS)
def test_a_request_to_a_broker_that_never_was_a_replica(name: str, unpacked: Unpacker) -> None:
    subject = Subject.of(unpacked(name), "scratch", 1)
    request = subject.lines(is_line(LEADER_AND_ISR, leader_epoch=0, to_broker_ids=(3,)))[0]
    is_receipt = is_receipt_of(request, 3)
    bent = [
        replace(fact, to_broker_ids=(7,)) if fact is request else fact for fact in subject.facts if not is_receipt(fact)
    ]
    assert ("request_to_wrong_broker", "error") in named(findings(subject, bent))


def test_a_request_to_a_broker_that_the_controller_holds_for_dead(unpacked: Unpacker) -> None:
    for name, severity in (("failover-3.9.1", "warning"), ("failover-1.1.1", None)):
        subject = Subject.of(unpacked(name), "orders", 0)
        gone = subject.lines(is_line("replica_state_change", from_state="OnlineReplica", to_state="OfflineReplica"))[0]
        request = next(
            fact for fact in subject.lines(is_line(LEADER_AND_ISR, gone.controller_id)) if fact.offset > gone.offset
        )
        view = replace(
            subject.view,
            live_views=tuple(
                replace(each, live=each.live - {gone.replica_id}) if each.live else each
                for each in subject.view.live_views
            ),
        )
        is_receipt = is_receipt_of(request, (request.to_broker_ids or (0,))[0])
        bent = [
            replace(fact, to_broker_ids=(gone.replica_id or 0,)) if fact is request else fact
            for fact in subject.facts
            if fact.broker_id != gone.replica_id and not is_receipt(fact)
        ]
        found = findings(subject, bent, view)
        wrong = {f.severity for f in found if f.divergence_type == "request_to_wrong_broker"}
        assert (severity in wrong) if severity else not wrong, name


@pytest.mark.parametrize(("name", "number"), [("failover-0.8.2.2", 2), ("lifecycle-1.1.1", 0), ("failover-3.9.1", 0)])
def test_a_replica_that_goes_offline_and_stays_in_the_isr(name: str, number: int, unpacked: Unpacker) -> None:
    subject = Subject.of(unpacked(name), "orders", number)
    move = is_line("replica_state_change", from_state="OnlineReplica", to_state="OfflineReplica")
    gone = subject.lines(move)[0]
    epoch = gone.controller_epoch
    sent = [fact for fact in subject.lines(is_line(LEADER_AND_ISR)) if fact.controller_epoch == epoch]
    held = next(fact for fact in reversed(sent) if fact.offset < gone.offset)
    after = [
        fact
        for fact in subject.facts
        if fact.kind in TELLING
        and abs(fact.at - gone.at) < 1_000_000
        and fact.controller_epoch in (None, epoch)
        and fact.leader_epoch == (held.leader_epoch or 0) + 1
    ]
    assert after
    assert gone.replica_id in (held.isr or ())
    bent = [
        replace(fact, leader=held.leader, leader_epoch=held.leader_epoch, isr=held.isr) if fact in after else fact
        for fact in subject.facts
    ]
    assert "isr_not_shrunk" in {f.divergence_type for f in findings(subject, bent)}
    assert "isr_not_shrunk" not in {f.divergence_type for f in findings(subject)}


def test_a_replica_that_is_back_in_the_isr_by_what_is_sent_seconds_later(unpacked: Unpacker) -> None:
    """What the controller logged meanwhile was lost."""
    subject = Subject.of(unpacked("checkpoints-1.1.1"), "orders", 0)
    gone, *_ = subject.lines(
        is_line("replica_state_change", replica_id=2, to_state="OfflineReplica", from_state="OnlineReplica")
    )
    back = next(f for f in subject.lines(is_line("update_metadata_sent", isr=(1, 3, 2))) if f.at > gone.at)
    assert back.at - gone.at > 5_000_000
    left = subject.without(lambda fact: fact.file == gone.file and gone.at < fact.at <= back.at)
    assert "isr_not_shrunk" not in {f.divergence_type for f in findings(subject, left)}


def test_the_line_of_a_shrink_that_keeps_the_replica(unpacked: Unpacker) -> None:
    subject = Subject.of(unpacked("failover-3.9.1"), "orders", 0)
    shrink = next(fact for fact in subject.lines(is_line("isr_shrunk_by_controller")) if fact.isr)
    bent = subject.bent(shrink, isr=(*(shrink.isr or ()), shrink.replica_id))
    assert ("isr_not_shrunk", "error") in named(findings(subject, bent))


# --- the model's runs -------------------------------------------------------------------------------------------------

HELD = Leadership(1, 4, (1, 2, 3))


def known(*parts: int, live: tuple[int, ...] = (1, 2, 3), is_deleted: bool = False) -> ControllerCache:
    return ControllerCache(v(*parts), (1, 2, 3), frozenset(live), HELD, is_deleted)


def brokers(told: frozenset[SentRequest] | None, kind: str = LEADER_AND_ISR) -> set[int]:
    assert told is not None
    return {each.broker_id for each in told if each.kind == kind}


def test_to_whom_a_shrunk_isr_is_told() -> None:
    def offline(*parts: int, is_deleted: bool = False) -> frozenset[SentRequest] | None:
        return requests_of_replica(known(*parts, is_deleted=is_deleted), 3, "OnlineReplica", "OfflineReplica")

    assert brokers(offline(0, 8, 1)) == {1}
    assert brokers(offline(0, 8, 2)) == {1, 2}
    assert brokers(offline(3, 9)) == {1, 2}
    assert brokers(offline(3, 9, is_deleted=True)) == set()
    assert brokers(offline(3, 9), "stop_replica_sent") == {3}
    assert requests_of_replica(known(3, 9), 3, "NewReplica", "ReplicaDeletionStarted") is None


def test_an_election_must_tell_those_whom_every_occasion_tells() -> None:
    """2 leads now, 1 left the ISR: if that was a shutdown of 1, then from 1.1 to 2.0 broker 1 is not told."""
    decided = Leadership(2, 5, (2, 3))
    assert brokers(requests_of_election(known(1, 1), "OnlinePartition", decided, False)) == {2, 3}
    same = Leadership(1, 5, (1, 2, 3))
    assert brokers(requests_of_election(known(3, 9), "OnlinePartition", same, False)) == {1, 2, 3}
    assert requests_of_election(known(3, 9), "OnlinePartition", Leadership(9, 5, (9,)), False) is None


def test_a_broker_that_a_reassignment_took_off_before_is_not_told_of_a_replica_that_stops() -> None:
    """orders-1 went from 2,3 to 1 on 0.11.0.3, where only transitions tell of it: 3 stops when 2 is off already."""
    rows = tables.facts(
        """
        at | kind                 | replica | from           | to
        10 | replica_state_change | 2       | OnlineReplica  | OfflineReplica
        20 | replica_state_change | 3       | OnlineReplica  | OfflineReplica
        30 | replica_state_change | 2       | OfflineReplica | ReplicaDeletionStarted
        """
    )
    coverage: Any = SimpleNamespace(case=SimpleNamespace(facts=rows, assignments=()))
    first, second, _ = rows
    assert [may_be_removed(coverage, second, broker) for broker in (1, 2, 3)] == [False, True, False]
    assert not may_be_removed(coverage, first, 2), "of its own replica it is told"


# --- no false accusation ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", capture_names())
def test_missing_lines_accuse_nobody(name: str, unpacked: Unpacker) -> None:
    for seed, share in enumerate((0.1, 0.5)):
        chance = random.Random(seed)

        def thinned(capture: Capture, chance: random.Random = chance, share: float = share) -> Capture:
            return {key: [fact for fact in facts if chance.random() > share] for key, facts in capture.items()}

        assert accusations(name, unpacked, thinned) == []


@pytest.mark.parametrize("name", capture_names())
def test_a_missing_broker_and_a_wrong_clock_accuse_nobody(name: str, unpacked: Unpacker) -> None:
    assert (
        accusations(name, unpacked, lambda c: {k: [f for f in facts if f.broker_id != 2] for k, facts in c.items()})
        == []
    )
    for skew_s in (-60, 0.5):

        def skewed(capture: Capture, skew_us: int = int(skew_s * 1e6)) -> Capture:
            return {
                key: in_order(replace(f, at=f.at + skew_us) if f.broker_id == 1 else f for f in facts)
                for key, facts in capture.items()
            }

        assert accusations(name, unpacked, skewed) == []


@pytest.mark.parametrize("name", ERAS)
def test_an_unknown_version_accuses_nobody(name: str, unpacked: Unpacker) -> None:
    capture = read(unpacked(name))
    view = replace(capture.view, version=ANY_VERSION)
    for (topic, _), facts in sorted(capture.facts.items()):
        found = [f for f in fold_partition(topic, facts, view).verdicts.findings if f.rule_id in ("R15", "R16")]
        assert found == []
