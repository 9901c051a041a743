"""What cannot be said: which evidence there is of each broker, the holes in it, and a sentence for each limit with the
rules and questions that it leaves open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from dashboards import overview, words
from dashboards.section import Cluster, Section
from dashboards.source import Source, by_cluster, ms, spanned, top, top_of_cluster
from ingest.lake.tables import bronze, events, quality, quorum, silver
from ingest.lake.tables.bronze import SourceKind
from reconstruct.coverage.limits import AvailableEvidence, Hole, Limit, NodeRole, limits
from reconstruct.coverage.questions import QUESTIONS
from reconstruct.rule_book import RULES

#: So many sentences are shown of a cluster; the others are counted.
MOST_SENTENCES: Final = 40
_TITLES: Final[Mapping[str, str]] = {rule.rule_id: rule.promise for rule in RULES.values()}
_NAMES: Final[Mapping[str, str]] = {
    SourceKind.STATE_CHANGE_LOG: "state-change.log",
    SourceKind.CONTROLLER_LOG: "controller.log",
    SourceKind.SERVER_LOG: "server.log",
    SourceKind.REPLICATION_OFFSET_CHECKPOINT: "replication-offset-checkpoint",
    SourceKind.LEADER_EPOCH_CHECKPOINT: "leader-epoch-checkpoint",
    "log_end": "segment and no probe of the log's end",
    SourceKind.SERVER_PROPERTIES: "server.properties",
}
_CAPTURED: Final[Mapping[str, str]] = {"log_end": "the log ends and high watermarks", "znodes": "the znodes"}
_REASONS: Final[Mapping[str, str]] = {
    "missing_number": "the files are numbered, and one between two of them is not there",
    "no_later_file": "it was rolled, which takes a later line, and the file with that line is not there",
    "unread_file": "a file of it could not be read",
    "missing_period": "it wrote much in the hours before and after, another of the broker's logs was written then, and"
    " there is no file",
}
_SENTENCES: Final[Mapping[str, str]] = {
    "no_logs": "No log{of} was given: {why}.",
    "gap": "Lines of the {name}{of} {are} missing{gap}: {why}.",
    "not_captured": "The capture could not record {captured}{of}{when}: {why}.",
    "out_of_order": "The lines of the {name}{of}{when} are not in the order of their times: {why}.",
    "clock_set_back": "The {name}{of} tells the time{when} twice: its clock was set back, or it is put together of two"
    " files; {why}.",
    "missing": "No {name}{of} was given: {why}.",
    "unknown_broker": "A {name} was given, but nothing shows whose it is: {why} (--broker ID=PATH states it).",
    "too_coarse": "The {name}{of} holds nothing below {floor}{when}: {why}.",
    "silence": "No file of the {name}{of} speaks{when}: nothing was logged, or files are missing; {why}.",
}
_MISSING: Final[Mapping[str, str]] = {
    "znodes": "No znodes were given: {why}.",
    SourceKind.ZNODE_TRANSACTION_LOG: "Znodes were given as snapshots, without ZooKeeper's transaction logs: {why}.",
}
#: Kafka's logs are rolled by the hour: no file is begun for an hour in which nothing is logged.
_ROLLED_EVERY_MS: Final = 3_600_000
_MOST_KINDS: Final = 10_000


@dataclass(frozen=True, slots=True)
class CountedHole(Hole):
    """A hole; ``total`` counts the cluster's holes of the same cause."""

    total: int = 1


@dataclass(frozen=True)
class EvidenceLimits:
    """The kinds of evidence that there are, the longest holes in them, and what its nodes are for."""

    evidence: tuple[AvailableEvidence, ...] = ()
    holes: tuple[CountedHole, ...] = ()
    roles: tuple[NodeRole, ...] = ()


@dataclass(frozen=True)
class LimitSentence:
    """A limit in words, the rules that it leaves open as id and title, and the questions."""

    text: str
    rules: tuple[tuple[str, str], ...]
    questions: tuple[str, ...]


@dataclass(frozen=True)
class LimitsView:
    """What the template reads: ``more`` counts the limits beyond ``sentences``."""

    sentences: tuple[LimitSentence, ...] = ()
    more: int = 0
    has_files: bool = False


def gather(source: Source) -> Mapping[str, EvidenceLimits]:
    """The evidence of each cluster, the holes in it, and the roles of its nodes."""
    evidence, holes, roles = available_evidence(source), evidence_holes(source), node_roles(source)
    return {
        cluster: EvidenceLimits(found, holes.get(cluster, ()), roles.get(cluster, ()))
        for cluster, found in evidence.items()
    }


def view(cluster: Cluster, data: EvidenceLimits) -> LimitsView:
    """The cluster's limits as sentences."""
    return cannot_be_said(data, overview.broker_ids(cluster), cluster.totals.versions, bool(cluster.totals.files))


def cannot_be_said(
    data: EvidenceLimits, brokers: Sequence[int], versions: Sequence[str], has_files: bool = True
) -> LimitsView:
    """The limits of evidence about these brokers of these versions, the first :data:`MOST_SENTENCES` as sentences."""
    if not data.evidence:
        return LimitsView(has_files=has_files)
    found = limits(brokers, data.evidence, data.holes, versions, data.roles)
    totals = {row.cause: row.total for row in data.holes}
    sentences = tuple(
        LimitSentence(
            sentence(limit),
            tuple((rule_id, _TITLES[rule_id]) for rule_id in limit.rules),
            tuple(QUESTIONS[number] for number in limit.questions),
        )
        for limit in found[:MOST_SENTENCES]
    )
    more = max(0, len(found) - MOST_SENTENCES) + sum(totals.values()) - len(data.holes)
    return LimitsView(sentences, more, has_files)


def available_evidence(source: Source) -> dict[str, tuple[AvailableEvidence, ...]]:
    """Kinds of source by broker, with the lowest level and the span: of logs by their records, since one stream may
    hold several of them; of everything else by files."""
    broker = F.coalesce("broker_id", F.lit(-1)).alias("broker_id")
    levels = F.array(*map(F.lit, bronze.LOG_LEVELS))
    rank = F.min(F.array_position(levels, F.col("log_level"))).cast("int")
    logs = (
        source.read(bronze.LOG_RECORDS)
        .groupBy("cluster_id", broker, "source_kind")
        .agg(
            F.try_element_at(levels, F.when(rank > 0, rank)).alias("level_floor"),
            ms(F.min("event_time")).alias("from_ms"),
            ms(F.max("event_time")).alias("to_ms"),
        )
    )
    files = (
        source.read(bronze.INGESTED_FILES)
        .where((F.col("status") == "ingested") & ~F.col("source_kind").isin(*bronze.LOG_KINDS))
        .groupBy("cluster_id", broker, "source_kind")
        .agg(
            F.lit(None).cast("string").alias("level_floor"),
            ms(F.min("first_event_time")).alias("from_ms"),
            ms(F.max("last_event_time")).alias("to_ms"),
        )
    )
    order = [F.col("broker_id"), F.col("source_kind")]
    return by_cluster(AvailableEvidence, top_of_cluster(logs.unionByName(files), order, _MOST_KINDS))


def node_roles(source: Source) -> dict[str, tuple[NodeRole, ...]]:
    """Who voted and who registered, of all time, in clusters that never had ZooKeeper: there brokers were controllers
    too."""
    own = F.col("cluster_id").isin(list(source.clusters))
    voters = source.all(quorum.QUORUM_TIMELINE).where(own)
    voted = voters.select("cluster_id", F.explode("voters").alias("node_id"), F.lit("controller").alias("role"))
    lives = source.all(silver.BROKER_LIVENESS_TIMELINE).where(own)
    registered = lives.select("cluster_id", F.col("broker_id").alias("node_id"), F.lit("broker").alias("role"))
    of_zookeeper = source.all(events.ZNODE_CHANGES).where(own).select("cluster_id").distinct()
    roles = voted.unionByName(registered).distinct().join(of_zookeeper, "cluster_id", "left_anti")
    return by_cluster(NodeRole, top_of_cluster(roles, [F.col("node_id"), F.col("role")], _MOST_KINDS))


def evidence_holes(source: Source) -> dict[str, tuple[CountedHole, ...]]:
    """Gaps, spans that are too coarse, hours between two files of a log that no file speaks of, and outages of a
    capture: of each cluster and cause the longest, with how many there are."""
    is_outage = F.col("gap_reason").eqNullSafe(quality.NOT_CAPTURED)
    is_log = F.col("source_kind").isin(*bronze.LOG_KINDS)
    rows = source.read(quality.EVIDENCE_COVERAGE).where(is_log | is_outage)
    columns = ("cluster_id", "cause", "broker_id", "source_kind", "reason", "level_floor", "from_ms", "to_ms")
    stated = spanned(rows.where("coverage <> 'covered'")).withColumns(
        {"cause": F.when(is_outage, F.col("gap_reason")).otherwise(F.col("coverage")), "reason": F.col("gap_reason")}
    )
    log = Window.partitionBy("cluster_id", "source_kind", "broker_id").orderBy("valid_from", "valid_to", "source_file")
    before = F.max("valid_to").over(log.rowsBetween(Window.unboundedPreceding, -1))
    nothing = F.lit(None).cast("string")
    silent = (
        rows.where("coverage = 'covered' AND broker_id >= 0")
        .withColumns({"cause": F.lit("silence"), "reason": nothing, "level_floor": nothing})
        .withColumns({"from_ms": ms(before), "to_ms": ms("valid_from")})
        .where(F.col("to_ms") - F.col("from_ms") > _ROLLED_EVERY_MS)
    )
    counted = Window.partitionBy("cluster_id", "cause")
    every = stated.select(*columns).unionByName(silent.select(*columns)).withColumn("total", F.count("*").over(counted))
    length = (F.col("to_ms") - F.col("from_ms")).desc()
    order = [length, F.col("from_ms"), F.col("broker_id"), F.col("source_kind"), F.col("level_floor")]
    longest = top(every, ["cluster_id", "cause"], order, source.limits.groups)
    ordered = longest.orderBy("cluster_id", "cause", "from_ms", "broker_id", "source_kind", "to_ms")
    return by_cluster(CountedHole, ordered)


def sentence(limit: Limit) -> str:
    """The limit as one sentence in plain English; times in UTC."""
    name, when = _NAMES.get(limit.source_kind, words.named(limit.source_kind)), _when(limit)
    reason = _REASONS.get(limit.reason or "", "a gap")
    template = _SENTENCES[limit.cause]
    if limit.cause == "missing":
        template = _MISSING.get(limit.source_kind, template)
    return template.format(
        name=name,
        of=f" of {_brokers(limit.brokers)}" if limit.brokers else "",
        when=when,
        why=limit.why,
        captured=_CAPTURED.get(limit.source_kind, f"the {name}"),
        floor=words.visible(limit.level_floor or ""),
        are="are most likely" if limit.reason == "missing_period" else "are",
        gap=f"{when[:-1]}; {reason})" if when else f" ({reason})",
    )


def _brokers(ids: Sequence[int]) -> str:
    return f"broker{'s' if len(ids) > 1 else ''} {words.listing(map(str, ids), 12)}"


def _when(limit: Limit) -> str:
    if limit.from_ms is None or limit.to_ms is None:
        return ""
    is_one_day = words.same_day([limit.from_ms, limit.to_ms])
    end = (words.clock if is_one_day else words.instant)(limit.to_ms)
    lasted = words.duration(limit.to_ms - limit.from_ms)
    return f" from {words.instant(limit.from_ms)} to {end} UTC ({lasted})"


SECTION: Final = Section("coverage/limits", gather, EvidenceLimits(), view)
