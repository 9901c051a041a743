"""What the report can know: the files read, what was rejected or not recognised, and the checks that ran."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from dashboards.source import Source, by_cluster, ms, plain, top
from ingest.lake.tables import bronze, quality


def cluster_files(source: Source) -> dict[str, dict[str, Any]]:
    """Per cluster: files, bytes, records read, kept, rejected, the span of time, versions and brokers seen."""
    done = F.col("status") == "ingested"
    rows = (
        source.read(bronze.INGESTED_FILES)
        .groupBy("cluster_id")
        .agg(
            F.count("*").alias("files"),
            F.count(F.when(done, 1)).alias("files_read"),
            F.sum("size_bytes").alias("size_bytes"),
            F.sum("records_read_count").alias("records_read"),
            F.sum("records_kept_count").alias("records_kept"),
            F.sum("records_rejected_count").alias("records_rejected"),
            ms(F.min("first_event_time")).alias("from_ms"),
            ms(F.max("last_event_time")).alias("to_ms"),
            F.slice(F.array_sort(F.collect_set("kafka_version")), 1, 20).alias("versions"),
            F.slice(F.array_sort(F.collect_set("broker_id")), 1, 2000).alias("brokers"),
        )
    )
    return {cluster: row[0] for cluster, row in by_cluster(rows.collect()).items()}


def files_by_kind(source: Source) -> dict[str, list[dict[str, Any]]]:
    """Files by broker, kind, status and level floor."""
    group = ("cluster_id", "broker_id", "source_kind", "status", "level_floor", "time_zone", "kafka_version")
    rows = (
        source.read(bronze.INGESTED_FILES)
        .groupBy(*group)
        .agg(
            F.count("*").alias("files"),
            F.sum("size_bytes").alias("size_bytes"),
            F.sum("records_read_count").alias("records_read"),
            F.sum("records_rejected_count").alias("records_rejected"),
            ms(F.min("first_event_time")).alias("from_ms"),
            ms(F.max("last_event_time")).alias("to_ms"),
            F.min("reason").alias("reason"),
            F.min("source_file").alias("example"),
        )
    )
    order = [
        F.col(name).asc_nulls_first()
        for name in ("source_kind", "broker_id", "status", "level_floor", "time_zone", "kafka_version")
    ]
    return by_cluster(top(rows, ["cluster_id"], order, 500).orderBy("cluster_id", *order).collect())


def evidence_intervals(source: Source) -> dict[str, list[dict[str, Any]]]:
    """Intervals in which evidence exists, by broker and kind: of each log file, of all copies of other files; and of
    logs those that are missing or too coarse.

    They are those of ``quality.evidence_coverage``; of a cluster that has none there, the spans of its files.
    """
    columns = (
        "cluster_id",
        "source_kind",
        "broker_id",
        "source_file",
        "coverage",
        "gap_reason",
        "level_floor",
        "valid_from",
        "valid_to",
        "records_count",
    )
    of_files = F.col("source_kind") != quality.CLOCK
    stated = _intervals(source, source.read(quality.EVIDENCE_COVERAGE).where(of_files).select(*columns))
    silent = [cluster for cluster in source.clusters if cluster not in stated]
    if not silent:
        return stated
    files = (
        source.read(bronze.INGESTED_FILES)
        .where(F.col("cluster_id").isin(silent))
        .where("status = 'ingested' AND first_event_time IS NOT NULL")
    )
    return stated | _intervals(
        source,
        files.select(
            "cluster_id",
            "source_kind",
            F.coalesce("broker_id", F.lit(-1)).alias("broker_id"),
            "source_file",
            F.lit("covered").alias("coverage"),
            F.lit(None).cast("string").alias("gap_reason"),
            "level_floor",
            F.col("first_event_time").alias("valid_from"),
            F.col("last_event_time").alias("valid_to"),
            F.col("records_kept_count").alias("records_count"),
        ),
    )


def clocks(source: Source) -> dict[str, list[dict[str, Any]]]:
    """The segments of every broker's clock, those that say most first: corrected, then wrong, then the others."""
    rows = source.read(quality.EVIDENCE_COVERAGE).where(F.col("source_kind") == quality.CLOCK)
    corrected = F.coalesce(F.col("clock_correction_us"), F.lit(0)) != 0
    order = [corrected.desc(), (F.col("clock_verdict") == "agrees"), F.col("broker_id"), F.col("valid_from")]
    shown = top(rows, ["cluster_id"], order, source.limits.groups)
    return by_cluster(
        shown.orderBy("cluster_id", *order)
        .select(
            "cluster_id",
            "broker_id",
            ms("valid_from").alias("from_ms"),
            ms("valid_to").alias("to_ms"),
            *(F.col(name).alias(name.removeprefix("clock_")) for name in rows.columns if name.startswith("clock_")),
        )
        .collect()
    )


def _intervals(source: Source, rows: DataFrame) -> dict[str, list[dict[str, Any]]]:
    log = F.when(F.col("source_kind").isin(list(bronze.LOG_KINDS)), F.col("source_file")).otherwise(F.lit(""))
    group = ("cluster_id", "source_kind", "broker_id", "coverage", "gap_reason", "level_floor")
    grouped = (
        rows.withColumn("file", log)
        .groupBy(*group, "file")
        .agg(
            F.sum("records_count").alias("records"),
            F.count("*").alias("files"),
            ms(F.min("valid_from")).alias("from_ms"),
            ms(F.max("valid_to")).alias("to_ms"),
        )
    )
    order = [F.col("source_kind"), F.col("broker_id"), F.col("from_ms"), F.col("file"), F.col("coverage")]
    shown = top(grouped, ["cluster_id"], order, source.limits.coverage)
    return by_cluster(shown.orderBy("cluster_id", *order).collect())


def _grouped(rows: DataFrame, by: tuple[str, ...], example: Column, count: int) -> dict[str, list[dict[str, Any]]]:
    """The largest groups with one example each (the first by file and line), and totals over all groups."""
    whole = Window.partitionBy("cluster_id")
    grouped = rows.groupBy("cluster_id", *by).agg(F.count("*").alias("records"), F.min(example).alias("example"))
    totals = grouped.select(
        "*", F.count("*").over(whole).alias("groups_total"), F.sum("records").over(whole).alias("records_total")
    )
    order = [F.col("records").desc(), *(F.col(name) for name in by)]
    shown = top(totals, ["cluster_id"], order, count).orderBy("cluster_id", *order)
    return by_cluster(
        shown.select("cluster_id", *by, "records", "groups_total", "records_total", "example.*").collect()
    )


def rejected_groups(source: Source) -> dict[str, list[dict[str, Any]]]:
    """Rejected records by kind of source and reason."""
    example = F.struct("source_file", "source_line", F.substring("raw", 1, 300).alias("text"))
    return _grouped(source.read(bronze.REJECTED_RECORDS), ("source_kind", "reason"), example, source.limits.groups)


def rule_verdicts(source: Source) -> dict[str, list[dict[str, Any]]]:
    """How often each rule was kept, broken, or could not be judged, by the latest reconstruction of each cluster."""
    rows = source.read(quality.RUN_METRICS).where(F.col("metric").rlike("^rule_.*_count$"))
    latest = F.max(F.struct("run_at", "run_id")).over(Window.partitionBy("cluster_id"))
    run = rows.withColumn("latest", latest).where("run_id = latest.run_id")

    def times(verdict: str) -> Column:
        return F.sum(F.when(F.col("metric") == f"rule_{verdict}_count", F.col("value")).otherwise(F.lit(0.0))).alias(
            verdict
        )

    counted = run.groupBy("cluster_id", F.col("subject").alias("rule_id")).agg(*map(times, quality.VERDICTS))
    return by_cluster(top(counted, ["cluster_id"], [F.col("rule_id")], 200).orderBy("cluster_id", "rule_id").collect())


def latest_checks(source: Source) -> dict[str, Any]:
    """The latest run of the checks: how many gave which verdict, and those that broke; empty where none ran."""
    rows = source.all(quality.CHECK_RESULTS)
    latest = rows.orderBy(F.col("run_at").desc(), F.col("run_id").desc()).select("run_id").first()
    if latest is None:
        return {"verdicts": {}, "broken": []}
    # Kafka's rules are among them (severity info): a broken one is a finding and told as such, not a failed check
    run = rows.where((F.col("run_id") == latest["run_id"]) & (F.col("severity") != "info"))
    verdicts = {row["verdict"]: row["count"] for row in run.groupBy("verdict").count().collect()}
    broken = run.where("verdict = 'broken'").orderBy("severity", "check_id").limit(source.limits.groups)
    columns = ("check_id", "table_name", "severity", "checked_count", "broken_count", "examples", "explanation")
    return {"verdicts": verdicts, "broken": [plain(row) for row in broken.select(*columns).collect()]}
