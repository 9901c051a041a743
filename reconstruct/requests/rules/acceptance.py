"""Which requests of controllers a broker accepts, by their controller epoch: R12, and R21 for those it refuses.

A broker knows the highest controller epoch of the requests that its process has accepted, and nothing of those that
never reached it: a paused controller that accepts its own old UpdateMetadata is right, as long as its broker has not
itself accepted a higher epoch (``ReplicaManager.becomeLeaderOrFollower``, ``stopReplicas``,
``maybeUpdateMetadataCache``).
"""

from __future__ import annotations

from reconstruct.cluster.view import ClusterView
from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.known_issues import known_issue
from reconstruct.findings.verdicts import Divergence, Verdicts
from reconstruct.model.versions import REQUESTS_ORDERED_SINCE
from reconstruct.requests.evidence import REQUEST_KINDS, Request
from reconstruct.time.instants import utc
from reconstruct.time.line_order import FAR_BACK_US


def judge_acceptance(request: Request, cluster: ClusterView, verdicts: Verdicts) -> None:
    """Judge whether the broker rightly acted upon the request, or rightly refused it.

    Both rest on the order of the lines in the broker's log, and on the lines of one request standing together.
    """
    if not cluster.keeps_order(request.to_broker_id):
        if request.is_refused or request.accepts:
            verdicts.unjudged("R21" if request.is_refused else "R12")
    elif request.is_refused:
        _judge_refusal(request, verdicts)
    elif request.accepts:
        _judge_accepted(request, cluster, verdicts)


def _judge_accepted(request: Request, cluster: ClusterView, verdicts: Verdicts) -> None:
    """A request of a lower controller epoch than the process has accepted before must be refused."""
    epoch, before, received = request.controller_epoch, request.accepted_epoch_before, request.received_at
    if epoch is None or received is None:
        verdicts.unjudged("R12")
        return
    if before is None or before <= epoch:
        verdicts.kept("R12")
        return
    at = request.accepted_at_before
    assert at is not None
    # where its clock says that it came later, the order of the broker's files, or of the lines in one, proves nothing
    if at > received or _begins_anew_between(cluster, request.to_broker_id, epoch, before, at, received):
        verdicts.unjudged("R12")
        return
    if not cluster.is_one_cluster(request.to_broker_id, at, received):
        verdicts.unjudged("R12")
        return
    is_proven = _is_one_process(cluster, request.to_broker_id, at, received)
    if not is_proven and _begins_behind(cluster, request.controller_id, epoch, at):
        verdicts.unjudged("R12")
        return
    is_ordered = cluster.version.is_since(REQUESTS_ORDERED_SINCE)
    reason = "" if is_proven else " Whether its process was started again in between is not known."
    race = "" if is_ordered else " Up to 0.8.1 requests handled at one time may pass each other."
    verdicts.broken(
        Divergence(
            DivergenceType.ACCEPTED_STALE_CONTROLLER,
            "error" if is_proven and is_ordered else "warning",
            received,
            broker_id=request.to_broker_id,
        ).explained(
            f"broker {request.to_broker_id} refuses what comes from an epoch below {before}",
            f"{request.name} was acted upon {utc(received)}",
            f"Broker {request.to_broker_id} had acted upon a request of controller epoch {before} ({utc(at)}) and then"
            f" acted upon a {REQUEST_KINDS[request.api]} request of epoch {epoch}.{reason}{race}",
            (*request.evidence, *filter(None, (request.accepted_ref_before,))),
            known_issue=known_issue("KAFKA-6082", cluster.version),
        )
    )


def _begins_anew_between(cluster: ClusterView, broker_id: int, epoch: int, before: int, start: int, end: int) -> bool:
    """Whether a restart of the broker, or a cluster created again, explains the lower epoch."""
    if any(start <= at <= end for at, _ in cluster.process_starts.get(broker_id, ())):
        return True
    generations = {t.controller_epoch: set[int]() for t in cluster.tenures}
    for tenure in cluster.tenures:
        generations[tenure.controller_epoch].add(tenure.generation)
    return generations.get(epoch, {0}) != generations.get(before, {0})


def _begins_behind(cluster: ClusterView, controller_id: int, epoch: int, at: int) -> bool:
    """Whether a controller is first known in its epoch after a higher one was known: that none is in one cluster. Its
    earlier lines are missing, or it is another cluster's, whose broker was started in between."""
    begins = [t.start for t in cluster.tenures if (t.controller_id, t.controller_epoch) == (controller_id, epoch)]
    return bool(begins) and min(begins) - at > FAR_BACK_US


def _is_one_process(cluster: ClusterView, broker_id: int, start: int, end: int) -> bool:
    """Whether the server.log that shows the broker's starts shows none since one before ``start``."""
    starts = [at for at, _ in cluster.process_starts.get(broker_id, ())]
    return any(at <= start for at in starts) or (not starts and cluster.is_registered(broker_id, start, end))


def _judge_refusal(request: Request, verdicts: Verdicts) -> None:
    """The refusal names both epochs: the request's must be the lower one."""
    epoch, known, received = request.controller_epoch, request.known_epoch, request.received_at
    if epoch is None or known is None or received is None:
        verdicts.unjudged("R21")
    elif epoch < known:
        verdicts.kept("R21")
    else:
        verdicts.broken(
            Divergence(
                DivergenceType.IGNORED_WITHOUT_REASON, "error", received, broker_id=request.to_broker_id
            ).explained(
                f"only requests of a controller epoch below {known} are refused for it",
                f"{request.name} was refused, {known} being known",
                f"Broker {request.to_broker_id} refused the request because controller epoch {epoch} is old, and names"
                f" {known} as the latest it knows: {epoch} is not below it.",
                request.evidence,
            )
        )
