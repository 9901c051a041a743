"""Every metric, beside the query that gives its cases. This is the one place in which a metric is added."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from checks.metrics.catalog import HIGHER, LOWER, Metric, MetricPass
from checks.metrics.hours import BROKER_HOURS, BROKER_HOURS_READS
from checks.metrics.snapshots import SNAPSHOTS_AND_REPLAY, SNAPSHOTS_AND_REPLAY_READS
from ingest.lake.tables.quality import CLOCK

#: Timelines whose intervals begin with a transition: logged, written to a znode, or inferred.
TRANSITIONS: Final = (
    "silver.partition_state_timeline",
    "silver.replica_state_timeline",
    "silver.leader_and_isr_timeline",
    "silver.assignment_timeline",
)


@cache
def metric_passes() -> tuple[MetricPass, ...]:
    """All passes, in the order in which results list their metrics."""
    return (_log_records(), _files(), _transitions(), _snapshots(), _elections(), _hours(), _clocks())


@cache
def metrics() -> Mapping[str, Metric]:
    """Every metric by its name."""
    return {metric.name: metric for each in metric_passes() for metric in each.metrics}


def _share(condition: str) -> str:
    """The share of cases for which a condition that is never NULL holds; NULL where there is no case."""
    return f"avg(CAST({condition} AS DOUBLE))"


def _log_records() -> MetricPass:
    """Records by broker and kind, with the version that the broker's logs state: counted before they are joined.

    Every line of a state-change log concerns the replay: where half of them are not understood, no timeline of it can
    be trusted. A server.log is mostly about other things; its share of typed records says how its broker is used.
    """
    versions = (
        "SELECT cluster_id, broker_id, concat_ws(',', array_sort(collect_set(kafka_version))) AS kafka_version"
        " FROM {ingested_files} WHERE kafka_version IS NOT NULL AND broker_id IS NOT NULL GROUP BY 1, 2"
    )
    counted = (
        "SELECT cluster_id, broker_id, source_kind, count(*) AS records, count(shape_id) AS typed"
        " FROM {log_records} GROUP BY 1, 2, 3"
    )
    state_change = "source_kind = 'state_change_log'"
    return MetricPass(
        "log records and versions",
        ("bronze.log_records", "bronze.ingested_files"),
        "SELECT counted.*, coalesce(kafka_version, 'unknown') AS kafka_version"
        f" FROM ({counted}) AS counted LEFT JOIN ({versions}) AS versions"
        " ON counted.cluster_id = versions.cluster_id AND counted.broker_id = versions.broker_id",
        "kafka_version",
        "version that the broker's logs state, several with commas; 'unknown' where none does",
        (
            Metric(
                "typed_records_by_version_ratio",
                "share of the records of all logs whose message a known shape matched",
                HIGHER,
                "try_divide(sum(typed), sum(records))",
            ),
            Metric(
                "typed_state_changes_by_version_ratio",
                "share of the records of state-change logs whose message a known shape matched",
                HIGHER,
                f"try_divide(sum(typed) FILTER (WHERE {state_change}), sum(records) FILTER (WHERE {state_change}))",
                warning=0.99,
                critical=0.5,
            ),
        ),
    )


def _files() -> MetricPass:
    return MetricPass(
        "records rejected",
        ("bronze.ingested_files",),
        "SELECT cluster_id, source_kind, records_read_count, records_rejected_count FROM {ingested_files}",
        "source_kind",
        "kind of source",
        (
            Metric(
                "rejected_records_ratio",
                "share of the records read that could not be kept",
                LOWER,
                "try_divide(sum(records_rejected_count), sum(records_read_count))",
                warning=0.01,
            ),
        ),
    )


def _transitions() -> MetricPass:
    """No threshold: at INFO, the default since Kafka 2.6 (KAFKA-8470), replica transitions are not logged."""
    cases = " UNION ALL ".join(
        f"SELECT cluster_id, '{table}' AS timeline, inferred_from IS NULL AS is_observed FROM {{{table.split('.')[1]}}}"
        for table in TRANSITIONS
    )
    return MetricPass(
        "transitions",
        TRANSITIONS,
        cases,
        "timeline",
        "timeline",
        (
            Metric(
                "observed_transitions_ratio",
                "share of a timeline's intervals whose beginning was observed, and not inferred",
                HIGHER,
                _share("is_observed"),
            ),
        ),
    )


def _snapshots() -> MetricPass:
    return MetricPass(
        "snapshots and replay",
        SNAPSHOTS_AND_REPLAY_READS,
        SNAPSHOTS_AND_REPLAY,
        "source",
        "who took the snapshot",
        (
            Metric(
                "snapshots_replayed_ratio",
                "share of the partition states in snapshots that the replayed timeline holds at that time",
                HIGHER,
                _share("is_equal"),
                warning=0.99,
            ),
        ),
    )


def _elections() -> MetricPass:
    """Never critical: an election that the rules do not give is a finding about the cluster."""
    return MetricPass(
        "elections",
        ("gold.leader_elections",),
        "SELECT cluster_id, election_kind, is_exact, observed_leader, allowed_leaders FROM {leader_elections}",
        "''",
        "empty",
        (
            Metric(
                "elections_explained_ratio",
                "share of the elections whose leader is one that the rules give for inputs that the evidence allows",
                HIGHER,
                _share("array_contains(allowed_leaders, observed_leader)"),
                warning=0.5,
            ),
            Metric(
                "elections_of_known_kind_ratio",
                "share of the elections whose occasion is known",
                HIGHER,
                _share("election_kind <> 'unknown'"),
            ),
            Metric(
                "elections_exact_ratio",
                "share of the elections whose inputs are all known as they were written",
                HIGHER,
                _share("is_exact"),
            ),
        ),
    )


def _hours() -> MetricPass:
    return MetricPass(
        "hours of brokers",
        BROKER_HOURS_READS,
        BROKER_HOURS,
        "CAST(broker_id AS STRING)",
        "broker",
        (
            Metric(
                "broker_hours_covered_ratio",
                "share of the hours that the cluster's logs span in which a log of this broker speaks",
                HIGHER,
                _share("is_touched"),
                warning=0.5,
            ),
        ),
    )


def _clocks() -> MetricPass:
    """The widest interval of a broker's clock says how far apart two of its lines may be told in the wrong order."""
    return MetricPass(
        "clocks",
        ("quality.evidence_coverage",),
        "SELECT cluster_id, broker_id, clock_offset_lower_ms AS lower, clock_offset_upper_ms AS upper"
        f" FROM {{evidence_coverage}} WHERE source_kind = '{CLOCK}'",
        "CAST(broker_id AS STRING)",
        "broker",
        (
            Metric(
                "clock_bounds_width_ms",
                "widest distance between the proven bounds of the offset of the broker's clock, where it has both",
                LOWER,
                "max(upper - lower)",
                warning=60_000.0,
                least_change=1_000.0,
            ),
            Metric(
                "clock_bounded_ratio",
                "share of the intervals of the broker's clock with both bounds proven",
                HIGHER,
                _share("lower IS NOT NULL AND upper IS NOT NULL"),
            ),
        ),
    )
