"""Which hours each broker's logs speak of."""

from __future__ import annotations

from typing import Final

from ingest.lake.tables.bronze import LOG_KINDS
from ingest.lake.tables.spec import literals

#: Hours looked at, the latest ones of a cluster: a year. One line with a wrong year must not give a million hours.
HOURS_AT_MOST: Final = 366 * 24

BROKER_HOURS_READS: Final = ("quality.evidence_coverage", "silver.broker_liveness_timeline")

_FIRST_HOUR: Final = (
    f"greatest(date_trunc('HOUR', first), date_trunc('HOUR', last) - INTERVAL {HOURS_AT_MOST - 1} HOURS)"
)

#: One row per (``cluster_id``, ``broker_id``, ``hour``) for the brokers known from logs or from their registration, and
#: the hours between the first and the last line of any log of the cluster: ``covered_ratio``, the share of what of
#: the hour lies between those lines that a log of the broker spans (from its first line to its last), and
#: ``is_touched``, whether one has a part in it at all.
BROKER_HOURS: Final = (
    "WITH logs AS (SELECT cluster_id, broker_id, valid_from, valid_to FROM {evidence_coverage}"
    f" WHERE source_kind IN ({literals(LOG_KINDS)}) AND coverage = 'covered' AND broker_id >= 0),"
    " spans AS (SELECT cluster_id, min(valid_from) AS first, max(valid_to) AS last FROM logs GROUP BY cluster_id),"
    f" bounds AS (SELECT *, {_FIRST_HOUR} AS first_hour FROM spans),"
    " hours AS (SELECT cluster_id, first, last,"
    " explode(sequence(first_hour, date_trunc('HOUR', last), INTERVAL 1 HOUR)) AS hour FROM bounds),"
    " brokers AS (SELECT cluster_id, broker_id FROM logs"
    " UNION SELECT cluster_id, broker_id FROM {broker_liveness_timeline}),"
    " reached AS (SELECT *, max(valid_to) OVER (PARTITION BY cluster_id, broker_id ORDER BY valid_from, valid_to"
    " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reach FROM logs),"
    " numbered AS (SELECT *, count_if(reach IS NULL OR valid_from > reach) OVER"
    " (PARTITION BY cluster_id, broker_id ORDER BY valid_from, valid_to) AS island FROM reached),"
    " islands AS (SELECT cluster_id, broker_id, min(valid_from) AS begins, max(valid_to) AS ends FROM numbered"
    " GROUP BY cluster_id, broker_id, island),"
    " pieces AS (SELECT cluster_id, broker_id, begins, ends,"
    " explode(sequence(greatest(date_trunc('HOUR', begins), first_hour), date_trunc('HOUR', ends), INTERVAL 1 HOUR))"
    " AS hour FROM islands JOIN bounds USING (cluster_id) WHERE date_trunc('HOUR', ends) >= first_hour),"
    " covered AS (SELECT cluster_id, broker_id, hour,"
    " sum(unix_micros(least(ends, hour + INTERVAL 1 HOUR)) - unix_micros(greatest(begins, hour))) AS covered_us"
    " FROM pieces GROUP BY cluster_id, broker_id, hour)"
    " SELECT cluster_id, broker_id, hour, coalesce(covered_us, 0) / length_us AS covered_ratio,"
    " covered_us IS NOT NULL AS is_touched"
    " FROM (SELECT *, unix_micros(least(last, hour + INTERVAL 1 HOUR))"
    " - unix_micros(greatest(first, hour)) AS length_us"
    " FROM hours JOIN brokers USING (cluster_id))"
    " LEFT JOIN covered USING (cluster_id, broker_id, hour) WHERE length_us > 0"
)

#: Written per broker and hour by Spark and never collected; :data:`BROKER_HOURS` says what it is.
HOURLY_METRIC: Final = "broker_hour_covered_ratio"
#: Its subject: ``1 2026-11-21T10``, the broker and the hour, UTC.
HOURLY_SUBJECT: Final = "concat(broker_id, ' ', date_format(hour, \"yyyy-MM-dd'T'HH\"))"


def hourly_sql() -> str:
    """``cluster_id``, ``subject``, ``metric`` and ``value`` of every broker and hour."""
    return (
        f"SELECT cluster_id, {HOURLY_SUBJECT} AS subject, '{HOURLY_METRIC}' AS metric,"
        f" CAST(covered_ratio AS DOUBLE) AS value FROM ({BROKER_HOURS})"
    )
