"""Data Docs that open without network: what Great Expectations' pages load from it is put beside them."""

from __future__ import annotations

import re
import shutil
from importlib import resources
from pathlib import Path
from typing import Final

_ASSETS: Final = "assets"  # the folder's name below the Data Docs
#: A tag that loads something from elsewhere, and the last segment of the address.
_LOADED: Final = re.compile(
    r"""<(?:link|script|img)\b[^>]*?\b(?:href|src)=["'](?:https?:)?//[^"'?#>]*/(?P<name>[^"'/?#>]+)[^"']*["'][^>]*?>"""
    r"""(?P<end>\s*</script>)?"""
)
#: What hides the last lines of each page to ask for a subscription.
_ADVERTISEMENT: Final = re.compile(r"<footer>\s*<p>[^<]*newsletter <a [^>]*>[^<]*</a></p>\s*</footer>")
#: The validation pages look for their icon one folder too high.
_ICON: Final = re.compile(r"""href=["'](?:\.\./)*static/images/favicon\.ico["']""")
#: The dark theme is published in a minified form too, a fifth of the size.
_RENAMED: Final = {
    "bootstrap-prefers-dark.css": "bootstrap-prefers-dark.min.css",
    "bootstrap-table-filter-control.css": "bootstrap-table-filter-control.min.css",
    "jquery-3.7.1.min.js": "jquery.min.js",
}


def make_offline(docs_dir: str) -> str:
    """Make every page below ``docs_dir`` load only files below it; return the path of its first page."""
    root = Path(docs_dir)
    _copy_assets(root / _ASSETS)
    for page in sorted(root.rglob("*.html")):
        text = page.read_text(encoding="utf-8")
        local = rewrite(text, "../" * len(page.relative_to(root).parts[:-1]))
        if local != text:
            page.write_text(local, encoding="utf-8")
    return str(root / "index.html")


def rewrite(page: str, to_root: str) -> str:
    """The page with its stylesheets, scripts and images taken from ``to_root``; what we have no copy of, and what
    advertises, is left out."""
    page = _ADVERTISEMENT.sub("", page)
    page = _LOADED.sub(lambda match: _local_tag(match["name"], to_root), page)
    return _ICON.sub(f'href="{to_root}static/images/favicon.ico"', page)


def _local_tag(name: str, to_root: str) -> str:
    name = _RENAMED.get(name, name)
    if name in asset_names("css"):
        return f'<link rel="stylesheet" href="{to_root}{_ASSETS}/css/{name}">'
    if name in asset_names("js"):
        return f'<script src="{to_root}{_ASSETS}/js/{name}"></script>'
    if name.startswith("logo"):
        return f'<img src="{to_root}static/images/{name}" alt="" style="width: auto; height: 50px">'
    return ""


def asset_names(kind: str) -> frozenset[str]:
    """The files kept in ``data_docs_assets/KIND``."""
    folder = resources.files("checks") / "data_docs_assets" / kind
    return frozenset(entry.name for entry in folder.iterdir())


def _copy_assets(target: Path) -> None:
    with resources.as_file(resources.files("checks") / "data_docs_assets") as source:
        shutil.copytree(source, target, dirs_exist_ok=True)
