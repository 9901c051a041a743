"""What cannot be said, in words: a sentence for each limit, with the rules and questions that it leaves open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dashboards import words
from reconstruct.coverage.limits import QUESTIONS, Held, Hole, Limit, limits

#: So many sentences are told of a cluster; the others are counted.
TOLD: Final = 40
_NAMES: Final[Mapping[str, str]] = {
    "state_change_log": "state-change.log",
    "controller_log": "controller.log",
    "server_log": "server.log",
    "replication_offset_checkpoint": "replication-offset-checkpoint",
    "leader_epoch_checkpoint": "leader-epoch-checkpoint",
    "log_end": "segment and no probe of the log's end",
    "server_properties": "server.properties",
}
_CAPTURED: Final[Mapping[str, str]] = {"log_end": "the log ends and high watermarks", "znodes": "the znodes"}
_REASONS: Final[Mapping[str, str]] = {
    "missing_number": "the files are numbered, and one between two of them is not there",
    "no_later_file": "it was rolled, which takes a later line, and the file with that line is not there",
    "unread_file": "a file of it could not be read",
    "missing_period": "it wrote much in the hours before and after, another of the broker's logs was written then, and"
    " there is no file",
}


def cannot_be_said(cluster: Mapping[str, Any], brokers: Sequence[int]) -> dict[str, Any]:
    """``told``: the cluster's limits as sentences; ``more``: how many others there are.

    ``cluster`` holds ``held`` (:func:`dashboards.limits_data.held_evidence`), ``holes``
    (:func:`dashboards.limits_data.evidence_holes`) and ``totals``.
    """
    held = [Held(r["broker_id"], r["source_kind"], r["level_floor"], r["from_ms"], r["to_ms"]) for r in cluster["held"]]
    if not held:
        return {"told": [], "more": 0}
    holes = [
        Hole(r["cause"], r["broker_id"], r["source_kind"], r["from_ms"], r["to_ms"], r["level_floor"], r["reason"])
        for r in cluster["holes"]
    ]
    found = limits(brokers, held, holes, cluster["totals"].get("versions") or ())
    totals = {row["cause"]: row["total"] for row in cluster["holes"]}
    unseen = sum(totals.values()) - len(holes)
    told = [
        {"text": sentence(limit), "rules": limit.rules, "questions": [QUESTIONS[number] for number in limit.questions]}
        for limit in found[:TOLD]
    ]
    return {"told": told, "more": max(0, len(found) - TOLD) + unseen}


def sentence(limit: Limit) -> str:
    """The limit as one sentence in plain English; times in UTC."""
    name = _NAMES.get(limit.source_kind, words.named(limit.source_kind))
    whose = f" of {_brokers(limit.brokers)}" if limit.brokers else ""
    why = limit.why
    if limit.cause == "no_logs":
        return f"No log{whose} was given: {why}."
    if limit.cause == "missing":
        if limit.source_kind == "znodes":
            return f"No znodes were given: {why}."
        if limit.source_kind == "znode_transaction_log":
            return f"Znodes were given as snapshots, without ZooKeeper's transaction logs: {why}."
        return f"No {name}{whose} was given: {why}."
    if limit.cause == "unknown_broker":
        return f"A {name} was given of which nothing tells whose it is: {why} (--broker ID=PATH says whose)."
    when = _when(limit)
    if limit.cause == "too_coarse":
        floor = words.visible(limit.level_floor or "")
        return f"The {name}{whose} holds nothing below {floor}{when}: {why}."
    if limit.cause == "not_captured":
        what = _CAPTURED.get(limit.source_kind, f"the {name}")
        return f"The capture could not record {what}{whose}{when}: {why}."
    if limit.cause == "out_of_order":
        return f"The lines of the {name}{whose}{when} are not in the order of their times: {why}."
    if limit.cause == "silence":
        return f"No file of the {name}{whose} speaks{when}: nothing was logged, or files are missing; {why}."
    sure = "are most likely missing" if limit.reason == "missing_period" else "are missing"
    reason = _REASONS.get(limit.reason or "", "a gap")
    told = f"{when[:-1]}; {reason})" if when else f" ({reason})"
    return f"Lines of the {name}{whose} {sure}{told}: {why}."


def _brokers(ids: Sequence[int]) -> str:
    return f"broker{'s' if len(ids) > 1 else ''} {words.listing(map(str, ids), 12)}"


def _when(limit: Limit) -> str:
    if limit.from_ms is None or limit.to_ms is None:
        return ""
    is_one_day = words.same_day([limit.from_ms, limit.to_ms])
    end = (words.clock if is_one_day else words.instant)(limit.to_ms)
    lasted = words.duration(limit.to_ms - limit.from_ms)
    return f" from {words.instant(limit.from_ms)} to {end} UTC ({lasted})"
