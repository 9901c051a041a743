"""Folds that are done again only for the keys of which the evidence, or an answer to what they asked, is another.

A step declares a :class:`Fold` and hands it evidence; :class:`KeptFolds` decides what of it is to be done. Of every key
is kept a hash over its evidence in any order, what its fold asked of the facts it was given
(:mod:`reconstruct.kept.asking`), and a hash of the answers. Where all three are the same again, the rows that the
tables hold of the key are those that the fold would give.

Of a lake that is not small, evidence is made only of the topics of which anything may be another
(:mod:`reconstruct.kept.topics`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, TypeVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingest.lake.delta import Lake, side_by_side
from ingest.lake.plans import union, without
from ingest.lake.tables import TableSpec
from ingest.lake.tables.gold import DIVERGENCES
from ingest.lake.tables.kept import FOLDED_KEYS, JUDGED_ROWS, OF_KEY, TOPIC_HASHES
from reconstruct.engine.folds import evidence_columns, fold, map_rows, rows_of, select_evidence, table_columns
from reconstruct.engine.rows import KIND, TABLE, VERDICTS, Row, row_of, values_of
from reconstruct.engine.staging import Staging
from reconstruct.kept.asking import Answers, Asked, Facts
from reconstruct.kept.hashes import hash_of, with_hashes
from reconstruct.kept.topics import ALL_TOPICS, TOPIC_KEY, Topics, changed_topics, topic_hashes
from reconstruct.time.instants import HOUR_US

F_ = TypeVar("F_", bound=Facts)
#: Pseudo table: keys that have no evidence any more.
_GONE: Final = "gone"
#: What was over for so long nothing that happens in its cluster bears on, µs.
_SETTLED_US: Final = 900_000_000
#: Of what a fold gives, the rows that say which keys are done again.
_DONE: Final = (FOLDED_KEYS.full_name, _GONE)


@dataclass(frozen=True)
class KeptKey:
    """What :data:`FOLDED_KEYS` has of a key: as a row beside its evidence it says what that was."""

    evidence_count: int
    evidence_hash: tuple[int, ...]
    asked: tuple[str, ...]
    answers: str


def settled_by(last: int) -> int:
    """By when a key of which nothing is later than ``last`` was over and done with, µs: at a full hour, so that many
    keys share what is known of their cluster until then."""
    return ((last + _SETTLED_US) // HOUR_US + 1) * HOUR_US


@dataclass(frozen=True)
class Fold(Generic[F_]):
    """How a step makes rows of all evidence of each key.

    ``key`` are columns of the evidence, of all its tables and of :data:`FOLDED_KEYS`. ``function`` is given the rows of
    one key and the facts of its cluster, and depends on nothing else; ``unknown`` makes the facts of a cluster of which
    none are known. ``tables`` are those that this step alone makes; with ``judges`` it also gives findings, verdicts,
    and rows of the pseudo tables ``beside``.

    ``over_by`` says of rows of evidence by when their key was over and done with, µs, None where it may go on: its
    function is given the facts of before that alone, so that nothing later has it done anew.
    """

    name: str
    key: tuple[str, ...]
    tables: tuple[TableSpec, ...]
    function: Callable[[Sequence[Row], F_], Iterable[Row]]
    unknown: Callable[[str], F_]
    judges: bool = True
    beside: tuple[str, ...] = ()
    over_by: Callable[[Sequence[Row]], int | None] = lambda _: None

    def __post_init__(self) -> None:
        """Rows are replaced, and audited, key by key."""
        if any(not set(self.key).issubset(spec.key) for spec in self.tables):
            raise ValueError(f"{self.name}: a table whose key lacks some of {self.key}")

    @property
    def columns(self) -> dict[str, str]:
        """Of all rows that the fold gives, what is kept of each key among them."""
        judged = (DIVERGENCES,) if self.judges else ()
        return table_columns(*self.tables, *judged) | {column.name: column.type for column in OF_KEY}


@dataclass(frozen=True)
class Folded:
    """The rows of a fold: those made ``now``, and of the keys that are not in ``redone`` those of before. ``redone`` is
    None where all were made now."""

    fold: Fold[Any]
    now: DataFrame
    redone: DataFrame | None
    redone_count: int
    _lake: Lake

    @property
    def is_any_new(self) -> bool:
        """Whether any row may be another than before."""
        return self.redone is None or self.redone_count > 0

    def rows(self, spec: TableSpec) -> DataFrame:
        """All rows of one of the fold's tables."""
        return self._all(spec, rows_of(self.now, spec))

    def rows_now(self, spec: TableSpec) -> DataFrame | None:
        """The rows of the keys that were done now; None where all were."""
        return None if self.redone is None else rows_of(self.now, spec)

    def write(self, specs: Sequence[TableSpec]) -> None:
        """Bring some of the fold's tables in line with :meth:`rows`."""
        if self.redone is None:
            self._lake.overwrite_parts(self.now, TABLE, specs)
        else:
            self._lake.replace_keys_of_parts(self.now, TABLE, self.redone, specs)

    @property
    def judged(self) -> DataFrame:
        """Findings, verdicts and what is beside them, with ``table_name``: of all keys."""
        return self._all(JUDGED_ROWS, self.judged_now)

    @property
    def judged_now(self) -> DataFrame:
        """The same, of the keys that were done now."""
        wanted = self.now.where(F.col(TABLE).isin(DIVERGENCES.full_name, VERDICTS, *self.fold.beside))
        nothing = F.lit(None)
        own = (
            F.lit(self.fold.name).alias(c.name)
            if c.name == "step"
            else (F.col(c.name) if c.name in self.now.columns else nothing.cast(c.type)).alias(c.name)
            for c in JUDGED_ROWS.columns
        )
        return wanted.select(*own)

    @property
    def keys_now(self) -> DataFrame:
        """What is kept of each key that was done now."""
        rows = self.now.where(F.col(TABLE) == FOLDED_KEYS.full_name)
        others = [column for column in FOLDED_KEYS.columns if column.name not in rows.columns]
        of_step = {column.name: F.lit(None).cast(column.type) for column in others} | {"step": F.lit(self.fold.name)}
        return rows.withColumns(of_step).select(*FOLDED_KEYS.column_names)

    def _all(self, spec: TableSpec, now: DataFrame) -> DataFrame:
        if self.redone is None:
            return now
        before = self._lake.read(spec)
        if "step" in spec.column_names:
            before = before.where(F.col("step") == self.fold.name)
        return without(before, self.redone).select(*now.columns).unionByName(now)


@dataclass(frozen=True)
class Sources:
    """What a fold's evidence is made of: ``evidence`` makes it, of all topics or some; ``rows`` are those that it
    follows from, by topic (:func:`reconstruct.kept.topics.topic_hashes`); ``records`` what of log records is another
    than at the last run, by topic too, None where that is not known
    (:meth:`reconstruct.kept.record_rows.RecordRows.differing`); ``folds`` those of which it reads the tables."""

    evidence: Callable[[Topics], DataFrame]
    rows: Callable[[], Sequence[DataFrame]] | None = None
    records: Callable[[], DataFrame | None] | None = None
    folds: Sequence[Folded] = ()


class KeptFolds:
    """The folds of one run. ``is_kept`` says that the lake holds what the last run left of them, and nothing else has
    written its tables; False also where it knew none of the clusters. In a small lake all are done again."""

    def __init__(self, lake: Lake, stage: Staging, is_kept: bool) -> None:
        self._lake, self._stage = lake, stage
        # of a small one to fold all keys costs less than to know which are others, and of which topics evidence is
        self._is_kept = is_kept and not stage.is_in_memory
        self._is_by_topic = not stage.is_in_memory
        self._folded: list[Folded] = []
        self._hashed_topics: list[DataFrame] = []

    def run(self, step: Fold[F_], sources: Sources, facts: Mapping[str, F_]) -> Folded:
        """The rows of a fold; ``facts`` by cluster. Each is staged: it is made once."""
        known = dict(facts)
        topics = self._topics(step, sources, known)
        hashed = with_hashes(sources.evidence(topics), step.key)
        if self._is_kept:
            kept = topics.of(self._kept(FOLDED_KEYS, step))
            # beside the evidence, of which it is no part: it has no hashes
            hashed = union([hashed, select_evidence(kept, step.key, evidence_columns(KeptKey), KeptKey)])
        now = self._stage.keep(_fold(step, hashed, known), step.name)
        redone, count = None, 0
        if self._is_kept:
            count = self._stage.rows_count(step.name, *_DONE)
            if not count:
                now = self._lake.spark.createDataFrame([], now.schema)
            redone = now.where(F.col(TABLE).isin(*_DONE)).select(*step.key)
        folded = Folded(step, now, redone, count, self._lake)
        self._folded.append(folded)
        return folded

    def planned(self, sources: Sources) -> Sources:
        """The same, with the plan of all evidence made, where it will be of all topics."""
        if self._is_by_topic:
            return sources
        evidence = sources.evidence(ALL_TOPICS)
        return replace(sources, evidence=lambda topics: topics.of(evidence))

    def _topics(self, step: Fold[F_], sources: Sources, facts: Mapping[str, F_]) -> Topics:
        """Those of which a key may be another than before: by its sources, by a fold before it, or by an answer. All,
        where that is not known."""
        if not self._is_by_topic:
            return ALL_TOPICS
        changed = []
        if sources.rows is not None:
            of_step = F.lit(step.name).alias("step")
            hashed = topic_hashes(sources.rows()).select(of_step, "*")
            self._hashed_topics.append(self._stage.keep(hashed, f"{step.name}_topics"))
            changed.append(changed_topics(self._hashed_topics[-1], self._kept(TOPIC_HASHES, step)))
        redone = [each.redone for each in sources.folds if each.redone is not None]
        if not self._is_kept or len(redone) < len(sources.folds):
            return ALL_TOPICS
        if sources.records is not None:
            others = sources.records()
            if others is None:
                return ALL_TOPICS
            changed.append(others.where("topic IS NOT NULL").select(*TOPIC_KEY))
        changed += [keys.select(*TOPIC_KEY) for keys in redone]
        unknown, kept = step.unknown, self._kept(FOLDED_KEYS, step).select(*TOPIC_KEY, "asked", "answers")
        names = dict.fromkeys(TOPIC_KEY, "string")
        # those of one instant one after the other: what was known before it is made out once
        kept = kept.sortWithinPartitions(F.get("asked", F.lit(0)))
        changed.append(map_rows(kept, names, lambda rows: _answered_anew(rows, TOPIC_KEY, facts, unknown)))
        return Topics.some(union(changed), self._stage, step.name)

    def _kept(self, spec: TableSpec, step: Fold[F_]) -> DataFrame:
        return self._lake.read(spec).where(F.col("step") == step.name)

    def write(self) -> None:
        """Keep what the next run goes on from, where any of it is another than before."""
        done = [folded for folded in self._folded if folded.is_any_new]
        judging = [folded for folded in done if folded.fold.judges]
        kept = [(FOLDED_KEYS, [(f, f.keys_now) for f in done]), (JUDGED_ROWS, [(f, f.judged_now) for f in judging])]
        side_by_side(lambda each: self._write(*each), [(spec, parts) for spec, parts in kept if parts])
        if self._hashed_topics:
            self._lake.overwrite(union(self._hashed_topics), TOPIC_HASHES)
        elif self._lake.rows_count(TOPIC_HASHES):
            # they are of an earlier run than the keys
            self._lake.overwrite(self._lake.read(TOPIC_HASHES).where("false"), TOPIC_HASHES)

    def _write(self, spec: TableSpec, parts: Sequence[tuple[Folded, DataFrame]]) -> None:
        rows = union([part for _, part in parts])
        if not self._is_kept:
            self._lake.overwrite(rows, spec)
            return
        gone = [f.redone.withColumn("step", F.lit(f.fold.name)) for f, _ in parts if f.redone is not None]
        self._lake.replace_keys(rows, union(gone), spec)

    @property
    def told(self) -> dict[str, int]:
        """How many keys of each step were done again; none where all were."""
        return {each.fold.name: each.redone_count for each in self._folded if each.redone is not None}


def rows_of_all_keys(step: Fold[F_], evidence: DataFrame, facts: Mapping[str, F_]) -> DataFrame:
    """The rows of a fold of which nothing is kept."""
    return _fold(step, with_hashes(evidence, step.key), dict(facts))


def _fold(step: Fold[F_], hashed: DataFrame, facts: Mapping[str, F_]) -> DataFrame:
    return fold(hashed, step.key, step.columns | _types(step, hashed), for_each_key(step, facts))


def for_each_key(step: Fold[F_], facts: Mapping[str, F_]) -> Callable[[Iterable[Row]], Iterator[Row]]:
    """The fold's function with what is kept of the key as its last row. Where a row of the evidence is what was kept of
    the key (:class:`KeptKey`), it gives nothing of one that is as it was, and of one without other evidence that it is
    gone."""
    unknown, key = step.unknown, step.key
    answers: dict[str, Answers[F_]] = {}

    def noting(evidence: Iterable[Row]) -> Iterator[Row]:
        rows = list(evidence)
        whose = {name: rows[0][name] for name in key}
        cluster_id = rows[0]["cluster_id"]
        of_cluster = answers.get(cluster_id)
        if of_cluster is None:
            of_cluster = answers[cluster_id] = Answers(facts.get(cluster_id) or unknown(cluster_id))
        before = values_of(KeptKey, rows)
        if before:
            rows = [row for row in rows if row[KIND] != KeptKey.__name__]
        if not rows:
            yield {TABLE: _GONE}
            return
        hashed = tuple(hash_of(rows))
        if any(kept == KeptKey(len(rows), hashed, kept.asked, of_cluster.fingerprint(kept.asked)) for kept in before):
            return
        over_by = step.over_by(rows)
        asked = Asked(over_by)
        for row in step.function(rows, of_cluster.before(over_by).facts.noting(asked)):
            is_keyed = not row.keys().isdisjoint(whose.keys())
            if is_keyed and any(row.get(name, value) != value for name, value in whose.items()):
                raise ValueError(f"{row[TABLE]}: a row of another key than {whose}, by which it could not be replaced")
            yield row
        questions = asked.questions()
        now = KeptKey(len(rows), hashed, tuple(questions), of_cluster.fingerprint(questions))
        yield {TABLE: FOLDED_KEYS.full_name, **row_of(now)}

    return noting


def _answered_anew(
    rows: Iterable[Row], key: Sequence[str], facts: Mapping[str, F_], unknown: Callable[[str], F_]
) -> Iterator[Row]:
    """The keys of which an answer is another."""
    answers = _AnswersNow(facts, unknown)
    return ({name: row[name] for name in key} for row in rows if not answers.are_the_same(row))


class _AnswersNow:
    """What the clusters' facts answer now to what was asked."""

    def __init__(self, facts: Mapping[str, F_], unknown: Callable[[str], F_]) -> None:
        self._facts, self._unknown = facts, unknown
        self._of_clusters: dict[str, Answers[Any]] = {}

    def are_the_same(self, row: Row) -> bool:
        """Whether they are those that were kept, ``row`` of :data:`FOLDED_KEYS`."""
        cluster_id = row["cluster_id"]
        known = self._of_clusters.get(cluster_id)
        if known is None:
            known = Answers(self._facts.get(cluster_id) or self._unknown(cluster_id))
            self._of_clusters[cluster_id] = known
        return bool(known.fingerprint(row["asked"]) == row["answers"])


def _types(step: Fold[Any], evidence: DataFrame) -> dict[str, str]:
    """The columns of a fold's key, with their types."""
    return {name: evidence.schema[name].dataType.simpleString() for name in step.key}
