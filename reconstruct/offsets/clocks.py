"""How far the clocks may still be from each other on which the evidence about offsets was timed.

Three kinds of clock are compared. A line is of its broker's clock, corrected
(:mod:`reconstruct.clocks.timeline`); what remains unknown after the correction is that clock's uncertainty: the
line's true instant lies within it, before or after. Copies of files and answers to probes are of the capturer's clock,
which is taken as the cluster's. A decided state is of ZooKeeper's or of whichever broker's line shows it first: nothing
says which, so it is as uncertain as the worst of them.

Instants of one broker's lines keep their order and distance, whatever its clock shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from reconstruct.offsets.bound_steps import EVER_AFTER, EVER_BEFORE

#: The clock of copies, probes and znodes read by a client: the cluster's.
CAPTURER: Final = -1
#: The clock of decided states.
DECISIONS: Final = -2
#: What the slack between a line and the value that it prints covers already: µs.
NEGLIGIBLE_US: Final = 50_000
#: Of a clock that nothing bounds: longer than any evidence lasts, and two of them still less than for ever. In µs.
UNBOUNDED_US: Final = 2**60


@dataclass(frozen=True, slots=True)
class OffsetClocks:
    """``uncertainty_us`` by broker; one that is not named is exact, one of :data:`UNBOUNDED_US` compares with none."""

    uncertainty_us: Mapping[int, int] = field(default_factory=dict)

    def slack_us(self, clock: int) -> int:
        """By how much an instant of ``clock`` may be off the cluster's time, either way."""
        if clock == CAPTURER:
            return 0
        if clock == DECISIONS:
            uncertain = max(self.uncertainty_us.values(), default=0)
        else:
            uncertain = self.uncertainty_us.get(clock, 0)
        return uncertain if uncertain > NEGLIGIBLE_US else 0

    def between_us(self, one: int, other: int) -> int:
        """By how much the distance of instants of two clocks may be off; 0 for one clock."""
        return 0 if one == other else self.slack_us(one) + self.slack_us(other)

    def is_bounded(self, clock: int) -> bool:
        """Whether anything that ``clock`` timed can be compared with other clocks."""
        return self.slack_us(clock) < UNBOUNDED_US

    def set_back(self, by_us: Mapping[int, int]) -> OffsetClocks:
        """The same where times jump back by so much in a broker's log, corrected: on one side of the jump they are
        wrong by that, whatever was proven of the other."""
        worst = {broker: max(by, self.uncertainty_us.get(broker, 0)) for broker, by in by_us.items()}
        return OffsetClocks({**self.uncertainty_us, **worst})

    def assuming_unbounded_exact(self) -> OffsetClocks:
        """The same, but a clock that nothing bounds counts as exact: what is shown of it is right if its clock is."""
        return OffsetClocks({clock: us for clock, us in self.uncertainty_us.items() if us < UNBOUNDED_US})


def remaining_us(
    offset_lower_ms: int | None,
    offset_upper_ms: int | None,
    correction_us: int | None,
    verdict: str,
    *,
    is_disputed: bool = False,
) -> int:
    """What one segment of a broker's clock may still be off by after its correction; :data:`UNBOUNDED_US` where a bound
    is missing, the evidence contradicts itself, or it fits this clock's being set as well as another's.

    >>> remaining_us(-3, 40, None, "agrees")
    40000
    >>> remaining_us(-60_010, -59_990, -60_000_000, "skewed")
    10000
    """
    is_unknown = is_disputed or verdict in ("unbounded", "unknown")
    if offset_lower_ms is None or offset_upper_ms is None or is_unknown:
        return UNBOUNDED_US
    corrected = correction_us or 0
    return max(abs(1000 * offset_lower_ms - corrected), abs(1000 * offset_upper_ms - corrected))


def earlier(instant: int, by: int) -> int:
    """``instant`` less ``by``; since ever and for ever stay what they are."""
    return instant if instant in (EVER_BEFORE, EVER_AFTER) else instant - by


def later(instant: int, by: int) -> int:
    """``instant`` and ``by``; since ever and for ever stay what they are."""
    return earlier(instant, -by)
