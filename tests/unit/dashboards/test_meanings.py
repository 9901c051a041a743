"""What a finding means, in the report."""

from __future__ import annotations

import re

import pytest

from dashboards.meanings import _meaning, meanings
from dashboards.render import marked
from reconstruct.rule_book import RULES


def test_every_kind_of_finding_has_a_meaning_and_most_say_what_to_check():
    found = meanings()
    assert {rule for _, rule in found} <= set(RULES)
    assert len(found) > 80
    assert all(meaning.means for meaning in found.values())
    assert sum(bool(meaning.ask or meaning.usually) for meaning in found.values()) > 0.9 * len(found)
    # each stands by itself in the report
    assert not [name for name, meaning in found.items() if re.search(r"as above|see (?:above|below)", str(meaning))]


def test_a_section_is_parted_by_its_words():
    text = "\n\nThe leader is dead.\nSee [rules](rules.md). Usually: a kill. Ask: `silver.x`;\nwho else died?\n"
    meaning = _meaning(text)
    assert (meaning.means, meaning.usually) == ("The leader is dead. See rules.", "A kill.")
    assert meaning.ask == "`silver.x`; who else died?"
    assert _meaning("\nA thing.\n").ask == ""


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("`a < b` and *so*", "<code>a &lt; b</code> and <em>so</em>"),
        ("2 * 3 * 4 <script>", "2 * 3 * 4 &lt;script&gt;"),
    ],
)
def test_only_code_and_emphasis_are_markup(text, html):
    assert marked(text) == html
