"""The gathered data as one HTML page.

The page loads nothing: styles and script are inside it, and its Content-Security-Policy allows those two alone, by
their hash. Every value is escaped by Jinja's autoescape, or by :func:`dashboards.payload.script_json`.
"""

from __future__ import annotations

import base64
import hashlib
from importlib import resources
from typing import Any, Final

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from dashboards import overview, words
from dashboards.cards import CARDS
from dashboards.gather import ReportData
from dashboards.payload import cluster_payload, script_json
from dashboards.section import Cluster
from dashboards.sections import findings
from dashboards.sections.timelines import partitions
from dashboards.source import Limits

_SCRIPTS: Final = ("view.js", "lanes.js", "charts.js", "curves.js", "page.js")


def render(data: ReportData, title: str) -> str:
    """The page; the same data gives the same bytes."""
    style = _file("assets/report.css")
    script = "\n".join(_file(f"assets/{name}") for name in _SCRIPTS)
    environment = _environment(data.limits)
    return environment.get_template("page.html.j2").render(
        title=title,
        data=data,
        clusters=[_cluster_view(environment, cluster) for cluster in data.clusters],
        style=Markup(style),
        script=Markup(script),
        payload=Markup(script_json({"clusters": [cluster_payload(cluster) for cluster in data.clusters]})),
        policy=f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'",
    )


def _cluster_view(environment: Environment, cluster: Cluster) -> dict[str, Any]:
    """A cluster as the page's template reads it: its sentences, and its sections, rendered, by card."""
    lanes, found = cluster.of(partitions.SECTION), cluster.of(findings.SECTION)
    return {
        "number": cluster.number,
        "cluster_id": cluster.cluster_id,
        "totals": cluster.totals,
        "span": cluster.span,
        "brokers": overview.broker_ids(cluster),
        "losses": overview.losses(cluster),
        "verdict": overview.verdict(cluster),
        "certainty": overview.certainty_sentence(cluster),
        "worst_severity": found.worst_severity,
        "has_findings": bool(found.worst),
        "partitions": lanes[0] if lanes else None,
        "tenures_total": overview.tenures_total(cluster),
        "cards": {
            card: Markup("\n").join(
                Markup(
                    environment.get_template(f"sections/{section.name}.html.j2").render(
                        c=cluster, s=section.view(cluster, cluster.of(section))
                    )
                )
                for section in sections
            )
            for card, sections in CARDS.items()
        },
    }


def _environment(limits: Limits) -> Environment:
    environment = Environment(
        loader=FunctionLoader(_file), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "instant": words.instant,
        "clock": words.clock,
        "duration": words.duration,
        "bytes": words.size,
        "visible": words.visible,
        "named": words.named,
    }
    environment.globals |= {"count": words.count, "limits": limits, "inferred_words": words.INFERRED_WORDS}
    return environment


def _file(path: str) -> str:
    return resources.files("dashboards").joinpath(*path.split("/")).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
