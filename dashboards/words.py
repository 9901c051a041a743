"""Instants, durations, counts and lists as the report's sentences have them, in plain text.

Nothing here is HTML; escaping is the template's work. Control and direction-changing characters, which would make a
text look like another, are made visible by :func:`visible`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from reconstruct.time.instants import duration as duration

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_HIDDEN: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_ISR: Final = re.compile(r"\bisr\b")
_MARKUP: Final = re.compile(r"[\\`*_\[\]#|~]|^[-+]")
INFERRED_WORDS: Final[Mapping[str, str]] = {
    "znode_snapshot": "from znode snapshots: the write happened between two of them",
    "unlogged_transition": "a step that this version, or this log level, does not log",
    "log_gap": "a line must have been there and is not",
    "conflict_closed": "contradicting evidence ended the interval",
    "commit_not_proven": "no copy proves that the quorum committed it",
    "retention_boundary": "the evidence begins later than the interval",
    "controller_failover": "state that a new controller takes over without logging it",
    "request_sent": "known only from a request that restates it",
    "isr_proposal": "a leader's ISR change whose commit is not logged at this level",
    "effect_logged": "only what followed from it was logged or seen: it happened before",
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


def markdown(text: Any) -> str:
    r"""The text in one line, of which neither Markdown nor HTML inside of it makes more than text.

    >>> markdown("a|b <b>\n# c")
    'a\\|b &lt;b&gt; \\# c'
    """
    escaped = _MARKUP.sub(r"\\\g<0>", visible(" ".join(str(text).split())))
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def partition(topic: str | None, partition_id: int | None) -> str:
    """``topic-0`` as Kafka writes it, ``topic`` without a partition; empty without a topic."""
    if topic is None:
        return ""
    return visible(topic) + ("" if partition_id is None else f"-{partition_id}")


def listing(texts: Iterable[str], limit: int = 4, total: int = 0) -> str:
    """``a, b and c``; what is beyond the limit is counted, and where there are ``total`` what has no text here."""
    items = list(texts)
    total = max(total, len(items))
    if total > limit or total > len(items) > 0:
        items = items[: limit - 1]
        items.append(f"{total - len(items):,} more")
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}" if items else ""


def named(identifier: str) -> str:
    """A vocabulary's word as prose: ``unclean_election`` is *unclean election*, ``isr_empty`` *ISR empty*."""
    return _ISR.sub("ISR", visible(identifier).replace("_", " "))
