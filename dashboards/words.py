"""The report's sentences: instants, durations, counts and the verdict, as plain text.

Nothing here is HTML; escaping is the template's work. Control and direction-changing characters, which would make a
text look like another, are made visible by :func:`visible`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_HIDDEN: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_SEVERITY_WORDS: Final = {"error": ("error", "errors"), "warning": ("warning", "warnings"), "info": ("note", "notes")}
KIND_WORDS: Final[Mapping[str, str]] = {
    "offline": "offline (no live leader)",
    "under_min_isr": "under min ISR (acks=all writes fail)",
    "at_min_isr": "at min ISR",
    "under_replicated": "under-replicated",
    "non_preferred_leader": "led by another than the preferred replica",
    "reassigning": "being reassigned",
    "deleting": "being deleted",
}
INFERRED_WORDS: Final[Mapping[str, str]] = {
    "znode_snapshot": "from znode snapshots: the write happened between two of them",
    "unlogged_transition": "a step that this version, or this log level, does not log",
    "log_gap": "a line must have been there and is not",
    "conflict_closed": "contradicting evidence ended the interval",
    "retention_boundary": "the evidence begins later than the interval",
    "controller_failover": "state that a new controller takes over without logging it",
    "request_sent": "known only from a request that restates it",
    "isr_proposal": "a leader's ISR change whose commit is not logged at this level",
    "replication_rules": "sightings of offsets, carried to other instants and replicas by the rules of replication",
}


def instant(value: float | None) -> str:
    """``2026-11-21 10:04:12.310``, UTC; a dash where unknown."""
    if value is None:
        return "–"
    return (_EPOCH + timedelta(milliseconds=value)).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def clock(value: float | None) -> str:
    """``10:04:12.310``: the instant without its day."""
    return instant(value)[-12:] if value is not None else "–"


def same_day(values: Iterable[float | None]) -> bool:
    """Whether all instants lie on one day of UTC, so that a clock's reading says enough."""
    return len({instant(value)[:10] for value in values if value is not None}) <= 1


def duration(value: float | None) -> str:
    """Milliseconds in words: ``310 ms``, ``6.610 s``, ``3 min 54.7 s``, ``2 h 05 min``, ``3 d 04 h``."""
    if value is None:
        return "–"
    value = round(value)
    if value < 1000:
        return f"{value} ms"
    if value < 60_000:
        return f"{value / 1000:.3f} s"
    if value < 3_600_000:
        return f"{value // 60_000} min {value % 60_000 / 1000:.1f} s"
    if value < 86_400_000:
        return f"{value // 3_600_000} h {value // 60_000 % 60:02d} min"
    return f"{value // 86_400_000} d {value // 3_600_000 % 24:02d} h"


def count(number: float | None, one: str, many: str | None = None) -> str:
    """``1 partition``, ``2,000 partitions``."""
    whole = int(number or 0)
    return f"{whole:,} {one if whole == 1 else many or one + 's'}"


def size(value: float | None) -> str:
    """Bytes in words, powers of 1000."""
    amount = float(value or 0)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def visible(text: Any) -> str:
    r"""The text with control, zero-width and direction-changing characters spelled out (``\u202e``)."""
    return _HIDDEN.sub(
        lambda m: f"\\u{ord(m.group()):04x}" if ord(m.group()) > 255 else f"\\x{ord(m.group()):02x}", str(text)
    )


def partition(row: Mapping[str, Any]) -> str:
    """``topic-0`` as Kafka writes it; empty where the row names none."""
    if row.get("topic") is None:
        return ""
    return visible(row["topic"]) + ("" if row.get("partition_id") is None else f"-{row['partition_id']}")


def listing(words: Iterable[str], limit: int = 4) -> str:
    """``a, b and c``; what is beyond the limit is counted."""
    items = list(words)
    if len(items) > limit:
        items = [*items[: limit - 1], f"{len(items) - limit + 1:,} more"]
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}" if items else ""


def findings_verdict(counts: Sequence[Mapping[str, Any]], judged: bool, rules: Sequence[Mapping[str, Any]] = ()) -> str:
    """How many findings, of which severity, by which rules."""
    total = sum(row["findings"] for row in counts)
    if not total:
        if not judged:
            return "Nothing could be judged: the lake holds no timeline of this cluster."
        if not rules:
            return "No findings: no rule that was judged is broken in this evidence."
        kept, unjudged = (sum(row[verdict] for row in rules) for verdict in ("kept", "cannot_be_judged"))
        some = f"; {count(unjudged, 'time')} the evidence allowed no verdict" if unjudged else ""
        return f"No findings: {count(len(rules), 'rule')} judged {count(kept, 'time')} and kept each time{some}."
    by_severity = []
    for severity, (one, many) in _SEVERITY_WORDS.items():
        number = sum(row["findings"] for row in counts if row["severity"] == severity)
        if number:
            by_severity.append(count(number, one, many))
    by_rule: dict[str, int] = {}
    for row in counts:
        rule = f"{visible(row['rule_id'])} {named(row['divergence_type'])}"
        by_rule[rule] = by_rule.get(rule, 0) + int(row["findings"])
    named_rules = [f"{rule} ({number:,})" for rule, number in by_rule.items()]
    return f"{count(total, 'finding')} ({listing(by_severity)}): {listing(named_rules)}."


def offline_verdict(
    summary: Sequence[Mapping[str, Any]], longest: Sequence[Mapping[str, Any]], judged: bool, partitions: int
) -> str:
    """Whether anything was offline, for how long, and what was worst."""
    row = next((r for r in summary if r["kind"] == "offline"), None)
    if row is None:
        return (
            "No partition was offline in what the evidence shows."
            if judged
            else "Whether anything was offline is unknown: the lake holds no leader of any partition."
        )
    worst = next((r for r in longest if r["kind"] == "offline"), None)
    text = (
        f"{count(row['partitions'], 'partition')} of {partitions:,} had no live leader, "
        f"{count(row['intervals'], 'time')} in all, for {duration(row['total_ms'])} together"
    )
    if worst:
        stamp = clock if same_day([worst["from_ms"], worst["to_ms"]]) else instant
        until = f"to {stamp(worst['to_ms'])}" if worst["to_ms"] is not None else "and still at the end of the evidence"
        text += f"; longest {partition(worst)}, {duration(worst['lasted_ms'])}, from {stamp(worst['from_ms'])} {until}"
    still = f" {count(row['open'], 'partition')} had no leader when the evidence ends." if row["open"] else ""
    return text + "." + still


def isr_verdict(summary: Sequence[Mapping[str, Any]]) -> str:
    """Under min ISR and under-replicated in one sentence; empty where neither occurred."""
    parts = []
    for kind, word in (("under_min_isr", "under min ISR"), ("under_replicated", "under-replicated")):
        row = next((r for r in summary if r["kind"] == kind), None)
        if row:
            parts.append(
                f"{count(row['partitions'], 'partition')} {word} (longest {duration(row['longest_ms'])}, "
                f"{row['open']:,} still at the end)"
            )
    return f"{' and '.join(parts)}." if parts else ""


def controllers_verdict(tenures: Sequence[Mapping[str, Any]]) -> str:
    """Who was controller when."""
    if not tenures:
        return "Who was controller is unknown: no evidence names one."
    told = []
    stamp = clock if same_day(v for row in tenures for v in (row["from_ms"], row["to_ms"])) else instant
    for row in tenures[:3]:
        who = f"broker {row['controller_id']}" if row["controller_id"] >= 0 else "an unknown broker"
        until = f"to {stamp(row['to_ms'])}" if row["to_ms"] is not None else "to the end of the evidence"
        told.append(f"{who} (epoch {row['controller_epoch']}, from {stamp(row['from_ms'])} {until})")
    total = tenures[0].get("total", len(tenures))
    more = f", and {count(total - 3, 'more tenure')}" if total > 3 else ""
    return f"Controller: {', then '.join(told)}{more}."


def brokers_verdict(liveness: Sequence[Mapping[str, Any]]) -> str:
    """Which registrations ended, and how; empty where nothing is known of any."""
    if not liveness:
        return ""
    ended = [r for r in liveness if r["to_ms"] is not None]
    if not ended:
        return f"No registration of {count(len({r['broker_id'] for r in liveness}), 'broker')} ended."
    stamp = clock if same_day(r["to_ms"] for r in ended) else instant
    told = [
        f"broker {r['broker_id']} at {stamp(r['to_ms'])} ({named(r['end_reason'] or 'reason unknown')})"
        for r in sorted(ended, key=lambda r: (r["to_ms"], r["broker_id"]))
    ]
    return f"{count(len(ended), 'registration')} ended: {listing(told)}."


def certainty(inferred: Sequence[Mapping[str, Any]], without_timeline: int) -> str:
    """Observed, inferred and unknown, apart."""
    total = sum(r["intervals"] for r in inferred)
    if not total:
        return "No leader-and-ISR interval is known."
    observed = sum(r["intervals"] for r in inferred if r["inferred_from"] is None)
    reasons = [f"{r['intervals']:,} {named(r['inferred_from'])}" for r in inferred if r["inferred_from"]]
    text = f"Of {count(total, 'leader-and-ISR interval')}, {observed:,} were observed and {total - observed:,} inferred"
    text += f" ({listing(reasons, 8)})." if reasons else "."
    if without_timeline:
        text += f" Of {count(without_timeline, 'partition')} no leader is known at all."
    return text


def named(identifier: str) -> str:
    """A vocabulary's word as prose: ``unclean_election`` is *unclean election*."""
    return visible(identifier).replace("_", " ")
