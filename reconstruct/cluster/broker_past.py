"""What is known of one broker in the order of time: looked up, not gone through, where it starts again and again."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ingest.shapes.broker_settings import BrokerSetting
from reconstruct.cluster.brokers import RegistrationSpan
from reconstruct.cluster.evidence import STARTS, ClusterFacts, LifeSign
from reconstruct.cluster.settings import Configuration
from reconstruct.time.spans import within

#: With its default tick of two seconds ZooKeeper grants no longer session timeout, whatever a broker asks for.
_LONGEST_TIMEOUT_MS: Final = 40_000


@dataclass(frozen=True, slots=True)
class BrokerPast:
    """Its signs of life, and when its own logs have a line, a process started, or a line says that one did; when it
    asked for a controlled shutdown; ``is_of_quorum``: a quorum registered it. All in order, µs."""

    signs: Sequence[LifeSign]
    lines: Sequence[int]
    starting_lines: Sequence[int]
    process_starts: Sequence[int]
    shutdown_requests: Sequence[int]
    configuration: Configuration | None
    is_of_quorum: bool

    def signs_between(self, after: int, before: int | None) -> Sequence[LifeSign]:
        """Those after an instant, and before another one if that is known."""
        return within(self.signs, after + 1, None if before is None else before - 1)

    def next_process_start(self, after: int) -> int | None:
        """When the first process after that instant started; None where none is known to have."""
        return _first_after(self.process_starts, after)

    def next_starting_line(self, after: int) -> int | None:
        """When the first line after that instant says that a process starts."""
        return _first_after(self.starting_lines, after)

    def has_line_between(self, after: int, before: int | None) -> bool:
        """Whether its own logs have a line after an instant, and before another one if that is known."""
        first = _first_after(self.lines, after)
        return first is not None and (before is None or first < before)

    def silent_since(self, span: RegistrationSpan) -> int | None:
        """From when on the broker sent ZooKeeper nothing, at the latest, where its session expired: a client that lives
        pings each third of the timeout, and ZooKeeper waits for the whole of it after the last ping. The rest is
        allowed for pings that were late. None where its configuration does not give the timeout, or the session may
        have been closed: the broker was asked to be shut down, or no line of its start proves that its log would tell.
        """
        end, least = span.interval.end, self.least_silence_us(span)
        has_start = bool(self.process_starts) and self.process_starts[0] <= span.interval.start
        if least is None or end is None or not has_start or self.was_asked_to_stop(span):
            return None
        return end - least

    def least_silence_us(self, span: RegistrationSpan) -> int | None:
        """How long a process was silent, at the least, before its session expired; None where that is not known."""
        own = self.configuration
        timeout_ms = None if own is None else own.number(BrokerSetting.SESSION_TIMEOUT, span.interval.start, -1)
        if timeout_ms is None or timeout_ms < 0:
            return None
        return min(timeout_ms, _LONGEST_TIMEOUT_MS) * 1000 // 2

    def was_asked_to_stop(self, span: RegistrationSpan) -> bool:
        """Whether its controller was asked to let the broker shut down in the time of the registration."""
        place = bisect_left(self.shutdown_requests, span.interval.start)
        return place < len(self.shutdown_requests) and span.interval.holds_at(self.shutdown_requests[place])


def broker_pasts(facts: ClusterFacts, broker_ids: Iterable[int]) -> Mapping[int, BrokerPast]:
    """By broker, of these."""
    signs = facts.life_signs_by_broker
    starts: dict[int, list[int]] = {}
    for broker_id, at, _ in facts.process_starts:
        starts.setdefault(broker_id, []).append(at)
    asked: dict[int, list[int]] = {}
    for fact in facts.brokers:
        if fact.kind == "shutdown_requested":
            asked.setdefault(fact.broker_id, []).append(fact.at)
    of_quorum = {fact.broker_id for fact in facts.brokers if fact.is_of_quorum}
    return {
        broker_id: BrokerPast(
            signs=(own := signs.get(broker_id, [])),
            lines=[sign.at for sign in own if sign.kind == "line"],
            starting_lines=[sign.at for sign in own if sign.kind == STARTS],
            process_starts=sorted(starts.get(broker_id, ())),
            shutdown_requests=sorted(asked.get(broker_id, ())),
            configuration=facts.configuration_of(broker_id),
            is_of_quorum=broker_id in of_quorum,
        )
        for broker_id in broker_ids
    }


def _first_after(instants: Sequence[int], after: int) -> int | None:
    place = bisect_right(instants, after)
    return instants[place] if place < len(instants) else None
