"""What each kind of finding means, its usual cause and what to check then: the sections of docs/findings.

The pages stand in the documents of a checkout, and are packed beside this module in a wheel.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).parent
_SECTION: Final = re.compile(
    r"^## (?P<type>\w+) \((?P<rules>R\d\d(?:, R\d\d)*)\)$(?P<text>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL
)
_LINK: Final = re.compile(r"\[([^\]]+)\]\([^)]+\)")


@dataclass(frozen=True)
class Meaning:
    """In Markdown without links; what a page does not say is empty."""

    means: str
    usually: str
    ask: str


@cache
def meanings() -> Mapping[tuple[str, str], Meaning]:
    """By (divergence type, rule id)."""
    packed = _HERE / "finding_pages"
    pages = packed if packed.is_dir() else _HERE.parent / "docs" / "findings"
    return {
        (section["type"], rule): _meaning(section["text"])
        for page in sorted(pages.glob("*.md"))
        for section in _SECTION.finditer(page.read_text("utf-8"))
        for rule in section["rules"].split(", ")
    }


def _meaning(text: str) -> Meaning:
    """The section's parts, which the words Usually and Ask begin."""
    plain = " ".join(_LINK.sub(r"\1", text).split())
    means, *parts = re.split(r"\b(Usually|Ask): ", plain)
    named = dict(zip(parts[::2], parts[1::2], strict=True))
    usually, ask = (_capital(named.get(name, "").strip()) for name in ("Usually", "Ask"))
    return Meaning(means.strip(), usually, ask)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
