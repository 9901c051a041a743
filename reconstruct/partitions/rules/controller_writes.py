"""What a write does to the leader epoch, and whose controller epoch it carries (R10, R12).

A controller raises the leader epoch by one with each of its writes, a leader's change of the ISR keeps it, whoever
writes the znode for it. A write is the controller's where the controller says so, where the leader changed, or where
the leader epoch rose: none of a leader's does that. Only a leader takes a replica into the ISR and remains leader.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ingest.shapes.event_types import EventType
from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.known_issues import known_issue
from reconstruct.findings.verdicts import Divergence, Finding, Verdicts
from reconstruct.model.states import NO_LEADER
from reconstruct.model.versions import CONTROLLER_EPOCH_CHECKED_SINCE, MIGRATION_TO_KRAFT_SINCE
from reconstruct.partitions.case import Case
from reconstruct.partitions.evidence import METADATA_PARTITION
from reconstruct.partitions.rules.decided import states_by_version
from reconstruct.partitions.sightings import WRITTEN_FOR_LEADER, Rank, Sighting
from reconstruct.time.instants import utc

_CONTROLLER: Final = "controller"
_LEADER: Final = "leader"
#: No line tells whose write it was: the ISR has a replica more and the leader stayed, as in a leader's write alone.
_TAKES_IN: Final = "takes a replica in"
#: Lines that follow a write of the controller's own; that of an ISR it shrank also tells of one it left as it was.
_DECISIONS: Final = (EventType.PARTITION_STATE_CHANGE, EventType.REASSIGNMENT_LEADER_AND_ISR_SENT)
#: Lines of a controller's state machines, which a KRaft controller does not have.
_MACHINES: Final = (EventType.PARTITION_STATE_CHANGE, EventType.ISR_SHRUNK_BY_CONTROLLER)
#: ZooKeeper's time of a write against that of a controller's election: in less, either may have been first.
_SLACK_US: Final = 10_000_000


def judge_leader_epoch_steps(case: Case, verdicts: Verdicts) -> None:
    """R10: from one version to the next; where a version between is missing, the write before is not known."""
    for before, after, shown in _steps(case):
        if before is None:
            verdicts.unjudged("R10")
            continue
        writer = _writer(before, after, shown)
        step = after.leader_epoch - before.leader_epoch
        divergence_type = _divergence(writer, step)
        if divergence_type is None:
            verdicts.kept("R10")
        elif step > 0 or (step == 0 and after.leader == before.leader):  # the others are R01's and R02's
            verdicts.broken(_wrong_step(case, before, after, writer, divergence_type))


def _steps(case: Case) -> Iterator[tuple[Sighting | None, Sighting, list[Sighting]]]:
    """Each version but the first, with the one just before (None where it is not known) and all that shows it.

    Versions that show two contents are left out: R03 tells of them.
    """
    states = states_by_version(case)
    versions = sorted(states)
    for version in versions[1:]:
        shown, earlier = states[version], states.get(version - 1, [])
        is_clear = _is_clear(shown) and _is_clear(earlier)
        yield (earlier[0] if earlier and is_clear else None), shown[0], shown


def _is_clear(shown: list[Sighting]) -> bool:
    """Whether all show one content; what names its leader epoch itself decides what that is."""
    own = [s for s in shown if s.rank <= Rank.DECIDED]
    return len({s.members for s in shown}) < 2 and len({(s.leader, s.leader_epoch) for s in own or shown}) < 2


def _writer(before: Sighting, after: Sighting, shown: list[Sighting]) -> str | None:
    """Who asked for the write; None where only the leader epoch would tell."""
    if after.leader != before.leader:
        return _CONTROLLER
    if any(s.rank is Rank.COMMITTED or s.fact.kind in WRITTEN_FOR_LEADER for s in shown):
        return _LEADER
    if any(s.fact.kind in _DECISIONS for s in shown):
        return _CONTROLLER
    if after.leader != NO_LEADER and before.members < after.members:
        return _TAKES_IN
    return None


def _divergence(writer: str | None, step: int) -> DivergenceType | None:
    if writer in (_LEADER, _TAKES_IN):
        return DivergenceType.LEADER_EPOCH_RAISED_BY_ISR_CHANGE if step else None
    if step > 1:
        return DivergenceType.LEADER_EPOCH_RAISED_BY_MORE
    return DivergenceType.LEADER_EPOCH_NOT_RAISED if writer == _CONTROLLER and step != 1 else None


def _wrong_step(
    case: Case, before: Sighting, after: Sighting, writer: str | None, divergence_type: DivergenceType
) -> Finding:
    expected = before.leader_epoch + (0 if writer in (_LEADER, _TAKES_IN) else 1)
    why = {
        DivergenceType.LEADER_EPOCH_RAISED_BY_ISR_CHANGE: (
            "the leader asked for it, and a leader's ISR change keeps the epoch"
            if writer == _LEADER
            else "a leader takes a replica into the ISR and keeps the epoch, and a controller takes none in"
        ),
        DivergenceType.LEADER_EPOCH_RAISED_BY_MORE: "no write raises it by more than one",
        DivergenceType.LEADER_EPOCH_NOT_RAISED: (
            "the controller decided it, and each of its decisions raises the epoch by one"
        ),
    }[divergence_type]
    how = case.severity(before, after)
    may_migrate = case.cluster.version.may_be_since(MIGRATION_TO_KRAFT_SINCE)
    is_migrating = after.rank is Rank.WRITTEN and may_migrate and not _is_ruled_by_zookeeper(case, after)
    if is_migrating and divergence_type != DivergenceType.LEADER_EPOCH_NOT_RAISED:
        how, why = "warning", f"{why}, unless a KRaft controller copied several changes to the znode at once (KIP-866)"
    return Divergence(divergence_type, how, after.at).explained(
        f"leader epoch {expected} at partition epoch {after.partition_epoch}",
        f"leader epoch {after.leader_epoch}",
        f"From partition epoch {before.partition_epoch} (leader {before.leader}, leader epoch {before.leader_epoch}) to"
        f" {after.partition_epoch} (leader {after.leader}, ISR {','.join(map(str, after.isr)) or 'empty'}) the leader"
        f" epoch went to {after.leader_epoch} ({utc(after.at)}): {why}.",
        (before.fact.evidence_id, after.fact.evidence_id),
    )


def _is_ruled_by_zookeeper(case: Case, after: Sighting) -> bool:
    """Whether a controller's own state machine tells of that leader epoch or of a higher one: a cluster that moves to
    KRaft has none from then on."""
    return any(
        fact.kind in _MACHINES and fact.leader_epoch is not None and fact.leader_epoch >= after.leader_epoch
        for fact in case.facts
    )


def judge_controller_epochs_of_writes(case: Case, verdicts: Verdicts) -> None:
    """R12: a controller's write carries no lower controller epoch than a write before it, by the znode's own order. The
    first record of a quorum that took over from ZooKeeper (KIP-866) is held against none: its epochs are its own."""
    states = states_by_version(case)
    if not states:
        return
    highest = states[min(states)][0]
    for before, after, shown in _steps(case):
        epoch, known = _stored_epoch(after), _stored_epoch(highest)
        if epoch is None:
            continue
        if _is_record(after) and not _is_record(highest):
            highest = after
            verdicts.unjudged("R12")
            continue
        writer = _CONTROLLER if before is None else _writer(before, after, shown)
        is_raised = before is not None and after.leader_epoch > before.leader_epoch
        # of a leader's that raises it R10 tells
        is_controllers = writer == _CONTROLLER or (writer is None and is_raised)
        if is_controllers and known is not None:
            if epoch >= known:
                _judge_by_time(case, is_raised, after, epoch, verdicts)
            elif before is not None or after.leader_epoch > highest.leader_epoch:
                when = f"after the write of controller epoch {known} at leader epoch {highest.leader_epoch}"
                verdicts.broken(_stale(case, highest, after, epoch, known, f"{when} ({utc(highest.at)})"))
            else:
                verdicts.unjudged("R12")
        if known is None or epoch > known:
            highest = after


def _is_record(sighting: Sighting) -> bool:
    return sighting.fact.kind == METADATA_PARTITION


def _stored_epoch(sighting: Sighting) -> int | None:
    """The controller epoch as the znode holds it; None where the sighting does not show it."""
    if sighting.rank is Rank.WRITTEN:
        return sighting.fact.state_controller_epoch
    if sighting.fact.kind in _DECISIONS:
        return sighting.fact.controller_epoch
    return None


def _judge_by_time(case: Case, is_raised: bool, after: Sighting, epoch: int, verdicts: Verdicts) -> None:
    """By ZooKeeper's own time of a write that raised the leader epoch, against when the next controller was elected.

    The two instants come from different clocks: more than a warning they cannot give.
    """
    since = case.cluster.successor_start(epoch)
    tenures = case.cluster.tenures
    if _is_record(after) and tenures and all(t.end is not None and t.end <= after.at for t in tenures):
        verdicts.unjudged("R12")  # the tenures known are those of ZooKeeper's controllers, which it left
        return
    if after.rank is not Rank.WRITTEN or not is_raised or since is None or after.at <= since + _SLACK_US:
        verdicts.kept("R12")
        return
    later = min(t.controller_epoch for t in tenures if t.controller_epoch > epoch)
    when = f"{(after.at - since) / 1e6:.1f} s after controller epoch {later} began ({utc(since)})"
    verdicts.broken(_stale(case, None, after, epoch, later, when))


def _stale(case: Case, highest: Sighting | None, after: Sighting, epoch: int, known: int, when: str) -> Finding:
    """``highest`` is the write before of a higher controller epoch; None where only the times tell."""
    is_unchecked = case.cluster.version.may_be_before(CONTROLLER_EPOCH_CHECKED_SINCE)
    how = "warning" if is_unchecked or highest is None else case.severity(highest, after)
    note = (
        "Before 2.1 ZooKeeper takes it where the version it expects is the znode's."
        if is_unchecked
        else "Since 2.1 ZooKeeper refuses such a write."
    )
    return Divergence(DivergenceType.STALE_CONTROLLER_WROTE, how, after.at).explained(
        f"controller epoch {known} or higher",
        f"controller epoch {epoch} at partition epoch {after.partition_epoch}",
        f"A controller of epoch {epoch} wrote leader {after.leader} at leader epoch {after.leader_epoch}"
        f" ({utc(after.at)}, {when}). {note}",
        (*(() if highest is None else (highest.fact.evidence_id,)), after.fact.evidence_id),
        known_issue=known_issue("KAFKA-6082", case.cluster.version),
    )
