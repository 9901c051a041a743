"""``docs/rules.md``, written from the rules that rooms declare: ``python -m jobs.docs.rules_doc [--check] FILE``."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from jobs.docs.generated_doc import write_or_check
from reconstruct.findings.divergences import DivergenceType
from reconstruct.model.versions import OLDEST
from reconstruct.rule_book import RULES, Rule

#: The pages on which each kind of finding has its section.
FINDINGS: Final = Path(__file__).parents[2] / "docs" / "findings"
_SECTION: Final = re.compile(r"^## (\w+) \((R\d\d(?:, R\d\d)*)\)$", re.MULTILINE)
_HEAD: Final = """\
# Rules

Generated from the rules that each room of `reconstruct` declares (`reconstruct/rule_book.py`) by `make docs`: edit
those. [How to add one](add-a-rule.md).

*Judged from* names the evidence without which a rule is left open, in whole or in part; where nothing is named, any
source that shows states will do. *TRACE*: it reads lines of `state-change.log` that INFO hides. *Order*: it reads the
order of that log's lines, or what the log does not say. A rule that holds since a later release than 0.8.0 says so.

| rule | promise | where it comes from | judged from | about | findings |
|---|---|---|---|---|---|
"""


def sections() -> dict[tuple[str, tuple[str, ...]], str]:
    """By (kind of finding, its rules), as the headings have them: the page and the anchor that Markdown gives it."""
    return {
        (name, tuple(rules.split(", "))): f"findings/{page.name}#{name}-{rules.lower().replace(', ', '-')}"
        for page in sorted(FINDINGS.glob("*.md"))
        for name, rules in _SECTION.findall(page.read_text(encoding="utf-8"))
    }


def rules_markdown() -> str:
    """The whole document."""
    return _HEAD + "".join(f"| {' | '.join(_cells(rule))} |\n" for rule in RULES.values())


def main(argv: Sequence[str] | None = None) -> int:
    """Write the file, or with ``--check`` compare it."""
    return write_or_check("jobs.docs.rules_doc", __doc__, rules_markdown, argv)


def _cells(rule: Rule) -> Iterator[str]:
    promise = rule.promise if rule.since == OLDEST else f"{rule.promise} (since {rule.since})"
    needs = [f"`{kind}`" for kind in rule.needs]
    needs += ["TRACE"] * rule.reads_trace + ["order"] * rule.reads_line_order
    yield from (rule.rule_id, promise, rule.source, ", ".join(needs), f"`{rule.table}`")
    yield ", ".join(map(_linked, rule.divergence_types))


def _linked(kind: DivergenceType) -> str:
    return f"[`{kind}`]({sections()[kind.value, kind.rules]})"


if __name__ == "__main__":
    sys.exit(main())
