"""Which evidence of a broker's checkpoints may be compared by its instants.

A line is of its broker's clock, a copy of the capturer's, an assignment and a proven high watermark of whichever told
it first (:mod:`reconstruct.offsets.clocks`). Where the broker's clock may be off, no order of lines and copies
is proven: each kind is then judged by itself, as if the other had not been given.
"""

from __future__ import annotations

from dataclasses import replace

from reconstruct.checkpoints.evidence import BrokerCheckpoints
from reconstruct.offsets.clocks import UNBOUNDED_US


def comparable_parts(evidence: BrokerCheckpoints) -> list[BrokerCheckpoints]:
    """The evidence in parts, within each of which instants may be compared: all of it where the clocks agree."""
    if evidence.decided_slack_us >= UNBOUNDED_US:
        evidence = replace(evidence, assigned={}, proven={}, decided_slack_us=0)
    if not evidence.clock_slack_us:
        return [evidence]
    # a file is stale only where no line tells of a new leader or a truncation: without lines none is
    copies = replace(evidence, lines=(), starts=(), covered=(), sessions=())
    lines = replace(evidence, copies=(), entries=(), assigned={}, proven={}, sessions=())
    return [copies, lines]
