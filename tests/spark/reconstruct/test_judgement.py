"""Findings of all steps, where they come together, and are looked at again."""

from __future__ import annotations

from ingest.lake.tables.bronze import INGESTED_FILES, ZNODE_TRANSACTIONS
from ingest.lake.tables.events import REPLICATION_EVENTS, ZNODE_CHANGES
from ingest.lake.tables.gold import DIVERGENCES
from ingest.lake.tables.kept import KEY_RECORDS, RECORD_COUNTS
from reconstruct.cluster.spark.statements import stated_ids
from reconstruct.engine.folds import local_rows
from reconstruct.engine.judgement import Judgement
from reconstruct.engine.rows import finding_row
from reconstruct.engine.second_look import DATED_TABLES, second_look
from reconstruct.findings.verdicts import Divergence, DivergenceType
from tests.support.lakes.rows import frame_of, row_of


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


def test_what_a_start_opened_and_stated_is_looked_at(lake):
    """Three brokers whose directories were empty at a start: the first opened others, the second is of another cluster,
    of the third both are as before."""
    wiped = {"cluster_id": "c", "rule_id": "R37", "divergence_type": "log_directory_wiped", "severity": "error"}
    found = [wiped | {"divergence_id": f"d{n}", "broker_id": n, "detected_at": 100} for n in (1, 2, 3)]
    printed = [
        (
            1,
            "logs_loading",
            {"live_log_dirs": r"ArrayBuffer(C:\tmp\logs)"},
            {"live_log_dirs": r"ArraySeq(D:\tmp\logs)"},
        ),
        (2, "cluster_id", {"cluster_id": "c"}, {"cluster_id": "other"}),
        (3, "logs_loading", {"live_log_dirs": "ArrayBuffer(/tmp/logs)"}, {"live_log_dirs": "ArraySeq(/tmp/logs)"}),
        (3, "cluster_id", {"cluster_id": "c"}, {"cluster_id": "c"}),
    ]
    events = [
        {"cluster_id": "c", "broker_id": broker_id, "event_type": event_type, "corrected_time": at, "fields": fields}
        | {"record_id": f"{broker_id} {event_type} {at}"}
        for broker_id, event_type, *both in printed
        for at, fields in zip((0, 101), both, strict=True)
    ]
    files, znodes, transactions = map(lake.read, (INGESTED_FILES, ZNODE_CHANGES, ZNODE_TRANSACTIONS))
    replication = frame_of(lake, REPLICATION_EVENTS, [row_of(REPLICATION_EVENTS, event) for event in events])
    stated = stated_ids(replication, files)
    findings = frame_of(lake, DIVERGENCES, [row_of(DIVERGENCES, finding) for finding in found])
    dated = [lake.read(spec) for spec in DATED_TABLES]
    of_records = [lake.spark.createDataFrame([], spec.struct) for spec in (RECORD_COUNTS, KEY_RECORDS)]
    looked = second_look(findings, dated, *of_records, files, replication, znodes, transactions, stated).collect()
    assert {row["broker_id"]: (row["severity"], row["alternatives"]) for row in looked} == {
        1: ("warning", ["other_log_dirs"]),
        2: ("warning", ["start_of_another_cluster"]),
        3: ("error", []),
    }
