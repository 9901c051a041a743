"""The page: written beside the report, it loads nothing and runs no script."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from markupsafe import Markup

from dashboards import words
from dashboards.render import file_text, page_environment, policy, write_whole
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
    write_whole(page, render(clusters, title or "Kafka state replay: over time", scope))
    return str(page)


def render(clusters: Sequence[ClusterTrends], title: str, scope: Scope | None = None) -> str:
    """The page, which loads nothing and runs no script; the same data gives the same text."""
    style = file_text("assets/report.css") + file_text("assets/trends.css")
    environment = page_environment()
    environment.filters |= {"visible": words.visible, "named": words.named, "figure": figure}
    return environment.get_template("trends/trends.html.j2").render(
        title=title,
        clusters=clusters,
        scope=scope.sentence if scope else "",
        style=Markup(style),
        policy=policy(style=style),
        width=WIDTH,
        height=HEIGHT,
        left=LEFT,
        below=BELOW,
        others=OTHERS,
    )
