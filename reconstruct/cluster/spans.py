"""What lasted of a cluster's brokers and controllers: tenures, registrations, logs. Instants in µs since the epoch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from reconstruct.time.intervals import Interval

#: So many records of a tenure's begin are shown; what tells of its end stands behind them.
SHOWN_OF_TENURE: Final = 2
#: Higher than any correlation id.
_ANY_LATER: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Tenure:
    """One controller's hold of one controller epoch; ``controller_id`` is -1 where nothing says who it was.

    ``level_floor`` is the lowest level seen in its state-change log: None where none of that log was given.
    """

    controller_id: int
    controller_epoch: int
    start: int
    end: int | None
    evidence: tuple[str, ...]
    level_floor: str | None = None
    #: counts how often the cluster had been created again in the same folders: epochs start again each time.
    generation: int = 0

    @property
    def logs_transitions(self) -> bool:
        """Whether replica transitions and partitions going offline are in the log that was given."""
        return self.level_floor == "TRACE"

    def before(self, instant: int) -> Tenure:
        """What was known of it by then."""
        is_over = self.end is not None and self.end < instant
        return self if is_over else replace(self, end=None, evidence=self.evidence[:SHOWN_OF_TENURE])


@dataclass(frozen=True, slots=True)
class Registration:
    """A broker's registration and why it ended; None while it lasts or where nothing says.

    ``ended_after``: it had not ended by then, µs; None where nothing tells. A transaction tells the end itself.
    """

    end_reason: str | None = None
    ended_after: int | None = None


def registration_before(span: Interval[Registration], instant: int) -> Interval[Registration]:
    """What was known of a registration by then: of one that ended later, that it had not ended."""
    if span.end is not None and span.end < instant:
        return span
    lasted = span.value.ended_after if span.end is None else instant
    return Interval(span.start, None, Registration(None, lasted and min(lasted, instant)), span.evidence[:1])


@dataclass(frozen=True, slots=True)
class Departure:
    """A broker that stopped serving before, or as, its registration ended; instants in µs since the epoch.

    ``served_until`` is its last sign of life. At ``gone_by`` it had stopped; None where nothing proves when: it lived
    on, paused or cut off, or neither a later start nor failed connections tell of its death. Its registration ended
    between ``unregistered_after`` and ``unregistered_by``.
    """

    served_until: int
    gone_by: int | None
    unregistered_after: int
    unregistered_by: int
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LogSpan:
    """What one file of a broker's state-change log covers, in µs; ``level_floor`` is the lowest level seen in it.

    ``is_in_order``: its times allow that its lines stand in the order in which they were written
    (:mod:`reconstruct.time.line_order`). ``is_shared``: other brokers' processes write to it, too, and roll it: what
    one of them wrote since is in the file that another rolls away, and is lost with the next. ``most_back_us``: by how
    much its times jump back at the most. ``file`` is that file, "" where it is not told apart.
    """

    start: int
    end: int
    level_floor: str | None
    is_in_order: bool = True
    is_shared: bool = False
    most_back_us: int = 0
    file: str = ""

    def before(self, instant: int) -> LogSpan:
        """What of it was written by then."""
        return replace(self, end=min(self.end, instant))


@dataclass(frozen=True, slots=True)
class CountedRequests:
    """Requests that a broker received of one controller one after the other: correlation ids without a gap, and of each
    the broker's log has its count and all lines of it (2.6 and later, TRACE). ``start`` and ``end`` are the receipts of
    the first and the last, µs."""

    controller_id: int
    controller_epoch: int
    first_id: int
    last_id: int
    start: int
    end: int

    def before(self, instant: int) -> CountedRequests:
        """Those by then: where they go on, any that was received by then is one of them."""
        return self if self.end < instant else replace(self, end=instant, last_id=_ANY_LATER)


@dataclass(frozen=True, slots=True)
class LiveView:
    """The live brokers as a controller listed them: its own, processed view; ``added``: those that it had not held for
    live until then, as the line says."""

    at: int
    controller_id: int | None
    live: frozenset[int]
    evidence_id: str
    added: frozenset[int] = frozenset()


#: A controller that ignores a registration says so in the same step as it lists the brokers, µs.
_SAME_STEP_US: Final = 1_000_000


def leave_out(views: list[LiveView], controller_id: int | None, at: int, ignored: frozenset[int]) -> None:
    """Take the brokers whose registration a controller ignores, since their features do not fit (since 2.7), from the
    list of /brokers/ids that it logged just before: it does not hold them for live."""
    for place in range(len(views) - 1, -1, -1):
        view = views[place]
        if view.at < at - _SAME_STEP_US:
            break
        if view.controller_id == controller_id and view.at <= at:
            views[place] = replace(view, live=view.live - ignored, added=view.added - ignored)
            break
