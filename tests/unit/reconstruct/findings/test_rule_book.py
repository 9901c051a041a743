"""Every rule is declared once, has a judge, and shows in the kinds of findings that name it."""

from __future__ import annotations

import pytest

from ingest.lake.tables import TABLES
from reconstruct.cluster.rules import RULES as OF_CLUSTERS
from reconstruct.findings.divergences import DivergenceType
from reconstruct.findings.rule import EvidenceKind
from reconstruct.findings.verdicts import Divergence
from reconstruct.model.versions import NEWEST
from reconstruct.partitions.rules import book as of_partitions
from reconstruct.requests.rules import book as of_requests
from reconstruct.rule_book import RULES


def test_every_rule_has_judges_kinds_of_findings_and_a_table_and_a_source_of_kafka():
    for rule_id, rule in RULES.items():
        assert rule.rule_id == rule_id
        assert rule.judges, rule_id
        assert rule.divergence_types, rule_id
        assert rule.table in TABLES, rule_id
        assert set(rule.needs) <= set(EvidenceKind), rule_id
        assert rule.since <= NEWEST, rule_id
        assert any(word in rule.source for word in ("kafka.", "KIP-", "ZooKeeper")), rule_id
        assert "article" not in rule.source, rule_id


def test_the_ids_of_rules_are_those_that_people_know():
    assert {f"R{number:02}" for number in (*range(1, 17), *range(20, 27), *range(30, 42), *range(50, 61))} == set(RULES)


def test_every_kind_of_finding_belongs_to_rules_that_there_are():
    assert {rule for kind in DivergenceType for rule in kind.rules} == set(RULES)


def test_a_rule_that_several_rooms_judge_has_the_judges_of_all():
    assert RULES["R12"].judges == tuple(
        judge for rule in (*of_partitions.RULES, *of_requests.RULES) if rule.rule_id == "R12" for judge in rule.judges
    )
    assert len(RULES["R16"].judges) == 3
    assert OF_CLUSTERS[-1].judges[0] in RULES["R16"].judges


def test_a_finding_is_of_the_one_rule_of_its_kind_or_names_one_of_them():
    assert Divergence(DivergenceType.ISR_EMPTY, "error", 0).explained("", "", "", ()).rule_id == "R06"
    of_several = Divergence(DivergenceType.ILLEGAL_TRANSITION, "error", 0)
    with pytest.raises(ValueError, match="too many values"):
        of_several.explained("", "", "", ())
