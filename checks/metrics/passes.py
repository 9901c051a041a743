"""Every metric, beside the query that gives its cases. This is the one place in which a metric is added."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from checks.metrics.catalog import HIGHER, LOWER, Metric, MetricPass
from checks.metrics.queries import LOGGED_HOURS, SNAPSHOTS_AND_REPLAY
from ingest.lake.tables.bronze import SourceKind
from ingest.lake.tables.quality import CLOCK

#: Timelines whose intervals begin with a transition: logged, written to a znode, or inferred.
TRANSITIONS: Final = (
    "silver.partition_state_timeline",
    "silver.replica_state_timeline",
    "silver.leader_and_isr_timeline",
    "silver.assignment_timeline",
)


def _share(condition: str) -> str:
    """The share of cases for which a condition that is never NULL holds; NULL where there is no case."""
    return f"avg(CAST({condition} AS DOUBLE))"


_IN_STATE_CHANGE_LOGS: Final = f"FILTER (WHERE source_kind = '{SourceKind.STATE_CHANGE_LOG}')"
_VERSIONS: Final = (
    "SELECT cluster_id, broker_id, concat_ws(',', array_sort(collect_set(kafka_version))) AS kafka_version"
    " FROM {ingested_files} WHERE kafka_version IS NOT NULL AND broker_id IS NOT NULL GROUP BY 1, 2"
)
_TYPED_RECORDS: Final = (
    "SELECT cluster_id, broker_id, source_kind, count(*) AS records, count(shape_id) AS typed"
    " FROM {log_records} GROUP BY 1, 2, 3"
)
_INTERVALS: Final = " UNION ALL ".join(
    f"SELECT cluster_id, '{table}' AS timeline, inferred_from IS NULL AS is_observed FROM {{{table.split('.')[1]}}}"
    for table in TRANSITIONS
)

#: All passes, in the order in which results list their metrics.
METRIC_PASSES: Final = (
    # Records by broker and kind, with the version that the broker's logs state (several with commas, 'unknown' where
    # none does): counted before they are joined. Every line of a state-change log concerns the replay: where half of
    # them are not understood, no timeline of it can be trusted. A server.log is mostly about other things; its share of
    # typed records says how its broker is used.
    MetricPass(
        "log records and versions",
        "SELECT counted.*, coalesce(kafka_version, 'unknown') AS kafka_version"
        f" FROM ({_TYPED_RECORDS}) AS counted LEFT JOIN ({_VERSIONS}) AS versions"
        " ON counted.cluster_id = versions.cluster_id AND counted.broker_id = versions.broker_id",
        "kafka_version",
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
                f"try_divide(sum(typed) {_IN_STATE_CHANGE_LOGS}, sum(records) {_IN_STATE_CHANGE_LOGS})",
                warning=0.99,
                critical=0.5,
                advice="what these lines say is missing in the timelines: the report lists them under Coverage,"
                " send them in",
            ),
        ),
    ),
    MetricPass(
        "records rejected",
        # a file that is recognised as nothing is one record, rejected; it is listed by itself
        "SELECT cluster_id, source_kind, records_read_count, records_rejected_count FROM {ingested_files}"
        " WHERE source_kind <> 'unrecognised'",
        "source_kind",
        (
            Metric(
                "rejected_records_ratio",
                "share of the records read that could not be kept",
                LOWER,
                "try_divide(sum(records_rejected_count), sum(records_read_count))",
                warning=0.01,
                advice="the report lists them by reason under Coverage; what was rejected is missing in the timelines,"
                " so leave out what is no file of Kafka, and take damaged files anew",
            ),
        ),
    ),
    # No threshold: at INFO, the default since Kafka 2.6 (KAFKA-8470), replica transitions are not logged.
    MetricPass(
        "transitions",
        _INTERVALS,
        "timeline",
        (
            Metric(
                "observed_transitions_ratio",
                "share of a timeline's intervals whose beginning was observed, and not inferred",
                HIGHER,
                _share("is_observed"),
            ),
        ),
    ),
    MetricPass(
        "snapshots and replay",
        SNAPSHOTS_AND_REPLAY,
        "source",  # who took the snapshot
        (
            Metric(
                "snapshots_replayed_ratio",
                "share of the partition states in snapshots that the replayed timeline holds at that time",
                HIGHER,
                _share("is_equal"),
                warning=0.99,
                advice="lines between two snapshots are missing, or files of another cluster lie among these"
                " (--cluster)",
            ),
        ),
    ),
    # Never critical: an election that the rules do not give is a finding about the cluster.
    MetricPass(
        "elections",
        "SELECT cluster_id, election_kind, is_exact, observed_leader, allowed_leaders FROM {leader_elections}",
        "''",
        (
            # without any input, where neither znodes nor a log name the assigned replicas, nothing is given
            Metric(
                "elections_with_inputs_explained_ratio",
                "share of the elections of which any input is known whose leader is one that the rules give for them",
                HIGHER,
                f"{_share('array_contains(allowed_leaders, observed_leader)')}"
                " FILTER (WHERE size(allowed_leaders) > 0)",
                warning=0.5,
                advice="inputs of elections are wrong or missing: give the znodes and the logs of all brokers; the"
                " findings say which",
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
    ),
    MetricPass(
        "hours of brokers",
        LOGGED_HOURS,
        "CAST(broker_id AS STRING)",
        (
            Metric(
                "broker_live_hours_logged_ratio",
                "share of the hours in which the broker lived and any log of the cluster speaks, in which one of its"
                " own does",
                HIGHER,
                _share("is_touched"),
                warning=0.5,
                advice="its logs of the other hours are missing: give them if there are any; the report says what"
                " cannot be said without",
            ),
        ),
    ),
    # The widest interval of a broker's clock says how far apart two of its lines may be put in the wrong order.
    MetricPass(
        "clocks",
        "SELECT cluster_id, broker_id, clock_offset_lower_ms AS lower, clock_offset_upper_ms AS upper"
        f" FROM {{evidence_coverage}} WHERE source_kind = '{CLOCK}'",
        "CAST(broker_id AS STRING)",
        (
            Metric(
                "clock_bounds_width_ms",
                "widest distance between the proven bounds of the offset of the broker's clock, where it has both",
                LOWER,
                "max(upper - lower)",
                warning=60_000.0,
                least_change=1_000.0,
                advice="the order of this broker's lines and others' is only known within it: give the logs of both"
                " sides, or ZooKeeper's transaction logs",
            ),
            Metric(
                "clock_bounded_ratio",
                "share of the intervals of the broker's clock with both bounds proven",
                HIGHER,
                _share("lower IS NOT NULL AND upper IS NOT NULL"),
            ),
        ),
    ),
)
#: Every metric by its name.
METRICS: Final[Mapping[str, Metric]] = {metric.name: metric for each in METRIC_PASSES for metric in each.metrics}
