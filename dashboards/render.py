"""The gathered data as one HTML page.

The page loads nothing: styles and script are inside it, and its Content-Security-Policy allows those two alone, by
their hash. Every value is escaped by Jinja's autoescape, or by :func:`dashboards.payload.script_json`.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from functools import cache, partial
from importlib import resources
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from dashboards import overview, words
from dashboards.cards import CARDS, SECTIONS
from dashboards.gather import ReportData
from dashboards.meanings import meanings
from dashboards.payload import cluster_payload, script_json
from dashboards.section import Cluster, Section
from dashboards.sections import findings
from dashboards.sections.coverage import attribution
from dashboards.sections.timelines import partitions
from dashboards.source import Limits
from dashboards.texts import next_steps
from dashboards.texts.numbers import with_links

_SCRIPTS: Final = ("view.js", "lanes.js", "charts.js", "curves.js", "page.js")


def render(data: ReportData, title: str) -> str:
    """The page; the same data gives the same bytes."""
    style = file_text("assets/report.css")
    script = "\n".join(file_text(f"assets/{name}") for name in _SCRIPTS)
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            title=title,
            data=data,
            limits=data.limits,
            card=partial(_card, data.limits),
            style=Markup(style),
            script=Markup(script),
            payload=Markup(script_json({"clusters": [cluster_payload(cluster) for cluster in data.clusters]})),
            policy=policy(script=script, style=style),
        )
    )


def compile_templates() -> None:
    """Have Jinja compile what the page is made of; what is not compiled yet is when it is rendered."""
    for name in ("page", "sections/checks", "sections/steps", *(f"sections/{section.name}" for section in SECTIONS)):
        _environment().get_template(f"{name}.html.j2")


def _card(limits: Limits, cluster: Cluster, card: str) -> Markup:
    """A card's sections of a cluster, rendered."""
    return Markup("\n").join(Markup(_section(limits, cluster, section)) for section in CARDS[card])


def _section(limits: Limits, cluster: Cluster, section: Section[Any]) -> str:
    data = cluster.of(section)
    shown = section.view(cluster, data) if section.view else data
    return _environment().get_template(f"sections/{section.name}.html.j2").render(c=cluster, s=shown, limits=limits)


@cache
def _environment() -> Environment:
    """One for all pages: it keeps the templates that it compiled."""
    environment = page_environment()
    environment.filters |= {
        "instant": words.instant,
        "clock": words.clock,
        "duration": words.duration,
        "bytes": words.size,
        "visible": words.visible,
        "named": words.named,
        "marked": marked,
        "tracked": tracked,
    }
    environment.globals |= {
        "count": words.count,
        "meanings": meanings(),
        "next_steps": next_steps,
        "inferred_words": words.INFERRED_WORDS,
        "overview": overview,
        "findings": findings.SECTION,
        "how_to_say": attribution.HOW_TO_SAY,
        "proven_harm": findings.PROVEN_HARM,
        "partition_totals": partitions.totals,
        "is_judged": partitions.is_judged,
        "lane_id": findings.lane_id,
    }
    return environment


def marked(text: str) -> Markup:
    """Our own Markdown of one paragraph as HTML: code, emphasis and Kafka's numbers; everything else is text.

    >>> marked("an *error*: `a < b`")
    Markup('an <em>error</em>: <code>a &lt; b</code>')
    """
    with_code = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text)))
    return Markup(_linked(re.sub(r"(?<![\w*])\*(\w[^*]*)\*(?![\w*])", r"<em>\1</em>", with_code)))


def tracked(text: str) -> Markup:
    """Text in which each of Kafka's issues and improvement proposals is a link to its page.

    >>> tracked("KAFKA-1 <")
    Markup('<a href="https://issues.apache.org/jira/browse/KAFKA-1" rel="noreferrer">KAFKA-1</a> &lt;')
    """
    return Markup(_linked(str(escape(words.visible(text)))))


def _linked(markup: str) -> str:
    return with_links(markup, lambda number, of: f'<a href="{escape(of)}" rel="noreferrer">{number}</a>')


def page_environment() -> Environment:
    """Jinja over the files of this package, escaping everything."""
    files = FunctionLoader(file_text)
    return Environment(loader=files, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def file_text(path: str) -> str:
    """A file of this package."""
    return resources.files("dashboards").joinpath(*path.split("/")).read_text(encoding="utf-8")


def policy(**sources: str) -> str:
    """The Content-Security-Policy of a page that loads nothing and has these texts inside it: ``style``, ``script``."""
    hashes = {kind: base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()) for kind, text in sources.items()}
    own = "".join(f"{kind}-src 'sha256-{digest.decode('ascii')}'; " for kind, digest in hashes.items())
    return f"default-src 'none'; {own}base-uri 'none'; form-action 'none'"


def write_whole(page: Path, text: str) -> None:
    """Write the file in one step: it is there as it was, or whole. Raises ``OSError`` where it cannot be written."""
    draft = page.with_name(f".{page.name}.{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(page)
    finally:
        draft.unlink(missing_ok=True)
