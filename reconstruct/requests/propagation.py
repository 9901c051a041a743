"""What is judged of one request of a controller to one broker: sent, received, handled, answered (R23).

A controller keeps one connection to each live broker, with one request in flight; the rest waits in a queue. What
Kafka allows to happen to a request on its way (``ControllerChannelManager``, ``RequestSendThread``, ``KafkaApis``):

* the broker dies, loses its session or shuts down: the controller drops its queue, and up to 2.x logs as sent what it
  does not send, "since it is offline";
* the controller resigns or dies: its send threads stop, the queue is dropped;
* the connection breaks: the request is sent again, up to 0.8.2 with the same correlation id, later with the next;
* from 2.2 a broker that has registered anew answers requests to its former registration without handling them.

None of these is accused. Absence proves something only where one file of the log, at TRACE and not known to lack lines,
covers the whole time in question.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from reconstruct.cluster.view import ClusterView, Tenure
from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.verdicts import Divergence, Finding, Verdicts
from reconstruct.model.versions import BATCHES_COUNTED_SINCE, BROKER_EPOCHS_SINCE
from reconstruct.time.instants import utc

LEADER_AND_ISR: Final = "LEADER_AND_ISR"
UPDATE_METADATA: Final = "UPDATE_METADATA"
STOP_REPLICA: Final = "STOP_REPLICA"
#: Kafka's names of the requests, by the names of its protocol.
REQUEST_KINDS: Final = {
    LEADER_AND_ISR: "LeaderAndIsr",
    UPDATE_METADATA: "UpdateMetadata",
    STOP_REPLICA: "StopReplica",
}

#: A request that has not arrived by then, with nothing else of the kind after it, is taken to be lost: µs. The send
#: thread tries again after ``controller.socket.timeout.ms`` (30 s) at the latest.
LOST_AFTER_US: Final = 120_000_000
#: A broker that dies may have received what it did not log; it must show that it lived on so long: µs.
LIVED_ON_US: Final = 10_000_000
#: A controller may know the former registration of a broker so long: µs.
OLD_REGISTRATION_US: Final = 20_000_000
#: A broker that has begun to handle a request says so within this time, or has failed: µs.
HANDLED_WITHIN_US: Final = 60_000_000
#: Kafka's error codes: the request came from a deposed controller, or names an old registration of the broker.
STALE_ERRORS: Final = frozenset({11, 77})


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a controller to one broker; instants are corrected µs, NULL where no line tells.

    ``*_ref`` are records. The counts are lines of the broker: ``lines`` name a partition of the request,
    ``received_lines`` say that it came, ``started`` and ``completed`` are transitions, ``ignored`` partitions refused;
    ``is_refused``: the whole request was, for its controller epoch, where ``known_epoch`` was known. ``is_repeated``:
    the same words had been sent once less than they were received. ``sent_before`` is when the latest request was sent
    that the broker received before this one; ``next_*`` are of later requests of the connection.
    ``accepted_epoch_before`` is the highest controller epoch that the broker's process had accepted before.
    """

    cluster_id: str
    controller_id: int
    controller_epoch: int | None
    to_broker_id: int
    api: str
    sequence: int = 0
    correlation_id: int | None = None
    partitions: int | None = None
    decided_at: int | None = None
    sent_at: int | None = None
    received_at: int | None = None
    applied_at: int | None = None
    acknowledged_at: int | None = None
    sent_ref: str | None = None
    received_ref: str | None = None
    applied_ref: str | None = None
    acknowledged_ref: str | None = None
    response_error: int | None = None
    lines: int = 0
    received_lines: int = 0
    started: int = 0
    completed: int = 0
    applied_lines: int = 0
    failed: int = 0
    ignored: int = 0
    skipped: int = 0
    known_epoch: int | None = None
    is_refused: bool = False
    is_repeated: bool = False
    sent_before: int | None = None
    next_received_at: int | None = None
    next_acknowledged_at: int | None = None
    accepts: bool = False
    accepted_epoch_before: int | None = None
    accepted_at_before: int | None = None
    accepted_ref_before: str | None = None

    @property
    def evidence(self) -> tuple[str, ...]:
        """The records of the request: at most one for each of its steps."""
        refs = (self.sent_ref, self.received_ref, self.applied_ref, self.acknowledged_ref)
        return tuple(dict.fromkeys(ref for ref in refs if ref is not None))

    @property
    def name(self) -> str:
        number = "" if self.correlation_id is None else f" {self.correlation_id}"
        return (
            f"{REQUEST_KINDS.get(self.api, self.api)} request{number} of controller {self.controller_id}"
            f" (epoch {self.controller_epoch}) to broker {self.to_broker_id}"
        )


def outcome_of(request: Request, cluster: ClusterView) -> str:
    """What became of the request: ``applied``, ``ignored_stale``, ``failed``, ``not_received`` or ``unknown``."""
    if request.is_refused or (request.response_error in STALE_ERRORS and not request.completed):
        return "ignored_stale"
    if request.received_at is None:
        if request.acknowledged_at is not None:
            return "applied" if request.response_error == 0 else "failed"
        return "not_received" if _absence(request, cluster) is not None else "unknown"
    if request.completed:
        return "applied"
    if request.failed:
        return "failed"
    if request.ignored and request.api != UPDATE_METADATA:
        return "ignored_stale"
    if request.applied_at is not None or request.response_error == 0:
        return "applied"
    return "unknown"


def judge_propagation(request: Request, cluster: ClusterView, verdicts: Verdicts) -> None:
    """Judge whether one request arrived, was handled and was answered: R23."""
    if request.received_at is None:
        _judge_not_received(request, cluster, verdicts)
        return
    if request.sent_at is None and not request.is_repeated:
        _judge_never_sent(request, cluster, verdicts)
    else:
        _judge_handling(request, cluster, verdicts)


def _judge_not_received(request: Request, cluster: ClusterView, verdicts: Verdicts) -> None:
    if request.sent_at is None:
        return  # an answer whose request left no line: an UpdateMetadata without partitions, a StopReplica up to 2.5
    if request.acknowledged_at is not None and request.partitions == 0:
        verdicts.kept("R23")  # brokers log nothing of a request without partitions
        return
    until = _absence(request, cluster)
    if until is None:
        verdicts.unjudged("R23")
        return
    later = ", though it does of a later one" if request.next_received_at is not None else ""
    verdicts.broken(
        Divergence(
            DivergenceType.REQUEST_NOT_RECEIVED, "warning", request.sent_at, broker_id=request.to_broker_id
        ).explained(
            f"broker {request.to_broker_id} receives the request, being registered all the time",
            f"{request.name}, sent {utc(request.sent_at)}, was not received by {utc(until)}",
            f"Controller {request.controller_id} logged a {REQUEST_KINDS[request.api]} request for"
            f" {request.partitions} partitions at {utc(request.sent_at)}. The whole TRACE log of broker"
            f" {request.to_broker_id} shows no receipt of it until {utc(until)}{later}; no death, restart or new"
            " registration of the broker and no change of controller is known in between.",
            request.evidence,
        )
    )


def _absence(request: Request, cluster: ClusterView) -> int | None:
    """Until when the broker must have received the request and provably did not; None where nothing is proven."""
    sent = request.sent_at
    if (
        sent is None
        or request.acknowledged_at is not None
        or request.controller_epoch is None
        or not request.partitions
    ):
        return None  # brokers log nothing of a request without partitions
    lost = sent + LOST_AFTER_US
    until = max(sent, min(lost, lost if request.next_received_at is None else request.next_received_at))
    may_be_old = cluster.version.may_be_since(BROKER_EPOCHS_SINCE)
    begin = sent - OLD_REGISTRATION_US if may_be_old else sent
    end = until + LIVED_ON_US
    successor = cluster.successor_start(request.controller_epoch)
    is_proven = (
        cluster.logs_all(request.to_broker_id, sent, end)
        and is_live_throughout(cluster, request.to_broker_id, begin, end)
        and is_live_throughout(cluster, request.controller_id, sent, until)
        and (successor is None or successor > end)
    )
    return until if is_proven else None


def is_live_throughout(cluster: ClusterView, broker_id: int, start: int, end: int) -> bool:
    """Whether the broker was one registration, in one process, all the time, for all that is known."""
    held = any(i.start <= start and (i.end is None or i.end > end) for i in cluster.liveness.get(broker_id, ()))
    events = (
        *cluster.process_starts.get(broker_id, ()),
        *cluster.shutdown_requests.get(broker_id, ()),
    )
    listed = all(broker_id in view.live for view in cluster.live_views if start <= view.at <= end)
    return held and listed and not any(start <= at <= end for at, _ in events)


def _judge_never_sent(request: Request, cluster: ClusterView, verdicts: Verdicts) -> None:
    tenure = tenure_of(request, cluster)
    assert request.received_at is not None
    if (
        tenure is None
        or not shows_sending(request, cluster)
        or not cluster.logs_all(request.controller_id, sendable_from(request, tenure), request.received_at)
    ):
        verdicts.unjudged("R23")
        return
    verdicts.broken(
        Divergence(
            DivergenceType.REQUEST_NEVER_SENT, "warning", request.received_at, broker_id=request.to_broker_id
        ).explained(
            f"controller {request.controller_id} logs what it sends, for each partition, before it sends it",
            f"{request.name} was received {utc(request.received_at)} and never sent",
            f"Broker {request.to_broker_id} received a {REQUEST_KINDS[request.api]} request for {request.lines}"
            f" partitions from controller {request.controller_id}, epoch {request.controller_epoch}. The whole TRACE"
            f" log of that controller, from {utc(sendable_from(request, tenure))} on, shows none with these contents"
            " to that broker: nobody sent it, or a line of that log is lost.",
            (*request.evidence, *tenure.evidence[:2]),
        )
    )


def sendable_from(request: Request, tenure: Tenure) -> int:
    """The earliest that the request can have been sent: its connection keeps the order of what was sent."""
    before = request.sent_before
    return tenure.start if before is None else max(tenure.start, before)


def shows_sending(request: Request, cluster: ClusterView) -> bool:
    """Whether the lines of the receipt could be tied to lines of its sending: from 2.6 on a controller counts the
    partitions of an UpdateMetadata request and names none; and lines that are not in order make no request."""
    may_count = request.api == UPDATE_METADATA and cluster.version.may_be_since(BATCHES_COUNTED_SINCE)
    return request.lines > 0 and not may_count and cluster.keeps_order(request.to_broker_id)


def tenure_of(request: Request, cluster: ClusterView) -> Tenure | None:
    """The one tenure of the request's controller at its epoch."""
    held = [
        t
        for t in cluster.tenures
        if (t.controller_id, t.controller_epoch) == (request.controller_id, request.controller_epoch)
    ]
    return held[0] if len(held) == 1 else None


def _judge_handling(request: Request, cluster: ClusterView, verdicts: Verdicts) -> None:
    received = request.received_at
    assert received is not None
    is_silent = (
        request.api == LEADER_AND_ISR
        and request.lines
        and not (
            request.started
            or request.applied_lines
            or request.failed
            or request.ignored
            or request.skipped
            or request.is_refused
        )
    )
    if is_silent:
        # one request in flight: what is answered later was handled later
        end = received + HANDLED_WITHIN_US
        end = max(received, min(end, end if request.next_acknowledged_at is None else request.next_acknowledged_at))
        if cluster.logs_all(request.to_broker_id, received, end) and is_live_throughout(
            cluster, request.to_broker_id, received, end
        ):
            verdicts.broken(_not_handled(request, received))
        else:
            verdicts.unjudged("R23")
    elif _is_unanswered(request, cluster):
        verdicts.broken(_not_answered(request, received))
    elif request.sent_at is None:
        verdicts.unjudged("R23")
    else:
        verdicts.kept("R23")


def _not_handled(request: Request, received: int) -> Finding:
    return Divergence(
        DivergenceType.REQUEST_NOT_HANDLED, "warning", received, broker_id=request.to_broker_id
    ).explained(
        f"broker {request.to_broker_id} begins a transition for each partition, or says why it does not",
        f"{request.name}, received {utc(received)}, shows no effect",
        f"Broker {request.to_broker_id} logged the receipt of {request.lines} partitions at {utc(received)}, and"
        " neither a transition nor a refusal of any after it, before a later request was answered or within"
        f" {HANDLED_WITHIN_US // 1_000_000} s, with its whole TRACE log given and no restart known.",
        request.evidence,
    )


def _is_unanswered(request: Request, cluster: ClusterView) -> bool:
    """Whether the answer is missing though that of a later request to the same broker is there.

    A request whose words were sent again after the connection broke has its answer with the second receipt.
    """
    received, later = request.received_at, request.next_acknowledged_at
    if received is None or later is None or request.acknowledged_at is not None or request.correlation_id is None:
        return False
    if request.sent_at is None:
        return False
    return (
        later >= received
        and cluster.logs_all(request.controller_id, received, later)
        and cluster.logs_all(request.to_broker_id, received, later)
        and is_live_throughout(cluster, request.to_broker_id, received, later)
    )


def _not_answered(request: Request, received: int) -> Finding:
    later = request.next_acknowledged_at
    return Divergence(DivergenceType.REQUEST_NOT_ANSWERED, "info", received, broker_id=request.to_broker_id).explained(
        f"controller {request.controller_id} logs the answer of broker {request.to_broker_id}",
        f"{request.name}, received {utc(received)}, has no answer",
        f"Controller {request.controller_id} logged the answer of broker {request.to_broker_id} to a later request"
        f" ({utc(received if later is None else later)}), none to this one: the connection broke before it came.",
        request.evidence,
    )
