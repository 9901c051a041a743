"""Faults of a quorum's controller in the decoded records of real and simulated quorums: each is found by its rule."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any, Final

from reconstruct.metadata_log.timeline import replay_rows
from tests.figures import Figure
from tests.support.bends.quorum_faults import (
    PARTITION_PLANTS,
    Fault,
    faults,
    inactive_broker_joins,
    inactive_broker_leads,
    measured,
    planted,
    simulated,
    without_snapshots,
)
from tests.support.budget import IS_HARD
from tests.support.metadata_log import MIGRATED, NODES, ONE_VOTER, REASSIGNED, UNCLEAN, VOTERS_CHANGED, cluster_log

QUORUMS: Final = {
    "quorum": NODES,
    "one voter": (ONE_VOTER,),
    "reassigned": (REASSIGNED,),
    "unclean": (UNCLEAN,),
    "migrated": (MIGRATED / "broker-101",),
    "voters": (VOTERS_CHANGED,),
}
#: Histories that are simulated, of each release.
SEEDS: Final = range(700, 710) if IS_HARD else range(700, 701)


def test_every_fault_planted_in_a_real_log_is_found_by_its_rule() -> None:
    missed: list[str] = []
    counts = measured(((name, *cluster_log(nodes)) for name, nodes in QUORUMS.items()), missed.append)
    assert missed == []
    assert {kind: of for kind, of in counts.items() if of["found"] < of["places"]} == {}
    assert {kind for kind, of in counts.items() if of["places"] >= 3} >= set(PARTITION_PLANTS)


def test_nearly_every_fault_planted_in_a_simulated_log_is_found(record_property: Any) -> None:
    counts = measured(simulated(SEEDS), lambda sentence: None)
    every = sum(counts.values(), Counter[str]())
    assert every["missed"] <= 0.005 * every["places"]
    assert every["places"] > 1000
    record_property(Figure.PLANTED, every["places"])
    record_property(Figure.FOUND, every["found"])


def test_before_a_metadata_version_a_fenced_replica_may_join_an_isr() -> None:
    """KIP-841 and KIP-778 came with 3.3: a log without a metadata.version may be of a controller that did not ask."""
    count = 0
    for nodes in QUORUMS.values():
        log, topics = without_snapshots(*cluster_log(nodes))
        older = replace(log, rows=tuple(row for row in log.rows if row.record_type != "FeatureLevelRecord"))
        for rows in topics.values():
            for plant, is_found in ((inactive_broker_joins, False), (inactive_broker_leads, True)):
                for row, wrong in planted(older, rows, plant):
                    if is_found or json.loads(row.fields).get("leader") is None:
                        count += not is_found
                        changed = [wrong if one is row else one for one in rows]
                        fault = Fault("", "R53", changed, older.of_quorum, wrong.evidence_id)
                        assert ("R53" in fault.found_by()) is is_found
    assert count >= 3


def test_nothing_is_found_where_nothing_was_planted() -> None:
    for nodes in QUORUMS.values():
        log, topics = without_snapshots(*cluster_log(nodes))
        verdicts = [replay_rows(rows, log.of_quorum).verdicts for rows in topics.values()]
        assert [finding for one in verdicts for finding in one.findings] == []
        assert sum(one.counts["R53", "kept"] for one in verdicts) >= 9
        assert list(faults(log, topics))
