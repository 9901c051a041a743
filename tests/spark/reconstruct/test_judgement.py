"""Findings of all steps, where they come together."""

from __future__ import annotations

from ingest.lake.tables.gold import DIVERGENCES
from reconstruct.engine.folds import local_rows
from reconstruct.engine.judgement import Judgement
from reconstruct.engine.rows import finding_row
from reconstruct.findings.verdicts import Divergence, DivergenceType


def test_what_the_same_records_show_of_two_partitions_or_brokers_is_two_findings(spark, lake):
    divergence = Divergence(DivergenceType.ILLEGAL_TRANSITION, "error", 1_000_000, rule_id="R02")
    finding = divergence.explained(expected="a", observed="b", explanation="c", evidence=("r1", "r2"))
    subjects = [("orders", 0, 1), ("orders", 2, 1), ("orders", 2, 2), ("ledger", 2, 2)]
    rows = [
        finding_row(
            finding, cluster_id="c", topic=topic, topic_incarnation="i", partition_id=partition, broker_id=broker
        )
        for topic, partition, broker in subjects
    ]
    judgement = Judgement(lake, None)
    judgement._findings.append(local_rows(spark, DIVERGENCES, rows))
    found = {tuple(row) for row in judgement.findings({"R02": "KIP"}).select("divergence_id", "rule_source").collect()}
    assert len({id_ for id_, _ in found}) == len(subjects)
    assert all(len(id_) == 32 and source == "KIP" for id_, source in found)
    # the same in another run, and whatever its topic's incarnation is called by then
    again = Judgement(lake, None)
    again._findings.append(local_rows(spark, DIVERGENCES, [{**row, "topic_incarnation": "j"} for row in rows]))
    assert {
        tuple(row) for row in again.findings({"R02": "KIP"}).select("divergence_id", "rule_source").collect()
    } == found
