"""Whether one request of a controller to one broker was received, handled and answered (R23).

A controller keeps one connection to each live broker, with one request in flight; the rest waits in a queue. What
Kafka allows to happen to a request on its way (``ControllerChannelManager``, ``RequestSendThread``, ``KafkaApis``):

* the broker dies, loses its session or shuts down: the controller drops its queue, and up to 2.x logs as sent what it
  does not send, "since it is offline";
* the controller resigns or dies: its send threads stop, the queue is dropped;
* the connection breaks: the request is sent again, up to 0.8.2 with the same correlation id, later with the next;
* the broker hangs, as with its disk, and its session lives on: it handles the request whenever it can;
* from 2.2 a broker that has registered anew answers requests to its former registration without handling them.

None of these is a finding.
"""

from __future__ import annotations

from typing import Final

from reconstruct.cluster.view import ClusterView
from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.verdicts import Divergence, Finding, Verdicts
from reconstruct.requests.evidence import LEADER_AND_ISR, REQUEST_KINDS, Request
from reconstruct.requests.timeline import (
    FAILED_WITHIN_US,
    absent_until,
    is_live_throughout,
    sendable_from,
    shows_sending,
    tenure_of,
)
from reconstruct.time.instants import utc

#: What shows later that a broker goes on may be of one that hung, whose lines then are tied to nothing: µs.
HANDLED_WITHIN_US: Final = 60_000_000


def judge_propagation(request: Request, cluster: ClusterView, verdicts: Verdicts) -> None:
    """Judge whether one request arrived, was handled and was answered: R23."""
    if request.received_at is None:
        _judge_not_received(request, cluster, verdicts)
    elif request.sent_at is None and not request.is_repeated:
        _judge_never_sent(request, cluster, verdicts)
    else:
        _judge_handling(request, cluster, verdicts)


def _judge_not_received(request: Request, cluster: ClusterView, verdicts: Verdicts) -> None:
    if request.sent_at is None:
        return  # an answer whose request left no line: an UpdateMetadata without partitions, a StopReplica up to 2.5
    if request.acknowledged_at is not None and request.partitions == 0:
        verdicts.kept("R23")  # brokers log nothing of a request without partitions
        return
    until = absent_until(request, cluster)
    if until is None:
        verdicts.unjudged("R23")
        return
    failed = ""
    if request.unconnected_lines:
        times = "once" if request.unconnected_lines == 1 else f"{request.unconnected_lines} times"
        failed = (
            f" The controller's own log says {times} within {FAILED_WITHIN_US // 1_000_000} s that it could not"
            " connect or send to that broker."
        )
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
            f" registration of the broker and no change of controller is known in between.{failed}",
            (*request.evidence, *request.unconnected_refs),
        )
    )


def _judge_never_sent(request: Request, cluster: ClusterView, verdicts: Verdicts) -> None:
    tenure = tenure_of(request, cluster)
    assert request.received_at is not None
    if (
        tenure is None
        or request.is_lost_before
        or request.received_at < sendable_from(request, tenure)  # the tenure is known from its later lines alone
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
        # one request in flight, and one lock: the next is handled later; where none is, all may wait for a disk
        ends = {
            request.acknowledged_at: "the request was answered",
            request.next_acknowledged_at: "a later request was answered",
            request.next_applied_at: "a later request was applied",
        }
        end = min(
            (at for at in ends if at is not None and received <= at <= received + HANDLED_WITHIN_US), default=None
        )
        if (
            end is not None
            and cluster.logs_all(request.to_broker_id, received, end)
            and is_live_throughout(cluster, request.to_broker_id, received, end)
        ):
            verdicts.broken(_not_handled(request, received, f"{ends[end]} at {utc(end)}"))
        else:
            verdicts.unjudged("R23")
    elif _is_unanswered(request, cluster):
        verdicts.broken(_not_answered(request, received))
    elif request.sent_at is None:
        verdicts.unjudged("R23")
    else:
        verdicts.kept("R23")


def _not_handled(request: Request, received: int, shown_by: str) -> Finding:
    return Divergence(
        DivergenceType.REQUEST_NOT_HANDLED, "warning", received, broker_id=request.to_broker_id
    ).explained(
        f"broker {request.to_broker_id} begins a transition for each partition, or says why it does not",
        f"{request.name}, received {utc(received)}, shows no effect",
        f"Broker {request.to_broker_id} logged the receipt of {request.lines} partitions at {utc(received)}, and"
        f" neither a transition nor a refusal of any after it, though {shown_by}, with its whole TRACE log given and no"
        " restart known.",
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
