"""The gathered data as one HTML page.

The page loads nothing: styles and script are inside it, and its Content-Security-Policy allows those two alone, by
their hash. Every value is escaped by Jinja's autoescape, or by :func:`dashboards.payload.script_json`.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any, Final

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from dashboards import curve_words, words
from dashboards.clock_words import clock_sentence
from dashboards.payload import broker_ids, cluster_payload, lane_id, script_json, vocabularies
from reconstruct.rule_book import RULES

#: The totals of a cluster of which no file was ingested.
_NO_FILES: Final[Mapping[str, Any]] = {
    "files": 0,
    "files_read": 0,
    "size_bytes": 0,
    "records_read": 0,
    "records_kept": 0,
    "records_rejected": 0,
    "versions": (),
}
_SCRIPTS: Final = ("view.js", "lanes.js", "charts.js", "curves.js", "page.js")


def render(data: Mapping[str, Any], title: str) -> str:
    """The page; the same data gives the same bytes."""
    style = _asset("report.css")
    script = "\n".join(_asset(name) for name in _SCRIPTS)
    payload = {"words": vocabularies(), "clusters": [cluster_payload(c) for c in data["clusters"]]}
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            title=title,
            data=data,
            clusters=[cluster_view(n, c) for n, c in enumerate(data["clusters"])],
            style=Markup(style),
            script=Markup(script),
            payload=Markup(script_json(payload)),
            policy=f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
            "base-uri 'none'; form-action 'none'",
        )
    )


def cluster_view(number: int, cluster: Mapping[str, Any]) -> dict[str, Any]:
    """A cluster as the template reads it: its sentences, and its rows with their texts resolved."""
    partitions, summary = cluster["partitions"], cluster["availability"]
    first: Mapping[str, Any] = partitions[0] if partitions else {}
    judged = bool(first.get("segments_total"))
    total = first.get("partitions_total", 0)
    findings = [_finding(number, position, row, cluster) for position, row in enumerate(cluster["findings"])]
    is_one_day = words.same_day([cluster["span"]["from_ms"], cluster["span"]["to_ms"]])
    stamp = words.clock if is_one_day else words.instant
    drawn: dict[tuple[Any, ...], int] = {}
    for row in cluster["segments"]:
        key = (row["topic"], row["topic_incarnation"], row["partition_id"])
        drawn[key] = drawn.get(key, 0) + 1
    return {
        **cluster,
        "totals": {**_NO_FILES, **cluster["totals"]},
        "number": number,
        "judged": judged,
        "findings": findings,
        "brokers": broker_ids(cluster),
        "partitions_total": total,
        "topics_total": first.get("topics_total", 0),
        "segments_total": first.get("segments_total", 0),
        "segments_drawn": len(cluster["segments"]),
        "lanes_cut": sum(
            row["segments"] > drawn.get((row["topic"], row["topic_incarnation"], row["partition_id"]), 0)
            for row in partitions
        ),
        "findings_total": sum(row["findings"] for row in cluster["finding_counts"]),
        "tenures_total": cluster["controllers"][0]["total"] if cluster["controllers"] else 0,
        "loss_verdict": curve_words.loss_verdict(cluster["curves"]),
        "verdict": [
            text
            for text in (
                words.findings_verdict(cluster["finding_counts"], judged, cluster["rules"]),
                words.offline_verdict(summary, cluster["longest"], judged, total),
                words.isr_verdict(summary),
                words.controllers_verdict(cluster["controllers"]),
                words.brokers_verdict(cluster["liveness"]),
            )
            if text
        ],
        "curves": [_curve(row, stamp) for row in cluster["curves"] if row["is_drawn"]],
        "curves_undrawn": [row for row in cluster["curves"] if not row["is_drawn"]],
        "curves_total": cluster["curves"][0]["curves_total"] if cluster["curves"] else 0,
        "certainty": words.certainty(cluster["inferred"], first.get("without_timeline_total", 0)),
        "is_one_day": is_one_day,
        "worst": worst_severity(cluster["finding_counts"]),
    }


def worst_severity(counts: list[Mapping[str, Any]]) -> str:
    """The worst severity among the findings, ``none`` without findings."""
    present = {row["severity"] for row in counts}
    return next((word for word in ("error", "warning", "info") if word in present), "none")


def _finding(number: int, position: int, row: Mapping[str, Any], cluster: Mapping[str, Any]) -> dict[str, Any]:
    records = [{"id": i} | (cluster["records"].get(i) or {}) for i in row["evidence"]]
    return {
        **row,
        "place": words.partition(row),
        "records": records,
        "anchor": f"finding-{number}-{position}",
        "lane": lane_id(number, cluster["partitions"], row) if row["topic"] is not None else None,
    }


def _curve(curve: Mapping[str, Any], stamp: Callable[[float | None], str]) -> dict[str, Any]:
    said = {"events": curve_words.events(curve), "last_known": curve_words.last_known(curve, stamp)}
    return {**curve, "headline": curve_words.headline(curve, stamp), **said}


def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(_asset), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "instant": words.instant,
        "clock": words.clock,
        "clock_sentence": clock_sentence,
        "duration": words.duration,
        "bytes": words.size,
        "visible": words.visible,
        "named": words.named,
    }
    environment.globals |= {
        "count": words.count,
        "partition": words.partition,
        "rule_titles": {rule.rule_id: rule.promise for rule in RULES.values()},
        "kind_words": words.KIND_WORDS,
        "inferred_words": words.INFERRED_WORDS,
    }
    return environment


def _asset(name: str) -> str:
    return resources.files("dashboards").joinpath("assets", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
