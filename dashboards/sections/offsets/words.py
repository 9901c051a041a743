"""What was lost, in sentences: the text beside the curves, and the verdict's part of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dashboards import words
from dashboards.sections.offsets.rows import Curve, Election, Loss

_CAUSES: Final[Mapping[str, str]] = {
    "unclean_election": "from outside the ISR",
    "clean_election": "from the ISR, though its log lacked committed records",
    "leader_returned_with_less": "leader again, with a shorter log",
}
Stamp = Callable[[float | None], str]


@dataclass(frozen=True)
class Event:
    """What happened to a partition, or to one replica of it (None: to all)."""

    at_ms: float
    replica: int | None
    text: str
    is_loss: bool = False


def loss_verdict(curves: Sequence[Curve]) -> str:
    """What the cluster lost, and which logs still differ; empty where nothing is known to be lost."""
    losing = [row for row in curves if row.losses_count]
    if not losing:
        return ""
    first = losing[0]
    proven, all_losing = first.proven_total, first.losing_total
    if not proven:
        named = words.listing((row.name for row in losing), total=all_losing)
        return f"No record is proven lost, but {named} may have lost committed records."
    some = [row for row in losing if row.lost_lower > 0]
    stamp = words.clock if words.same_day(row.lost_at_ms for row in some) else words.instant
    named = words.listing((_named(row, stamp) for row in some), 3, proven)
    upper = None if first.unbounded_total else first.lost_upper_total
    text = f"Committed records were lost: {_counted(first.lost_lower_total, upper)} in "
    text += f"{words.count(proven, 'partition')}: {named}."
    if all_losing > proven:
        text += f" {words.count(all_losing - proven, 'more partition')} may have lost some."
    differing = [row for row in losing if row.diverging]
    if differing:
        listed = words.listing((row.name for row in differing), total=first.diverging_total)
        text += f" In {listed} a replica kept records of its own: logs differ, and nothing in Kafka says so."
    return text


def headline(curve: Curve, stamp: Stamp) -> str:
    """A drawn partition in one line."""
    if not curve.losses:
        unclean = f", {words.count(curve.unclean, 'unclean election')}" if curve.unclean else ""
        rose = f"; {words.count(curve.rise, 'offset')} written in what is known" if curve.rise else ""
        return f"no loss is known{unclean}{rose}"
    parts = [
        f"{_counted(loss.lost_count_lower, loss.lost_count_upper)} lost at {stamp(loss.at_ms)}" for loss in curve.losses
    ]
    differs = sorted({own.replica_id for loss in curve.losses for own in loss.own_records})
    text = words.listing(parts, 3)
    if differs:
        verb = "keeps records of its own" if len(differs) == 1 else "keep records of their own"
        text += f"; replica {words.listing(map(str, differs))} {verb}"
    return text


def events(curve: Curve) -> tuple[Event, ...]:
    """What happened to a drawn partition, in order of time."""
    lost = {(loss.at_ms, loss.leader_epoch) for loss in curve.losses}
    found = [Event(loss.at_ms, None, loss_sentence(loss), is_loss=True) for loss in curve.losses]
    for loss in curve.losses:
        for own in loss.own_records:
            text = (
                f"followed leader {loss.leader} with its own records at offsets"
                f" {_range(own.first_offset, own.last_offset)}: there its log differs from its leader's"
            )
            found.append(Event(loss.at_ms, own.replica_id, text, is_loss=True))
    for row in curve.elections:
        if (row.at_ms, row.leader_epoch) not in lost:
            found.append(Event(row.at_ms, row.observed_leader, _election(row)))
    found += [Event(row.at_ms, row.replica_id, f"cut its log to offset {row.to_offset:,}") for row in curve.truncations]
    return tuple(sorted(found, key=lambda event: event.at_ms))


def loss_sentence(loss: Loss) -> str:
    """One row of ``gold.data_loss_bounds``."""
    first, least, most = loss.lost_from_offset, loss.lost_to_offset_lower, loss.lost_to_offset_upper
    text = (
        f"leader {loss.leader} began epoch {loss.leader_epoch} at offset {first:,}, {_CAUSES[loss.cause]},"
        f" after leader {loss.previous_leader}: "
    )
    if loss.lost_count_lower:
        perhaps = "and how many more is not known" if most is None else f"perhaps up to {most:,}"
        more = "" if most == least else f", {perhaps}"
        text += f"committed records at offsets {_range(first, least)} are lost{more}"
    else:
        text += "no record is proven lost" + ("" if most is None else f", those at {_range(first, most)} may be")
    return f"{text} ({_counted(loss.lost_count_lower, loss.lost_count_upper)})"


def last_known(curve: Curve, stamp: Stamp) -> tuple[str, ...]:
    """Each replica's bounds in its last step."""
    last = {row.replica_id: row for row in curve.steps}
    return tuple(
        f"Replica {replica}, {'at the end' if row.to_ms is None else 'until ' + stamp(row.to_ms)}: "
        f"LEO {bounds(row.log_end_offset_lower, row.log_end_offset_upper)}, "
        f"HW {bounds(row.high_watermark_lower, row.high_watermark_upper)}."
        for replica, row in sorted(last.items())
    )


def bounds(lower: int | None, upper: int | None) -> str:
    """``498``, ``498 or more``, ``498 or less``, ``284 to 306``, ``not known``."""
    if lower is None and upper is None:
        return "not known"
    if upper is None:
        return f"{lower:,} or more"
    if lower is None:
        return f"{upper:,} or less"
    return f"{lower:,}" if lower == upper else f"{lower:,} to {upper:,}"


def _election(row: Election) -> str:
    how = words.named(row.election_kind) + (", unclean" if row.is_unclean else "")
    after = "" if row.previous_leader in (None, -1) else f", after leader {row.previous_leader}"
    return f"elected leader at epoch {row.leader_epoch} ({how}){after}"


def _counted(lower: int, upper: int | None) -> str:
    if upper is None:
        return f"at least {words.count(lower, 'record')}, at most not known"
    if lower == upper:
        return words.count(lower, "record")
    return f"at least {lower:,}, at most {words.count(upper, 'record')}"


def _range(first: int, last: int | None) -> str:
    return f"{first:,}" if last in (None, first) else f"{first:,} to {last:,}"


def _named(row: Curve, stamp: Stamp) -> str:
    count = bounds(row.lost_lower, None if row.unbounded else row.lost_upper)
    return f"{row.name} at {stamp(row.lost_at_ms)} ({count})"
