"""Broker epochs as a controller lists them (R16): within its tenure none falls, unless ZooKeeper was wiped."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from reconstruct.cluster.bounces import judge_listed_epochs
from reconstruct.cluster.evidence import BrokerFact
from reconstruct.cluster.spans import Tenure
from reconstruct.cluster.view import ClusterView
from reconstruct.findings.verdicts import Verdicts

TENURES = (Tenure(1, 1, 0, 100, ()), Tenure(2, 2, 100, None, ()))
BEFORE = {1: 42, 2: 61, 3: 62}


def judged(
    *lists: tuple[int, int, Mapping[int, int]], set_back: Mapping[int, int] | None = None
) -> tuple[list[str], Mapping[tuple[str, str], int]]:
    """What is found of lists of one controller each: its id, the instant, the epochs."""
    facts = [
        BrokerFact(broker, "epoch_listed", at, f"{controller}@{at}", epoch, controller_id=controller)
        for controller, at, epochs in lists
        for broker, epoch in epochs.items()
    ]
    verdicts = Verdicts()
    judge_listed_epochs(facts, ClusterView("c", tenures=TENURES, set_back=set_back or {}), verdicts)
    return [f"{f.severity} {f.divergence_type} {f.broker_id}" for f in verdicts.findings], verdicts.counts


def test_an_epoch_that_falls_while_a_higher_one_of_another_broker_stays() -> None:
    lists = [(1, 10, BEFORE), (1, 20, {1: 42, 3: 62})]
    assert judged(*lists, (1, 30, {1: 42, 2: 60, 3: 62}))[0] == ["error registration_out_of_order 2"]
    assert judged(*lists, (1, 30, {1: 42, 2: 96, 3: 62}))[0] == []


def test_lists_of_a_controller_whose_clock_was_set_back_have_no_order() -> None:
    lists = [(1, 10, BEFORE), (1, 30, {1: 42, 2: 60, 3: 62})]
    assert judged(*lists, set_back={2: 60_000_000})[0] == ["error registration_out_of_order 2"]
    found, counts = judged(*lists, set_back={1: 60_000_000})
    assert (found, counts) == ([], {("R16", "cannot_be_judged"): 2})


@pytest.mark.parametrize("after", [{1: 12, 2: 13, 3: 14}, {1: 42, 2: 43}, {2: 60, 3: 64}])
def test_where_no_higher_epoch_stays_zookeeper_may_have_been_wiped(after: Mapping[int, int]) -> None:
    found, counts = judged((1, 10, BEFORE), (1, 20, after))
    assert found == []
    assert counts["R16", "cannot_be_judged"] > 0


@pytest.mark.parametrize("late", [(2, 120), (1, 120), (2, 20)])
def test_lists_of_another_tenure_are_not_compared(late: tuple[int, int]) -> None:
    assert judged((1, 10, BEFORE), (*late, {1: 42, 2: 60, 3: 62}))[0] == []
