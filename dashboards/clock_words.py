"""How far each broker's clock can be trusted, in a sentence a segment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dashboards import words

ZOOKEEPER: Final = -1


def clock_sentence(row: Mapping[str, Any]) -> str:
    """One row of :func:`dashboards.coverage_data.clocks` as a sentence."""
    broker = f"Broker {row['broker_id']}"
    pairs = _pairs(row)
    if row["verdict"] == "unknown":
        return f"{broker}'s clock cannot be judged: {pairs}."
    reference = "ZooKeeper's"
    if row["reference"] != ZOOKEEPER:
        reference = f"broker {row['reference']}'s (no znodes were given)"
    zone = row["zone_offset_minutes"]
    bounds = _bounds(row, zone or 0)
    text = f"{broker}'s clock was {bounds} {reference}"
    if zone:
        hours, minutes = divmod(abs(zone), 60)
        name = f"UTC{'-' if zone < 0 else '+'}{hours:02}:{minutes:02}"
        text = f"{broker}'s log is in {name}; but for that its clock was {bounds} {reference}"
    correction = row["correction_us"]
    if correction:
        earlier = "earlier" if correction > 0 else "later"
        done = f"its times were taken {words.duration(abs(correction) / 1000)} {earlier} before anything was ordered"
    elif row["verdict"] == "agrees":
        done = "nothing was corrected"
    else:
        done = "nothing was corrected, since nothing proves by how much"
    return f"{text} ({pairs}); {done}."


def _bounds(row: Mapping[str, Any], zone_minutes: int) -> str:
    lower, upper = row["offset_lower_ms"], row["offset_upper_ms"]
    zone_ms = zone_minutes * 60_000
    if lower is None and upper is None:
        return "not bounded against"
    if lower is None:
        return f"at most {_signed(upper - zone_ms)} ahead of"
    if upper is None:
        return f"at least {_signed(lower - zone_ms)} ahead of"
    return f"between {_signed(lower - zone_ms)} and {_signed(upper - zone_ms)} ahead of"


def _signed(milliseconds: int) -> str:
    return f"{'-' if milliseconds < 0 else ''}{words.duration(abs(milliseconds))}"


def _pairs(row: Mapping[str, Any]) -> str:
    count, dropped = row["pairs_count"] or 0, row["dropped_pairs_count"] or 0
    if not count and not dropped:
        return "no causal pair ties it to another"
    against = f", {dropped} against the others" if dropped else ", none against the others"
    return f"{words.count(count, 'causal pair')}{against}"
