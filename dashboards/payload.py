"""What the page's script draws, packed small: instants relative to the cluster's first, ISRs and files by number."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dashboards.curve_payload import curve_payload, curve_vocabularies
from dashboards.numbered import Numbered
from dashboards.words import visible
from ingest.lake.tables import gold, silver

#: In a page's script element even data must not close the element, nor break a line where JavaScript sees one.
_UNSAFE: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_WRITERS: Final = (None, "controller", "leader")


def script_json(value: Any) -> str:
    """JSON that is safe inside an HTML script element, whatever its strings hold."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return "".join(_UNSAFE.get(character, character) for character in text) if set(text) & set(_UNSAFE) else text


def cluster_payload(cluster: Mapping[str, Any]) -> dict[str, Any]:
    """One cluster's charts."""
    span, records = cluster["span"], cluster["records"]
    base = span["first_ms"]
    isrs, files = Numbered(), Numbered()

    def rel(value: float | None) -> float | None:
        return None if value is None else _short(value - base)

    def place(record_id: str | None) -> list[Any]:
        record = records.get(record_id) if record_id else None
        return [files.of(visible(record["source_file"])), record["source_line"]] if record else []

    def key(row: Mapping[str, Any]) -> tuple[Any, ...]:
        return (row["topic"], row["topic_incarnation"], row["partition_id"])

    lanes: dict[tuple[Any, ...], dict[str, Any]] = {}
    by_topic: dict[Any, set[Any]] = {}
    for row in cluster["partitions"]:
        by_topic.setdefault((row["topic"], row["partition_id"]), set()).add(row["topic_incarnation"])
        lanes[key(row)] = {
            "t": visible(row["topic"]),
            "p": row["partition_id"],
            "i": visible(row["topic_incarnation"]),
            "n": row["segments"],
            "off": row["offline_ms"],
            "s": [],
            "r": [],
            "a": [],
            "f": [],
        }
    for lane_key, lane in lanes.items():
        lane["again"] = len(by_topic[(lane_key[0], lane_key[2])]) > 1
    for row in cluster["segments"]:
        lanes[key(row)]["s"].append(
            [
                rel(row["from_ms"]),
                rel(row["to_ms"]),
                row["leader"],
                row["leader_epoch"],
                isrs.of(list(row["isr"]), tuple(row["isr"])),
                row["partition_epoch"],
                row["controller_epoch"],
                _WRITERS.index(row["written_by"]),
                _reason(row["inferred_from"]),
                *place(row["evidence"]),
            ]
        )
    for row in cluster["assignments"]:
        lanes[key(row)]["r"].append([rel(row["from_ms"]), rel(row["to_ms"]), row["replicas"]])
    for row in cluster["unavailable"]:
        lanes[key(row)]["a"].append(
            [
                gold.AVAILABILITY_KINDS.index(row["kind"]),
                rel(row["from_ms"]),
                rel(row["to_ms"]),
                visible(row["opened_by"] or ""),
                visible(row["closed_by"] or ""),
            ]
        )
    curves = [curve_payload(row, rel, place) for row in cluster["curves"] if row["is_drawn"]]
    findings = []
    for number, row in enumerate(cluster["findings"]):
        findings.append(
            [
                rel(row["at_ms"]),
                gold.SEVERITIES.index(row["severity"]),
                visible(row["rule_id"]),
                visible(row["divergence_type"]).replace("_", " "),
            ]
        )
        if key(row) in lanes:
            lanes[key(row)]["f"].append(number)
    return {
        "base": base,
        "from": rel(span["from_ms"]),
        "to": rel(span["to_ms"]),
        "first": 0,
        "last": rel(span["last_ms"]),
        "brokers": broker_ids(cluster),
        "isrs": isrs.values,
        "files": files.values,
        "lanes": list(lanes.values()),
        "curves": curves,
        "findings": findings,
        "controllers": [
            [
                r["controller_id"],
                r["controller_epoch"],
                rel(r["from_ms"]),
                rel(r["to_ms"]),
                r["end_reason"],
                _reason(r["inferred_from"]),
            ]
            for r in cluster["controllers"]
        ],
        "liveness": [
            [
                r["broker_id"],
                rel(r["from_ms"]),
                rel(r["to_ms"]),
                r["end_reason"],
                _reason(r["inferred_from"]),
                rel(r["ended_before_ms"]),
            ]
            for r in cluster["liveness"]
        ],
        "coverage": [
            [
                r["source_kind"],
                r["broker_id"],
                rel(r["from_ms"]),
                rel(r["to_ms"]),
                r["coverage"],
                r["records"],
                r["files"],
                visible(r["file"]),
                r["level_floor"],
                r["gap_reason"],
            ]
            for r in cluster["coverage"]
        ],
        "counts": {kind: [[rel(at), most] for at, most in steps] for kind, steps in (cluster["counts"] or {}).items()},
    }


def vocabularies() -> dict[str, Any]:
    """The words behind the numbers of :func:`cluster_payload`."""
    return {
        "inferred": silver.INFERRED_FROM,
        "writers": _WRITERS,
        "kinds": gold.AVAILABILITY_KINDS,
        "severities": gold.SEVERITIES,
    } | curve_vocabularies()


def broker_ids(cluster: Mapping[str, Any]) -> list[int]:
    """Every broker id that the cluster's evidence names, in order."""
    ids = {b for b in cluster["totals"].get("brokers") or [] if b is not None}
    ids |= {row["broker_id"] for row in cluster["liveness"]} | {row["controller_id"] for row in cluster["controllers"]}
    for row in cluster["segments"]:
        ids |= {row["leader"], *row["isr"]}
    for row in cluster["assignments"]:
        ids |= set(row["replicas"])
    for curve in cluster["curves"]:
        ids |= {step["replica_id"] for step in curve.get("steps", ())}
    return sorted(i for i in ids if i >= 0)


def _reason(inferred_from: str | None) -> int:
    return -1 if inferred_from is None else silver.INFERRED_FROM.index(inferred_from)


def _short(value: float) -> float:
    rounded = round(value, 3)
    return int(rounded) if rounded == int(rounded) else rounded


def lane_id(cluster_number: int, lanes: Sequence[Mapping[str, Any]], row: Mapping[str, Any]) -> str | None:
    """The page's id of the lane that a finding belongs to; None where the page draws no such lane.

    A finding that names no incarnation belongs to the only lane of its partition.
    """
    same = [
        n
        for n, lane in enumerate(lanes)
        if (lane["topic"], lane["partition_id"]) == (row["topic"], row["partition_id"])
    ]
    exact = [n for n in same if lanes[n]["topic_incarnation"] == row["topic_incarnation"]]
    chosen = exact or (same if len(same) == 1 else [])
    return f"lane-{cluster_number}-{chosen[0]}" if chosen else None
