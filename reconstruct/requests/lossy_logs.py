"""State-change logs that are proven to lack lines: what such a log does not say proves nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from reconstruct.cluster.view import ClusterView
from reconstruct.requests.evidence import Request
from reconstruct.requests.timeline import sendable_from, shows_sending, tenure_of

#: So many proofs, that far apart, make a log lossy: one line that was bent or cut explains several at one time.
LOSSY_PROOFS: Final = 3
PROOFS_APART_US: Final = 10_000_000
#: A request whose begin is cut off with the begin of its file is no proof: µs.
_BEGUN_BEFORE_US: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class MissingLines:
    """A proof that the state-change log of ``broker_id`` lacks lines that its process must have written."""

    broker_id: int
    at: int
    evidence: tuple[str, ...]


def missing_lines(request: Request, cluster: ClusterView) -> Iterator[MissingLines]:
    """What one request proves of the logs of its two ends. A line that only says something else is not missing."""
    received, sent = request.received_at, request.sent_at
    to_broker = request.to_broker_id
    # since 2.6 a line of level INFO counts the lines at TRACE that stand beside it
    for broker_id, at, ref, is_lacking in (
        (request.controller_id, sent, request.sent_ref, request.lacking_sent > 0),
        (to_broker, received, request.received_ref, request.lacking_received > 0),
        (to_broker, received, request.applied_ref, request.completed > request.started),
    ):
        if is_lacking and at is not None and ref is not None and cluster.logs_all(broker_id, at - _BEGUN_BEFORE_US, at):
            yield MissingLines(broker_id, at, (ref,))
    is_unsent = received is not None and sent is None and not (request.is_repeated or request.is_lost_before)
    if received is not None and is_unsent and shows_sending(request, cluster):
        tenure = tenure_of(request, cluster)
        if tenure is not None and cluster.logs_all(request.controller_id, sendable_from(request, tenure), received):
            yield MissingLines(request.controller_id, received, request.evidence)
    answered = request.acknowledged_at
    if (
        received is not None
        or sent is None
        or answered is None
        or request.response_error != 0
        or not request.partitions
    ):
        return
    if cluster.logs_all(to_broker, sent, answered):
        yield MissingLines(to_broker, sent, request.evidence)


def lossy_brokers(proofs: Iterable[MissingLines]) -> dict[int, tuple[str, ...]]:
    """Brokers whose log is proven to lack lines, with the records that prove it: :data:`LOSSY_PROOFS`, each
    :data:`PROOFS_APART_US` from the next, since one line that was bent or cut explains several proofs of one moment
    (a line that tells of a request to ten brokers is missing ten times)."""
    by_broker: dict[int, list[MissingLines]] = {}
    for proof in sorted(proofs, key=lambda proof: (proof.broker_id, proof.at, proof.evidence)):
        apart = by_broker.setdefault(proof.broker_id, [])
        if not apart or proof.at - apart[-1].at >= PROOFS_APART_US:
            apart.append(proof)
    return {
        broker_id: tuple(dict.fromkeys(record for proof in apart[:LOSSY_PROOFS] for record in proof.evidence))
        for broker_id, apart in by_broker.items()
        if len(apart) >= LOSSY_PROOFS
    }
