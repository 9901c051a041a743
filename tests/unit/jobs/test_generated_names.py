"""The page of the articles names only what is there, and every event type is read or says why not."""

from __future__ import annotations

from importlib import import_module

import pytest

from ingest.lake.tables import TABLES
from ingest.shapes import MEANINGS
from jobs.docs.event_uses import REASONS, event_uses, not_read
from jobs.docs.mechanisms import MECHANISMS, Mechanism
from reconstruct.rule_book import RULES
from tests.support.captures.packed import capture_names


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda one: one.what)
def test_a_mechanism_is_where_the_page_says(mechanism: Mechanism) -> None:
    assert mechanism.model
    assert mechanism.tables
    assert mechanism.rules
    assert mechanism.captures
    for place in mechanism.model:
        module, _, name = place.partition(":")
        found = import_module(module)
        assert not name or hasattr(found, name), place
    assert set(mechanism.tables) <= {spec.full_name for spec in TABLES.values()}
    assert set(mechanism.rules) <= set(RULES)
    assert set(mechanism.captures) <= set(capture_names())


def test_every_article_every_rule_of_replication_and_every_capture_has_its_row() -> None:
    assert {mechanism.article for mechanism in MECHANISMS} == {1, 2, 3}
    assert {name for mechanism in MECHANISMS for name in mechanism.captures} == set(capture_names())
    judged = {rule for mechanism in MECHANISMS for rule in mechanism.rules}
    later = {*(f"R{number}" for number in range(50, 61))}
    assert set(RULES) - judged <= later, "KRaft is later than the articles"


def test_an_event_type_is_read_or_listed_with_the_reason_and_not_both() -> None:
    listed = [name for name, _ in not_read()]
    assert len(listed) == len(set(listed))
    assert {why for _, why in not_read()} == set(REASONS)
    assert set(listed) & set(event_uses()) == set()
    assert set(listed) | set(event_uses()) == set(MEANINGS)
