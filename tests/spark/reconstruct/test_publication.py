"""Gold is written, audited, then published: what an audit refuses replaces nothing and is kept beside the tables."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from checks.pipeline import audit_gold
from checks.registry import Registry, registry
from ingest.lake.delta import Lake, PinnedLake
from ingest.lake.plans import union
from ingest.lake.tables.gold import AVAILABILITY_INTERVALS, LEADER_ELECTIONS, LEADERSHIP_OVERLAPS
from ingest.lake.tables.kept import KEPT_TABLES, RUNS
from jobs import maintain_job
from jobs.reconstruct_job import refusals
from reconstruct.engine.publication import REFUSED, Publication, Refused, no_audit
from reconstruct.kept import last_run
from reconstruct.pipeline import ReconstructReport
from tests.support.lakes.rows import at
from tests.support.lakes.story import Story

WHERE = {"cluster_id": "c", "topic": "orders", "topic_incarnation": "orders-1", "partition_id": 0, "model_version": "2"}


def spans(spark, *given):
    """Rows of gold.availability_intervals as they are staged: the schema of the table, every column nullable."""
    names = AVAILABILITY_INTERVALS.column_names
    made = [
        {
            **dict.fromkeys(names),
            **WHERE,
            "kind": kind,
            "sequence": sequence,
            "valid_from": at(begin),
            "valid_to": at(end),
            "brokers": [],
            "evidence": evidence,
        }
        for kind, sequence, begin, end, evidence in given
    ]
    rows = [tuple(row[name] for name in names) for row in made]
    return spark.createDataFrame(rows, _nullable(AVAILABILITY_INTERVALS.struct))


def _nullable(struct):
    copy = type(struct).fromJson(struct.jsonValue())
    for field in copy.fields:
        field.nullable = True
    return copy


@pytest.fixture(autouse=True)
def _few_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of gold's checks those of the tables that are offered here: every reconstruction is audited by all of them."""
    offered = {AVAILABILITY_INTERVALS.full_name, LEADERSHIP_OVERLAPS.full_name}
    few = Registry((), tuple(each for each in registry().passes if offered.issuperset(each.reads)))
    monkeypatch.setattr("checks.pipeline.registry", lambda: few)


@pytest.fixture
def published(lake: Lake) -> Lake:
    """A lake whose gold was published by an earlier run: one interval without a leader."""
    story = Story("c")
    story.add(
        AVAILABILITY_INTERVALS,
        topic="orders",
        topic_incarnation="orders-1",
        kind="offline",
        valid_from=at(1),
        valid_to=at(2),
        evidence=["r1"],
    )
    story.write(lake)
    return lake


def kept(lake: Lake) -> list[tuple[str, int, object]]:
    rows = lake.read(AVAILABILITY_INTERVALS).select("kind", "sequence", "valid_from").collect()
    return sorted((row["kind"], row["sequence"], row["valid_from"].replace(tzinfo=None)) for row in rows)


def test_what_the_audit_finds_sound_replaces_the_former_rows(spark, published, tmp_path):
    gold = Publication(published)
    gold.offer(
        AVAILABILITY_INTERVALS, spans(spark, ("offline", 0, 5, 6, ["r2"]), ("under_replicated", 0, 5, 9, ["r3"]))
    )
    assert gold.publish(lambda candidate: audit_gold(candidate, lambda _: None), ["c"]) == Refused()
    assert [row[:2] for row in kept(published)] == [("offline", 0), ("under_replicated", 0)]
    assert not (tmp_path / "lake" / REFUSED).exists()


def test_what_breaks_a_critical_check_leaves_every_table_as_it_was_and_is_kept_beside(spark, published, tmp_path):
    before = kept(published)
    gold = Publication(published)
    doubled = [("offline", 0, 5, 6, ["r2"]), ("offline", 0, 5, 6, ["r2"]), ("offline", 1, 7, 8, [])]
    gold.offer(AVAILABILITY_INTERVALS, spans(spark, *doubled))
    gold.offer(LEADERSHIP_OVERLAPS, published.read(LEADERSHIP_OVERLAPS))
    told = []
    problems = gold.publish(lambda candidate: audit_gold(candidate, told.append), ["c"]).problems
    assert kept(published) == before
    assert any("unique_key is broken by 1 of 3" in sentence for sentence in problems), problems
    (evidence,) = [sentence for sentence in problems if "evidence_not_empty" in sentence]
    assert evidence.startswith("gold.availability_intervals: ")
    assert '"sequence":1' in evidence
    refused = spark.read.parquet(str(tmp_path / "lake" / REFUSED / AVAILABILITY_INTERVALS.full_name))
    assert refused.count() == 3
    assert (tmp_path / "lake" / REFUSED / LEADERSHIP_OVERLAPS.full_name).is_dir()
    assert told[0].startswith("audit: ")


def test_a_cluster_that_is_refused_keeps_no_other_from_being_published(spark, lake):
    """Of five clusters two break a check: the others are published, and what a table's own write does for them."""
    names = [f"c{number}" for number in range(5)]
    rows = spans(spark, ("offline", 0, 5, 6, ["r2"])).drop("cluster_id")
    before, after = (
        union([rows.withColumns({"cluster_id": F.lit(name), "sequence": F.lit(sequence)}) for name in names])
        for sequence in (7, 0)
    )
    lake.overwrite(before, AVAILABILITY_INTERVALS)
    gold, own = Publication(lake), []
    broken = F.col("cluster_id").isin("c1", "c4")
    bent = after.withColumn("evidence", F.when(broken, F.array().cast("array<string>")).otherwise(F.col("evidence")))
    gold.offer(AVAILABILITY_INTERVALS, bent)
    overlaps = lake.read(LEADERSHIP_OVERLAPS)
    gold.offer(LEADERSHIP_OVERLAPS, overlaps, lambda given, _: own.append(given))
    gold.offer_together([(LEADER_ELECTIONS, lake.read(LEADER_ELECTIONS), None)], lambda: own.append("all together"))
    refused = gold.publish(lambda candidate: audit_gold(candidate, lambda _: None), names)
    assert refused.clusters == {"c1", "c4"}
    (sentence,) = refused.problems
    assert "evidence_not_empty is broken by 2 of 5" in sentence
    held = lake.read(AVAILABILITY_INTERVALS).select("cluster_id", "sequence").collect()
    assert sorted(map(tuple, held)) == [("c0", 0), ("c1", 7), ("c2", 0), ("c3", 0), ("c4", 7)]
    assert [given.cluster_ids for given in own] == [{"c0", "c2", "c3"}]
    kept_beside = spark.read.parquet(f"{lake.root}/{REFUSED}/{AVAILABILITY_INTERVALS.full_name}")
    assert {row["cluster_id"] for row in kept_beside.collect()} == {"c1", "c4"}


@pytest.mark.parametrize("is_any_new", [True, False])
def test_rows_that_are_published_already_are_not_audited_again(spark, published, is_any_new):
    known, new = (spans(spark, ("offline", 0, 5, 6, [])).withColumn("topic", F.lit(topic)) for topic in ("a", "b"))
    gold = Publication(published)
    if is_any_new:
        gold.offer_together([(AVAILABILITY_INTERVALS, known.unionByName(new), new)], lambda: None)
    else:
        published.overwrite(known, AVAILABILITY_INTERVALS)
        gold.leave([AVAILABILITY_INTERVALS])
    problems = gold.publish(lambda candidate: audit_gold(candidate, lambda _: None), ["c"]).problems
    assert [sentence.split(" (")[0] for sentence in problems] == [
        "gold.availability_intervals: evidence_not_empty is broken by 1 of 1"
    ] * is_any_new


def test_a_null_where_the_table_forbids_one_is_a_sentence_and_no_exception(spark, published):
    gold = Publication(published)
    gold.offer(AVAILABILITY_INTERVALS, spans(spark, (None, 0, 5, 6, ["r2"])))
    problems = gold.publish(lambda candidate: audit_gold(candidate, lambda _: None), ["c"]).problems
    assert any("kind_not_null is broken by 1 of 1" in sentence for sentence in problems), problems


def test_readers_see_the_former_rows_until_all_are_published(spark, published):
    gold = Publication(published)
    gold.offer(AVAILABILITY_INTERVALS, spans(spark, ("offline", 0, 5, 6, ["r2"])))
    before, seen = kept(published), []

    def look(candidate: Lake) -> tuple[str, ...]:
        seen.append((kept(published), [row["valid_from"] for row in candidate.read(AVAILABILITY_INTERVALS).collect()]))
        assert candidate.read(LEADERSHIP_OVERLAPS).count() == 0  # not offered: as it is
        return no_audit(candidate)

    assert gold.publish(look, ["c"]) == Refused()
    assert seen[0][0] == before
    assert kept(published) != before


def test_readers_see_what_the_last_run_left_until_another_has_ended(spark, published):
    """Whatever a run wrote by then, in its midst or before it was cut off; upkeep and a table restored are seen."""
    published.ensure(KEPT_TABLES)
    last_run.note(published, 1, last_run.bronze_versions(published), {})
    before, path = kept(published), published.path(AVAILABILITY_INTERVALS)
    new = spans(spark, ("offline", 0, 5, 6, ["r2"]), ("under_replicated", 0, 5, 9, ["r3"]))

    def seen() -> list[list[tuple[str, int, object]]]:
        """By each way to read: at once, pinned, by name."""
        lake = last_run.published(Lake(spark, published.root))
        lake.register([AVAILABILITY_INTERVALS])
        named = Lake(spark, published.root)
        named.read = lambda spec: spark.table(spec.full_name)
        assert lake.rows_count(AVAILABILITY_INTERVALS) == len(kept(lake))
        return [kept(lake), kept(PinnedLake(lake)), kept(named)]

    assert seen() == [before] * 3
    published.overwrite(new.repartition(2), AVAILABILITY_INTERVALS)
    after = kept(published)
    assert after != before
    assert seen() == [before] * 3
    spark.sql(f"OPTIMIZE delta.`{path}`")
    maintain_job.run(spark, maintain_job.Params(published.root, keep_days=0))
    assert seen() == [before] * 3, "a run was cut off before, and its files are kept for whoever reads"
    last_run.note(published, 2, last_run.bronze_versions(published), {})
    assert seen() == [after] * 3
    spark.sql(f"RESTORE TABLE delta.`{path}` TO VERSION AS OF 1")
    assert seen() == [before] * 3, "who restores a table wants to see it"


def test_the_newest_run_is_the_last_also_where_the_clock_was_set_back(spark, published):
    published.ensure(KEPT_TABLES)
    last_run.note(published, 1, last_run.bronze_versions(published), {})
    ahead = published.read(RUNS).withColumn("ended_at", F.expr("current_timestamp() + INTERVAL 3 HOURS"))
    published.overwrite(ahead, RUNS)
    published.overwrite(published.read(AVAILABILITY_INTERVALS).limit(0), AVAILABILITY_INTERVALS)
    last_run.note(published, 2, last_run.bronze_versions(published), {})
    assert last_run.last_run(published, {}).number == 2
    assert kept(last_run.published(published)) == []
    assert last_run.hours_to_keep(published) == 0
    published.overwrite(spans(spark, ("offline", 0, 5, 6, ["r2"])), AVAILABILITY_INTERVALS)
    assert last_run.hours_to_keep(published) == 1


def test_a_table_is_offered_once(spark, published):
    gold = Publication(published)
    gold.offer(AVAILABILITY_INTERVALS, spans(spark, ("offline", 0, 5, 6, ["r2"])))
    with pytest.raises(ValueError, match=r"gold.availability_intervals is offered already"):
        gold.offer(AVAILABILITY_INTERVALS, published.read(AVAILABILITY_INTERVALS))


def test_the_job_says_what_was_refused_and_where_it_lies():
    assert refusals(ReconstructReport()) == ()
    told = ("gold.divergences: unique_key is broken by 1 of 2",)
    gate, place = refusals(ReconstructReport(refused=told, clusters_refused=("a", "b")))
    assert gate == "gate failed: gold.divergences: unique_key is broken by 1 of 2"
    assert "gold of a, b stays as it was" in place
    assert "_refused" in place
