"""Captures damaged on purpose: a table of what is done to the files, and what must be said of it.

Nothing of it is said of the undamaged capture. All copies are clusters of the one lake that tests share. A
share of the kinds is in every suite, all of them are with ``HYPOTHESIS_PROFILE=hard``.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

import pytest

from checks.results import CheckReport
from dashboards.questions.question import questions
from jobs.ask.answer import rows_of
from jobs.sql.names import LakeNames
from tests.support.captures.bases import QUIET
from tests.support.captures.damages import KINDS, Damage
from tests.support.captures.lake import row_texts
from tests.support.lakes.damaged import CHOSEN, GIVEN_TWICE, SHARE
from tests.support.lakes.shared import SharedLake

#: The first test pays for the lake of all copies.
pytestmark = pytest.mark.timeout(1800)

Row = dict[str, Any]
_TABLES: Final = {
    "files": "bronze.ingested_files",
    "rejected": "bronze.rejected_records",
    "coverage": "quality.evidence_coverage",
    "findings": "gold.divergences",
    "templates": "quality.unrecognised_templates",
}
_BROKERS: Final = (1, 2, 3)


@dataclass
class Told:
    """What the tables, the checks and the limits drawn from the coverage say of one cluster."""

    files: list[Row] = field(default_factory=list)
    rejected: list[Row] = field(default_factory=list)
    coverage: list[Row] = field(default_factory=list)
    findings: list[Row] = field(default_factory=list)
    templates: list[Row] = field(default_factory=list)
    metrics: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    broken: dict[str, str] = field(default_factory=dict)
    limits: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class Report:
    """One thing that is said, in words, and whether it is; ``is_usual`` where it is of the undamaged capture, too."""

    words: str
    is_told: Callable[[Told], bool]
    is_usual: bool = False


def _has(rows: Iterable[Row], wanted: Mapping[str, Any]) -> bool:
    return any(all(row[name] == value for name, value in wanted.items()) for row in rows)


def finding(rule_id: str, divergence_type: str, severity: str, broker_id: int | None = None) -> Report:
    wanted = {"rule_id": rule_id, "divergence_type": divergence_type, "severity": severity, "broker_id": broker_id}
    return Report(f"finding {wanted}", lambda told: _has(told.findings, wanted))


def rejected(source_kind: str, reason: str) -> Report:
    """A record of the kind is rejected for a reason that holds these words."""
    return Report(
        f"rejected {source_kind}: {reason}",
        lambda told: any(row["source_kind"] == source_kind and reason in row["reason"] for row in told.rejected),
    )


def file(source_kind: str, status: str, broker_id: int | None, reason: str | None = None) -> Report:
    wanted = {"source_kind": source_kind, "status": status, "broker_id": broker_id, "reason": reason}
    return Report(f"file {wanted}", lambda told: _has(told.files, wanted))


def kept_back(source_kind: str, broker_id: int) -> Report:
    """Of the file not all bytes were taken."""
    return Report(
        f"bytes of a {source_kind} of broker {broker_id} are not taken",
        lambda told: any(
            (row["source_kind"], row["broker_id"]) == (source_kind, broker_id)
            and row["ingested_bytes"] < row["size_bytes"]
            for row in told.files
        ),
    )


def gap(source_kind: str, broker_id: int, reason: str) -> Report:
    wanted = {"coverage": "gap", "source_kind": source_kind, "broker_id": broker_id, "gap_reason": reason}
    return Report(f"coverage {wanted}", lambda told: _has(told.coverage, wanted))


def out_of_order(source_kind: str, broker_id: int) -> Report:
    wanted = {"coverage": "out_of_order", "source_kind": source_kind, "broker_id": broker_id}
    return Report(f"coverage {wanted}", lambda told: _has(told.coverage, wanted))


def too_coarse(source_kind: str, level: str) -> Report:
    """Of every broker's log of the kind."""
    wanted = {"coverage": "too_coarse", "source_kind": source_kind, "level_floor": level}
    return Report(
        f"coverage {wanted}",
        lambda told: all(_has(told.coverage, wanted | {"broker_id": broker_id}) for broker_id in _BROKERS),
    )


def ends_before_the_others(source_kind: str, broker_id: int, by: timedelta) -> Report:
    """What is covered of one broker's log ends so much before what is covered of each other broker's."""

    def is_told(told: Told) -> bool:
        ends: dict[int, Any] = {}
        for row in told.coverage:
            if row["source_kind"] == source_kind and row["coverage"] == "covered":
                ends[row["broker_id"]] = max(row["valid_to"], ends.get(row["broker_id"], row["valid_to"]))
        return all(ends[broker_id] + by < ends[other] for other in ends if other != broker_id)

    return Report(f"the coverage of broker {broker_id}'s {source_kind} ends {by} before the others'", is_told)


def clock(broker_id: int, verdict: str, zone_minutes: int | None = None) -> Report:
    wanted = {"broker_id": broker_id, "clock_verdict": verdict, "clock_zone_offset_minutes": zone_minutes}
    return Report(f"clock {wanted}", lambda told: _has(told.coverage, wanted))


def limit(cause: str, source_kind: str, *brokers: int) -> Report:
    """What cannot be said, for want of a kind of source of these brokers (none: of the cluster)."""
    return Report(
        f"limit {cause}: {source_kind} of {brokers or 'the cluster'}",
        lambda told: any(
            (one.cause, one.source_kind, one.brokers) == (cause, source_kind, brokers) for one in told.limits
        ),
    )


def broken_check(check_id: str, severity: str) -> Report:
    return Report(f"check {check_id} is broken ({severity})", lambda told: told.broken.get(check_id) == severity)


def below(metric: str, bound: float) -> Report:
    return Report(f"{metric} < {bound}", lambda told: any(value < bound for value in told.metrics[metric]))


def read_whole() -> Report:
    """Nothing is rejected, and what was covered is said: lines that nobody can mean stop nothing."""
    told = "all is kept, and the coverage is told"
    return Report(told, lambda told: bool(told.coverage) and not told.rejected, is_usual=True)


def unknown_logger(logger: str) -> Report:
    return Report(f"messages of {logger} that no shape knows", lambda told: _has(told.templates, {"logger": logger}))


_METRICS: Final = "quality.run_metrics."
_REPLAYED: Final = (
    below("snapshots_replayed_ratio", 0.99),
    broken_check(f"{_METRICS}snapshots_replayed_ratio_warning", "warning"),
)
_MANY_REJECTED: Final = broken_check(f"{_METRICS}rejected_records_ratio_warning", "warning")
_UNKNOWN_BINARY: Final = "binary data of a kind that is not known"

#: Damage → what must be said of it, all of it.
REPORTED: Final[Mapping[str, tuple[Report, ...]]] = {
    "log cut in a line": (kept_back("state_change_log", 2),),
    "lines missing": (finding("R23", "request_never_sent", "warning", 2),),
    "server log cut in the middle": (ends_before_the_others("server_log", 3, timedelta(seconds=10)),),
    "lines shuffled": (out_of_order("state_change_log", 1), limit("out_of_order", "state_change_log", 1)),
    "hour missing": (gap("server_log", 2, "missing_period"), limit("gap", "server_log", 2)),
    "latest hours missing": (gap("server_log", 2, "no_later_file"), limit("gap", "server_log", 2)),
    "hour unreadable": (
        gap("server_log", 2, "unread_file"),
        rejected("unrecognised", _UNKNOWN_BINARY),
    ),
    "numbered file missing": (gap("server_log", 2, "missing_number"), limit("gap", "server_log", 2)),
    "log given twice, lines missing in one": (
        file("server_log", "ingested", 2, "it starts like another log: only the records that differ are taken"),
    ),
    "logs of one broker missing": (limit("no_logs", "logs", 3), below("broker_live_hours_logged_ratio", 0.5)),
    "all state-change logs missing": (limit("missing", "state_change_log", 1, 2, 3),),
    "TRACE lines removed": (
        too_coarse("state_change_log", "INFO"),
        limit("too_coarse", "state_change_log", 1, 2, 3),
    ),
    "garbage before a log": (rejected("state_change_log", "no record of the file's layout begins at or before"),),
    "garbage in place of lines": (finding("R13", "transition_not_logged", "info", 1),),
    "garbage in place of a log": (
        file("unrecognised", "rejected", 2, _UNKNOWN_BINARY),
        limit("missing", "state_change_log", 2),
    ),
    "times on no calendar": (rejected("state_change_log", "its time is on no calendar"), _MANY_REJECTED),
    "lines of another program mixed in": (unknown_logger("com.example.http.AccessLog"),),
    "state changes that no shape knows": (
        below("typed_state_changes_by_version_ratio", 0.5),
        broken_check(f"{_METRICS}typed_state_changes_by_version_ratio_critical", "critical"),
    ),
    "requests edited": (
        finding("R15", "request_not_decided", "error", 2),
        finding("R02", "two_leaders_for_one_epoch", "warning"),
    ),
    "what a broker received edited": (
        finding("R22", "caches_disagree", "error", 2),
        finding("R24", "cache_never_decided", "error", 2),
    ),
    "numbers that no column holds": (read_whole(),),
    "log of another broker in its place": (limit("missing", "state_change_log", 3),),
    "gzip with bytes missing": (rejected("server_log", "the gzip data is damaged here"),),
    "gzip cut": (rejected("server_log", "the gzip data is cut off here"),),
    "tar cut": (
        rejected("server_log", "the archive is cut off here"),
        rejected("unrecognised", "its later files are missing"),
        limit("missing", "state_change_log", 2),
    ),
    "wrong time zone": (clock(2, "other_zone", 120),),
    "clock 100 seconds ahead": (clock(2, "skewed"),),
    "last snapshot names another leader": _REPLAYED,
    "last snapshot with a lower leader epoch": _REPLAYED,
    "snapshots with a stranger in the ISR": (finding("R03", "partition_epoch_repeated", "error"),),
    "snapshots with the leader outside the ISR": (finding("R05", "leader_outside_isr", "error", 2),),
    "snapshots with a falling partition epoch": (finding("R03", "partition_epoch_repeated", "error"),),
    "last snapshot cut in a line": (rejected("znode_snapshot", "no JSON"),),
    "last snapshot without zxids": (rejected("znode_snapshot", "a znode without mzxid"), _MANY_REJECTED),
    "snapshots missing": (limit("missing", "znodes"),),
    "transaction with a flipped bit": (rejected("znode_transaction_log", "does not match its checksum"),),
    "transaction log cut": (broken_check("silver.leader_and_isr_timeline.knows_every_assigned_partition", "warning"),),
    "checkpoint with a negative offset": (finding("R37", "checkpoint_out_of_bounds", "warning", 1),),
    "checkpoint with an entry of zero": (finding("R37", "checkpoint_zero", "warning", 1),),
    "checkpoint with a wrong count": (
        finding("R37", "checkpoint_malformed", "warning", 1),
        rejected("replication_offset_checkpoint", "7 entries were announced, 4 are there"),
    ),
    "checkpoint of another version": (
        finding("R37", "checkpoint_malformed", "warning", 1),
        rejected("replication_offset_checkpoint", "version '9' of the checkpoint format is not known"),
    ),
    "checkpoint with an entry twice": (
        finding("R37", "checkpoint_duplicate_entry", "warning", 1),
        rejected("replication_offset_checkpoint", "a second entry for the same key"),
    ),
    "checkpoint empty": (
        file("replication_offset_checkpoint", "empty", 1),
        finding("R37", "checkpoint_missing", "warning", 1),
    ),
    "leader epochs malformed": (rejected("leader_epoch_checkpoint", "a malformed entry"), _MANY_REJECTED),
    "configuration of another broker": (limit("missing", "server_properties", 2),),
}


def silent(message: str) -> None:
    """No progress."""


def gather(lake: Any, results: Iterable[Any]) -> Mapping[str, Told]:
    """What is said of each cluster."""
    from dashboards.sections.coverage.limits import available_evidence, evidence_holes
    from dashboards.source import Limits, Source
    from ingest.lake.tables import TABLES
    from reconstruct.coverage.limits import limits

    told: dict[str, Told] = defaultdict(Told)
    for name, table in _TABLES.items():
        for row in lake.read(TABLES[table]).collect():
            getattr(told[row["cluster_id"]], name).append(row.asDict())
    for row in lake.read(TABLES["quality.run_metrics"]).collect():
        told[row["cluster_id"]].metrics[row["metric"]].append(row["value"])
    for result in results:
        for example in json.loads(result.examples or "[]") if result.verdict == "broken" else ():
            told[example["cluster_id"]].broken[result.check_id] = result.severity
    source = Source(lake, Limits(), tuple(sorted(told)))
    held, holes = available_evidence(source), evidence_holes(source)
    for cluster_id, rows in held.items():
        told[cluster_id].limits = limits(
            _BROKERS,
            rows,
            holes.get(cluster_id, ()),
            ("3.9.1",),
        )
    return told


@pytest.fixture(scope="module")
def checked(damaged_copies: SharedLake, shared_checks: CheckReport) -> Mapping[str, Told]:
    copies = (*CHOSEN, *GIVEN_TWICE)
    ids = {damage.cluster_id for damage in copies} | {damage.base for damage in copies}
    return gather(damaged_copies.of(*sorted(ids)), shared_checks.results)


def names(damage: Damage) -> str:
    return damage.name


def test_the_table_holds_every_kind_of_damage_and_at_least_twenty() -> None:
    assert set(REPORTED) == {damage.name for damage in KINDS}
    assert len(KINDS) >= 20
    assert {kind.name for kind in CHOSEN} >= set(SHARE)
    assert all(REPORTED.values())


@pytest.mark.parametrize("damage", CHOSEN, ids=names)
def test_damage_is_reported(damage: Damage, checked: Mapping[str, Told]) -> None:
    told = checked[damage.cluster_id]
    assert [report.words for report in REPORTED[damage.name] if not report.is_told(told)] == []


@pytest.mark.parametrize("damage", CHOSEN, ids=names)
def test_nothing_of_it_is_said_of_the_undamaged_capture(damage: Damage, checked: Mapping[str, Told]) -> None:
    told = checked[damage.base]
    assert told.files
    assert [report.words for report in REPORTED[damage.name] if report.is_told(told)] == [
        report.words for report in REPORTED[damage.name] if report.is_usual
    ]


def test_what_one_broker_alone_was_told_is_what_the_saved_question_answers(damaged_copies: SharedLake) -> None:
    question = questions()["cache-beliefs"]
    LakeNames(damaged_copies.lake.spark, damaged_copies.lake.root).name((question.sql,))

    def asked(cluster_id: str) -> set[tuple[str, int, int]]:
        given = dict.fromkeys(question.parameters) | {"cluster": cluster_id}
        rows = rows_of(damaged_copies.lake.spark, question, given).collect()
        return {(row.topic, row.partition_id, row.broker_id) for row in rows}

    assert asked("what-a-broker-received-edited") == {("orders", 0, 2)}, "the one partition that broker 1 leads first"
    assert asked(QUIET) == set()


@pytest.mark.parametrize("damage", GIVEN_TWICE, ids=names)
def test_what_is_given_twice_counts_once(
    damage: Damage, checked: Mapping[str, Told], damaged_copies: SharedLake
) -> None:
    from ingest.lake.tables import TABLES

    given = checked[damage.cluster_id]
    assert given.files
    assert given.findings == []
    records = damaged_copies.lake.read(TABLES["bronze.log_records"])
    own, base = (
        row_texts(
            records.where(f"cluster_id = '{cluster}'").select("broker_id", "source_kind", "source_line", "message")
        )
        for cluster in (damage.cluster_id, damage.base)
    )
    assert [text.replace(damage.cluster_id, damage.base) for text in own] == base
