"""Kafka's issues (KAFKA-7128) and improvement proposals (KIP-101), and the addresses of their pages.

Those of proposals stand in docs/glossary.md, which is packed beside this module in a wheel.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).parent
#: A number that no link holds already, neither as its text nor in its address.
NUMBER: Final = re.compile(r"(?<![\w/\[-])(?:KAFKA|KIP)-[1-9]\d*\b(?!\])")
_CODE: Final = re.compile(r"(^```.*?^```$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
_PROPOSAL: Final = re.compile(r"^\| \[(KIP-\d+)\]\(([^)\s]+)\)", re.MULTILINE)


@cache
def proposals() -> Mapping[str, str]:
    """The address of each proposal that the glossary lists."""
    packed = _HERE / "glossary.md"
    page = packed if packed.is_file() else _HERE.parents[1] / "docs" / "glossary.md"
    return dict(_PROPOSAL.findall(page.read_text("utf-8")))


def address(number: str) -> str | None:
    """Of the issue or proposal; None for a proposal that the glossary does not list."""
    if number.startswith("KAFKA-"):
        return f"https://issues.apache.org/jira/browse/{number}"
    return proposals().get(number)


def with_links(text: str, link: Callable[[str, str], str]) -> str:
    """The text, each number in it as ``link(number, address)``."""

    def linked(found: re.Match[str]) -> str:
        of = address(found[0])
        return found[0] if of is None else link(found[0], of)

    return NUMBER.sub(linked, text)


def with_markdown_links(text: str, glossary: str) -> str:
    """Markdown of which each number outside of code is a link; ``glossary`` is where that page lies.

    >>> with_markdown_links("KIP-101, `KIP-101`", "glossary.md")
    '[KIP-101](glossary.md#kafkas-improvement-proposals), `KIP-101`'
    """

    def link(number: str, of: str) -> str:
        return f"[{number}]({of if number.startswith('KAFKA-') else f'{glossary}#kafkas-improvement-proposals'})"

    parts = _CODE.split(text)
    return "".join(part if index % 2 else with_links(part, link) for index, part in enumerate(parts))
