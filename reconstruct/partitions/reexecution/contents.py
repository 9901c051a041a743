"""What a request says: a leader, a leader epoch and an ISR that the controller decided or held (R15).

A controller's cache only moves forward: once it has logged a decision, no request of its own carries an older epoch,
another leader at that epoch, or another ISR at that version of the znode. All requests of one batch say the same. Up to
2.3 the epoch that a reassignment raises is in LeaderAndIsr and not in UpdateMetadata, so the two are not compared.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingest.shapes.event_types import EventType
from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.verdicts import Divergence, Finding, Verdicts
from reconstruct.model.states import NO_LEADER, PartitionState, ReplicaState
from reconstruct.model.versions import EPOCH_BUMP_CACHED_SINCE
from reconstruct.partitions.evidence import Evidence
from reconstruct.partitions.reexecution.controller_log import (
    LEADER_AND_ISR,
    ONE_BATCH_US,
    PARTITION,
    RAISED,
    REPLICA,
    REQUESTS,
    UPDATE_METADATA,
    ControllerLog,
)
from reconstruct.partitions.reexecution.log_coverage import LogCoverage
from reconstruct.partitions.reexecution.model_runs import Leadership
from reconstruct.partitions.reexecution.steps import Step, decided_by, leadership_of, shrunk
from reconstruct.partitions.sightings import LEADER_SIDE, Rank, Sighting
from reconstruct.time.instants import utc

_WITH_STATE = (LEADER_AND_ISR, UPDATE_METADATA)


#: An election raises the epoch by one; a reassignment before it may have raised it twice more, unseen by the cache.
_MOST_RAISED = 3


class Contents:
    """Judges the requests of one partition, log by log; knows what was decided of it at all."""

    def __init__(self, coverage: LogCoverage) -> None:
        self.coverage = coverage
        case = coverage.case
        #: (leader epoch, leader): the ISRs that were written or decided.
        self.known: dict[tuple[int, int], set[frozenset[int]]] = {}
        #: Leader: the ISRs that it asked for; at which epoch, its lines do not say.
        self.asked_for: dict[int, set[frozenset[int]]] = {}
        self.decided: dict[int, Evidence] = {}
        #: what was written or decided: by the znode's version; by leader epoch, as a whole (None) and by version.
        self._decided_at: dict[int, list[Sighting]] = {}
        self._decisions: dict[tuple[int, int | None], list[Sighting]] = {}
        for sighting in (s for s in case.sightings if s.rank <= Rank.DECIDED):
            if sighting.partition_epoch is not None:
                self._decided_at.setdefault(sighting.partition_epoch, []).append(sighting)
            for version in {sighting.partition_epoch, None}:
                self._decisions.setdefault((sighting.leader_epoch, version), []).append(sighting)
        #: by leader epoch and leader: the lines that name both.
        self._naming: dict[tuple[int | None, int | None], list[Evidence]] = {}
        for fact in case.facts:
            self._naming.setdefault((fact.leader_epoch, fact.leader), []).append(fact)
        for sighting in (*case.sightings, *(s for s, _ in case.discarded)):
            leader = NO_LEADER if sighting.leader is None else sighting.leader
            if sighting.rank in LEADER_SIDE:
                self.asked_for.setdefault(leader, set()).add(sighting.members)
            elif sighting.rank <= Rank.DECIDED:
                self.known.setdefault((sighting.leader_epoch, leader), set()).add(sighting.members)
                self.decided.setdefault(sighting.leader_epoch, sighting.fact)
        #: what the log under way decided last: another controller's decisions do not bind it.
        self.last: Evidence | None = None

    def judge(self, step: Step, verdicts: Verdicts) -> None:
        """Every LeaderAndIsr and UpdateMetadata of one block, and the shrink that OfflineReplica makes."""
        self._learn(step)
        self._judge_shrink(step, verdicts)
        lines = [*step.block.transitions, *step.block.others, *step.block.requests]
        batch = step.block.batch()
        for line in sorted(lines, key=lambda line: line.offset):
            if line.kind not in REQUESTS:
                self._remember(line)
                continue
            requested = leadership_of(line)
            if line.kind in _WITH_STATE and requested is not None:
                self._judge_request(step, line, requested, batch, verdicts)

    def _learn(self, step: Step) -> None:
        """What the model decides where a line says less: up to 1.0 an election's ISR, and each shrink's."""
        for reexecuted in step.reexecuted:
            decided = decided_by(reexecuted.line, step.block) if reexecuted.required is not None else None
            if decided is not None and step.cached is not None and not _follows(step.cached, decided):
                decided = None
            if reexecuted.line.kind == REPLICA and reexecuted.line.to_state == ReplicaState.OFFLINE:
                decided = shrunk(step.cached, reexecuted.line.replica_id)
                written = None if decided is None else self.decided.get(decided.leader_epoch)
                # the leader had shrunk the ISR itself: another decision has that epoch
                if decided is not None and written is not None and written.leader not in (None, decided.leader):
                    decided = None
            if decided is not None:
                self.known.setdefault((decided.leader_epoch, decided.leader), set()).add(frozenset(decided.isr))

    def _remember(self, line: Evidence) -> None:
        if line.kind == PARTITION and line.to_state in (PartitionState.NEW, PartitionState.NON_EXISTENT):
            self.last = None
        elif line.kind == PARTITION and leadership_of(line) is not None:
            self.last = line

    def _judge_request(
        self, step: Step, line: Evidence, requested: Leadership, batch: Sequence[Evidence], verdicts: Verdicts
    ) -> None:
        found = self._against(step, line, requested, batch)
        if found is not None:
            verdicts.broken(self._not_decided(step.log, line, requested, *found))
        elif self._is_known(requested):
            verdicts.kept("R15")
        elif self._is_in_no_other_line(line, requested):
            later = self._refuting(step.log, line, requested)
            severity = "info" if later is None else "error"
            verdicts.broken(self._not_decided(step.log, line, requested, later, severity))
        else:
            verdicts.unjudged("R15")

    def _against(
        self, step: Step, line: Evidence, requested: Leadership, batch: Sequence[Evidence]
    ) -> tuple[Evidence, str] | None:
        """The line that a request contradicts, and how grave that is: an error where no missing line explains it."""
        if self.last is not None and _contradicts(line, requested, self.last, line in batch):
            return None if self._is_decided_twice(line, requested, self.last) else (self.last, "error")
        decided = self.decided.get(requested.leader_epoch)
        if decided is not None:
            is_other = (requested.leader_epoch, requested.leader) not in self.known
            contradicted = (
                decided if is_other and requested.leader != decided.leader else self._versioned(line, requested)
            )
            return None if contradicted is None else (contradicted, "error")
        if line not in batch or self._is_logged_elsewhere(line, requested):
            return None
        is_whole = self.coverage.is_whole(step.log, batch[0].at, batch[-1].at, 0)
        severity = "error" if is_whole else "info"
        if self.last is not None and self.last in step.block.transitions:
            return self.last, severity
        twins = [other for other in batch if other.kind == line.kind and other is not line]
        twin = next((twin for twin in twins if self._is_more_credible(twin, requested)), None)
        return None if twin is None else (twin, severity)

    def _is_decided_twice(self, line: Evidence, requested: Leadership, last: Evidence) -> bool:
        """Whether the request says what was decided, too, at the epoch of the last decision, or at its version: of
        that R02 and R03 tell."""
        return last.leader_epoch == requested.leader_epoch and any(
            (s.leader, s.members) == (requested.leader, frozenset(requested.isr))
            for s in self._decisions.get((requested.leader_epoch, line.partition_epoch), ())
            if line.partition_epoch is not None or requested.leader != last.leader
        )

    def _is_known(self, requested: Leadership) -> bool:
        isrs = self.known.get((requested.leader_epoch, requested.leader))
        if isrs is None:
            return False
        return frozenset(requested.isr) in isrs or frozenset(requested.isr) in self.asked_for.get(requested.leader, ())

    def _is_in_no_other_line(self, line: Evidence, requested: Leadership) -> bool:
        """Whether nothing else tells of the leader at the epoch, though what was decided is known otherwise."""
        is_known = bool(self.known) and (requested.leader_epoch, requested.leader) in self.known
        return bool(self.known) and not is_known and not self._is_logged_elsewhere(line, requested)

    def _refuting(self, log: ControllerLog, line: Evidence, requested: Leadership) -> Evidence | None:
        """What proves that nothing decided the request's epoch, whatever is missing: the controller tells of a lower
        one later, or the znode has another one at the very version that the request names."""
        lag = 0 if self.coverage.case.cluster.version.is_since(EPOCH_BUMP_CACHED_SINCE) else _MOST_RAISED
        for other in log.lines:
            if other.offset <= line.offset:
                continue
            if other.kind == PARTITION and other.to_state in (PartitionState.NEW, PartitionState.NON_EXISTENT):
                break
            state = leadership_of(other)
            if state is not None and state.leader_epoch < requested.leader_epoch - lag:
                return other
        same = self._decided_at.get(line.partition_epoch, ()) if line.partition_epoch is not None else ()
        return next((s.fact for s in same if s.leader_epoch != requested.leader_epoch), None)

    def _is_logged_elsewhere(self, line: Evidence, requested: Leadership) -> bool:
        """Whether any line but the request and its receipts names the same leader at the same epoch."""
        return any(
            fact is not line and fact.broker_id not in (line.to_broker_ids or ())
            for fact in self._naming.get((requested.leader_epoch, requested.leader), ())
        )

    def _versioned(self, line: Evidence, requested: Leadership) -> Evidence | None:
        """Another ISR is written or decided at the very version that the request names."""
        if line.partition_epoch is None:
            return None
        same = [s.fact for s in self._decisions.get((requested.leader_epoch, line.partition_epoch), ())]
        if not same or any(set(fact.isr or ()) == set(requested.isr) for fact in same):
            return None
        return same[0]

    def _is_more_credible(self, twin: Evidence, requested: Leadership) -> bool:
        """Whether the other request of the same batch says something else, and that is known to be decided."""
        other = leadership_of(twin)
        if other is None or (other.leader, other.leader_epoch, set(other.isr)) == (
            requested.leader,
            requested.leader_epoch,
            set(requested.isr),
        ):
            return False
        return (other.leader_epoch, other.leader) in self.known

    def _not_decided(
        self, log: ControllerLog, line: Evidence, requested: Leadership, against: Evidence | None, severity: str
    ) -> Finding:
        brokers = ", ".join(map(str, line.to_broker_ids or ()))
        name = "LeaderAndIsr" if line.kind == LEADER_AND_ISR else "UpdateMetadata"
        other = leadership_of(against) if against is not None else None
        decided_text = (
            _text_of(other) if other is not None else f"leader {against.leader}" if against else "a decided state"
        )
        why = (
            f"but {decided_text} is what was decided ({utc(against.at)})"
            if against is not None
            else "and no other line tells of it"
        )
        ends = {
            "error": " Nothing decided what the request says, and the controller's cache cannot hold it.",
            "info": " Lines are missing from what was given: one of them may have decided it.",
        }
        return Divergence(
            DivergenceType.REQUEST_NOT_DECIDED,
            self.coverage.severity(severity),
            line.at,
            broker_id=line.to_broker_ids[0] if line.to_broker_ids else None,
        ).explained(
            decided_text,
            _text_of(requested),
            f"Controller {log.controller_id} (epoch {log.controller_epoch}) sent {name} to broker {brokers} with"
            f" {_text_of(requested)} ({utc(line.at)}), {why}.{ends[severity]}",
            (line.evidence_id, *((against.evidence_id,) if against is not None else ())),
        )

    def _judge_shrink(self, step: Step, verdicts: Verdicts) -> None:
        """OfflineReplica of a member of the ISR: afterwards it is no member, or the epoch is higher."""
        for line in step.block.others:
            requested = leadership_of(line) if line.kind == EventType.ISR_SHRUNK_BY_CONTROLLER else None
            if requested is not None and line.replica_id in requested.isr and len(requested.isr) > 1:
                verdicts.broken(self._not_shrunk(step.log, line, requested, [], "error"))
        cached = step.cached
        for line in step.block.transitions:
            if line.kind != REPLICA or line.to_state != ReplicaState.OFFLINE or cached is None:
                continue
            if line.replica_id not in cached.isr:
                continue
            after = [
                (other, requested)
                for other in (*step.block.batch(), *step.block.others)
                if (requested := leadership_of(other)) is not None
                and other.kind != RAISED
                # what is sent later, the leader may have asked for the replica again by then
                and other.at <= line.at + ONE_BATCH_US
            ]
            unchanged = [
                o
                for o, requested in after
                if requested.leader_epoch == cached.leader_epoch and line.replica_id in requested.isr
            ]
            if not unchanged:
                continue
            is_whole = self.coverage.is_whole(step.log, line.at, unchanged[-1].at)
            verdicts.broken(self._not_shrunk(step.log, line, cached, unchanged, "error" if is_whole else "info"))

    def _not_shrunk(
        self, log: ControllerLog, line: Evidence, cached: Leadership, unchanged: Sequence[Evidence], severity: str
    ) -> Finding:
        return Divergence(
            DivergenceType.ISR_NOT_SHRUNK,
            self.coverage.severity(severity),
            line.at,
            broker_id=log.controller_id,
            replica_id=line.replica_id,
        ).explained(
            f"the ISR without broker {line.replica_id}, or leader epoch {cached.leader_epoch + 1}",
            _text_of(cached),
            f"Controller {log.controller_id} (epoch {log.controller_epoch}) moved replica {line.replica_id} to"
            f" OfflineReplica ({utc(line.at)}); what it then says is {_text_of(cached)}. A member of the ISR that goes"
            " Offline leaves it, or stays as its last with the leader epoch raised."
            + ("" if severity == "error" else " Lines are missing from what was given."),
            (line.evidence_id, *(other.evidence_id for other in unchanged[:3])),
        )


def _follows(cached: Leadership, decided: Leadership) -> bool:
    """Whether an election can have raised the cached epoch to this: up to 2.3 a reassignment raises it unseen."""
    return cached.leader_epoch < decided.leader_epoch <= cached.leader_epoch + _MOST_RAISED


def _contradicts(line: Evidence, requested: Leadership, last: Evidence, is_of_its_batch: bool) -> bool:
    decided = leadership_of(last)
    if decided is None or requested.leader_epoch > decided.leader_epoch:
        return False
    if requested.leader_epoch < decided.leader_epoch or requested.leader != decided.leader:
        return True
    is_same_write = is_of_its_batch if line.partition_epoch is None else line.partition_epoch == last.partition_epoch
    return is_same_write and set(requested.isr) != set(decided.isr)


def _text_of(requested: Leadership) -> str:
    isr = ",".join(map(str, requested.isr)) or "empty"
    return f"leader {requested.leader} at leader epoch {requested.leader_epoch}, ISR {isr}"
