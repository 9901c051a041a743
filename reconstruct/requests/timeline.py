"""What became of one request of a controller: when it can have been sent, until when it must have arrived, its outcome.

Absence proves something only where one file of the log, at TRACE and not known to lack lines, covers the whole time in
question.
"""

from __future__ import annotations

from typing import Final

from reconstruct.cluster.spans import Tenure
from reconstruct.cluster.view import ClusterView
from reconstruct.model.versions import BATCHES_COUNTED_SINCE, BROKER_EPOCHS_SINCE
from reconstruct.requests.evidence import UPDATE_METADATA, Request

#: A request that has not arrived by then, with nothing else of the kind after it, is taken to be lost: µs. The send
#: thread tries again after ``controller.socket.timeout.ms`` (30 s) at the latest.
LOST_AFTER_US: Final = 120_000_000
#: A broker that dies may have received what it did not log; it must show that it lived on so long: µs.
LIVED_ON_US: Final = 10_000_000
#: A controller that cannot connect says so at once, and again for each try, µs.
FAILED_WITHIN_US: Final = 10_000_000
#: A controller may know the former registration of a broker so long: µs.
OLD_REGISTRATION_US: Final = 20_000_000
#: Kafka's error codes: the request came from a deposed controller, or names an old registration of the broker.
STALE_ERRORS: Final = frozenset({11, 77})


def outcome_of(request: Request, cluster: ClusterView) -> str:
    """What became of the request: ``applied``, ``ignored_stale``, ``failed``, ``not_received`` or ``unknown``."""
    if request.is_refused or (request.response_error in STALE_ERRORS and not request.completed):
        return "ignored_stale"
    if request.received_at is None:
        if request.acknowledged_at is not None:
            return "applied" if request.response_error == 0 else "failed"
        return "not_received" if absent_until(request, cluster) is not None else "unknown"
    if request.completed:
        return "applied"
    if request.failed:
        return "failed"
    if request.ignored and request.api != UPDATE_METADATA:
        return "ignored_stale"
    if request.applied_at is not None or request.response_error == 0:
        return "applied"
    return "unknown"


def absent_until(request: Request, cluster: ClusterView) -> int | None:
    """Until when the broker must have received the request and provably did not; None where nothing is proven."""
    sent = request.sent_at
    if (
        sent is None
        or request.acknowledged_at is not None
        or request.controller_epoch is None
        or not request.partitions
        or request.is_next_unsent
    ):
        return None  # brokers log nothing of a request without partitions
    until = first_of(sent, sent + LOST_AFTER_US, request.next_received_at)
    begin = sent - OLD_REGISTRATION_US if cluster.version.may_be_since(BROKER_EPOCHS_SINCE) else sent
    end = until + LIVED_ON_US
    successor = cluster.successor_start(request.controller_epoch)
    # set back between sending and receipt a clock tells of the receipt before the sending
    is_set_back = any(cluster.is_set_back(one, sent, end) for one in (request.to_broker_id, request.controller_id))
    is_proven = (
        (not is_set_back or request.unconnected_lines > 0)
        and cluster.logs_all(request.to_broker_id, sent, end)
        and is_live_throughout(cluster, request.to_broker_id, begin, end)
        and is_live_throughout(cluster, request.controller_id, sent, until)
        and (successor is None or successor > end)
        and not _tenure_ends_between(request, cluster, sent, until)
        and not _was_created_again(request, cluster, sent)
    )
    return until if is_proven else None


def _was_created_again(request: Request, cluster: ClusterView, sent: int) -> bool:
    """Whether the cluster was created again later, and nothing shows that its broker lived until the request must have
    arrived: of a process that no line of its start tells apart, the last sign of life may be the next one's."""
    created_at = next((at for at in cluster.recreations if at > sent), None)
    following = request.next_received_at
    return created_at is not None and (following is None or following >= created_at)


def _tenure_ends_between(request: Request, cluster: ClusterView, start: int, end: int) -> bool:
    """Whether a tenure of the request's controller at its epoch ends then: what it has not sent is dropped."""
    own = (one for one in cluster.tenures_of(request.controller_epoch) if one.controller_id == request.controller_id)
    return any(one.end is not None and start <= one.end <= end for one in own)


def is_live_throughout(cluster: ClusterView, broker_id: int, start: int, end: int) -> bool:
    """Whether the broker was one registration, in one process, all the time, for all that is known."""
    breaks = (*cluster.process_starts.get(broker_id, ()), *cluster.shutdown_requests.get(broker_id, ()))
    return (
        cluster.is_registered(broker_id, start, end)
        and cluster.lived_on(broker_id, start, end)
        and all(broker_id in view.live for view in cluster.live_views if start <= view.at <= end)
        and not any(start <= at <= end for at, _ in breaks)
    )


def first_of(begin: int, limit: int, following: int | None) -> int:
    """When the next request shows what became of this one, between ``begin`` and ``limit``; ``limit`` without one."""
    return limit if following is None else max(begin, min(limit, following))


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
    of_epoch = cluster.tenures_of(request.controller_epoch)
    tenures = [tenure for tenure in of_epoch if tenure.controller_id == request.controller_id]
    return tenures[0] if len(tenures) == 1 else None
