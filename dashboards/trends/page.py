"""The page: written beside the report, it loads nothing and runs no script."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from dashboards import words
from dashboards.scope import Scope
from dashboards.trends.drawing import BELOW, HEIGHT, LEFT, OTHERS, WIDTH, figure
from dashboards.trends.gather import ClusterTrends, gather
from ingest.lake.delta import Lake


def write_trends(
    lake: Lake, out_dir: str, *, title: str | None = None, progress: Callable[[str], None], scope: Scope | None = None
) -> str:
    """Write ``OUT_DIR/trends.html`` from the lake as it is, and give its path. The same lake gives the same bytes, and
    the file is replaced in one step. Raises ``OSError`` where ``out_dir`` cannot be written,
    :class:`~dashboards.scope.NothingInScope` where nothing is what ``scope`` names."""
    page = Path(out_dir) / "trends.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    progress("trends: asking the questions by day")
    clusters = gather(lake, scope)
    draft = page.with_name(f".{page.name}.{os.getpid()}")
    try:
        draft.write_text(render(clusters, title or "Kafka state replay: over time", scope), encoding="utf-8")
        draft.replace(page)
    finally:
        draft.unlink(missing_ok=True)
    return str(page)


def render(clusters: Sequence[ClusterTrends], title: str, scope: Scope | None = None) -> str:
    """The page, which loads nothing and runs no script; the same data gives the same text."""
    style = _file("assets/report.css") + _file("assets/trends.css")
    environment = Environment(
        loader=FunctionLoader(_file), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"visible": words.visible, "named": words.named, "figure": figure}
    digest = base64.b64encode(hashlib.sha256(style.encode("utf-8")).digest()).decode("ascii")
    return environment.get_template("trends/trends.html.j2").render(
        title=title,
        clusters=clusters,
        scope=scope.sentence if scope else "",
        style=Markup(style),
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
        width=WIDTH,
        height=HEIGHT,
        left=LEFT,
        below=BELOW,
        others=OTHERS,
    )


def _file(path: str) -> str:
    return resources.files("dashboards").joinpath(*path.split("/")).read_text(encoding="utf-8")
