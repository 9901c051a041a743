"""``sql`` reads the lake and nothing else: what was found to run, and what else may be tried, is refused unrun."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from dashboards.questions.question import questions
from jobs.sql.read_only import reading_only, refusal
from tests.figures import Figure
from tests.support.statements import REFUSED

READ = [
    "SELECT 1",
    "VALUES (1)",
    "TABLE gold.divergences",
    "FROM gold.divergences SELECT rule_id",
    "(SELECT 1) UNION (SELECT 2) INTERSECT SELECT 3 EXCEPT ALL SELECT 4",
    "SELECT * FROM spark_catalog.GOLD.Divergences",
    "WITH a AS (SELECT 1 AS n), b AS (SELECT * FROM a) SELECT * FROM b JOIN A USING (n)",
    "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 5) SELECT * FROM c",
    "SELECT rule_id, count(*) FROM gold.divergences d WHERE EXISTS (SELECT * FROM gold.truncations t WHERE t.topic ="
    " d.topic) AND topic IN (SELECT topic FROM gold.isr_flapping) GROUP BY ALL HAVING count(*) > (SELECT 1)"
    " ORDER BY ALL LIMIT 3 OFFSET 1",
    "SELECT rule_id, row_number() OVER (PARTITION BY rule_id ORDER BY rule_id), count(*) OVER (ORDER BY rule_id ROWS"
    " BETWEEN 1 PRECEDING AND CURRENT ROW) FROM gold.divergences",
    "SELECT sum(n) OVER w FROM VALUES (1) t(n) WINDOW w AS (ORDER BY n)",
    "SELECT n, e FROM VALUES (array(1)) t(n) LATERAL VIEW OUTER explode(n) x AS e",
    "SELECT * FROM VALUES (array(1)) t(n), LATERAL explode(n)",
    "SELECT * FROM VALUES (1) t(n), LATERAL (SELECT n + 1)",
    "SELECT posexplode(array(1, 2))",
    "SELECT stack(2, 1, 2)",
    "SELECT json_tuple('{\"a\": 1}', 'a')",
    "SELECT * FROM gold.divergences TABLESAMPLE (10 PERCENT)",
    "SELECT * FROM VALUES ('a', 1) t(k, n) PIVOT (max(n) FOR k IN ('a'))",
    "SELECT * FROM VALUES (1, 2) t(a, b) UNPIVOT (x FOR y IN (a, b))",
    "SELECT k, grouping(k), sum(n) FROM VALUES ('a', 1) t(k, n) GROUP BY CUBE(k)",
    "SELECT k FROM VALUES ('a', 1) t(k, n) GROUP BY GROUPING SETS ((k), ())",
    "SELECT /*+ BROADCAST(u), REPARTITION(2) */ * FROM VALUES (1) t(n) JOIN VALUES (1) u(n) USING (n)",
    "SELECT * EXCEPT (n) FROM VALUES (1, 2) t(n, m)",
    "SELECT DISTINCT t.* FROM VALUES (1) t(n) NATURAL JOIN VALUES (1) u(n) SORT BY n",
    "SELECT transform(array(1), x -> x + 1), aggregate(array(1), 0, (a, x) -> a + x), map('a', 1)['a'], array(1)[0]",
    "SELECT CASE WHEN n IS NULL THEN 1 ELSE -n END, CAST(n AS STRING), n::bigint, try_cast('x' AS INT), n <=> 1,"
    " n || 'x', n BETWEEN 1 AND 2, 'x' LIKE 'x%', 'x' RLIKE 'x', n IN (1, 2), NOT true, n DIV 2, n % 2, n != 3,"
    " n <> 3 FROM VALUES (1) t(n)",
    "SELECT INTERVAL 1 DAY, DATE '2026-01-01', extract(YEAR FROM DATE '2026-01-01'), current_date, current_timestamp(),"
    " trim(BOTH 'x' FROM 'x'), position('a' IN 'ba'), substring('abc' FROM 1), overlay('abc' PLACING 'x' FROM 1)",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY n), count(DISTINCT n), any_value(n) IGNORE NULLS,"
    " count(*) FILTER (WHERE n > 1), max_by(n, n), collect_list(n), approx_percentile(n, 0.5) FROM VALUES (1) t(n)",
    "SELECT uuid(), typeof(1), version(), assert_true(true), rand() < 2, sha2('x', 256),"
    " parse_url('http://x/y', 'HOST')",
    "SELECT regexp_extract('a1', '[0-9]', 0), split('a,b', ','), date_trunc('HOUR', now()), from_json('{}', 'a INT')",
    "FROM gold.divergences |> WHERE rule_id = 'R01' |> AGGREGATE count(*) AS n GROUP BY topic |> EXTEND n + 1 AS m"
    " |> SET n = 2 |> DROP m |> ORDER BY n |> LIMIT 3 |> AS t |> SELECT t.n",
    "SELECT * FROM gold.divergences VERSION AS OF 0",
    "SELECT * FROM leader_at(TIMESTAMP '2026-11-21')",
    "SELECT d.topic, l.leader FROM gold.divergences d, LATERAL Leader_at(d.detected_at) l",
    "DESCRIBE FUNCTION leader_at",
    "SHOW TABLES IN gold",
    "SHOW TABLES",
    "SHOW SCHEMAS",
    "SHOW COLUMNS IN gold.divergences",
    "SHOW TBLPROPERTIES gold.divergences",
    "SHOW FUNCTIONS LIKE 'abs'",
    "DESC gold.divergences",
    "DESCRIBE EXTENDED gold.divergences",
    "DESCRIBE TABLE gold.divergences rule_id",
    "DESCRIBE SCHEMA gold",
    "DESCRIBE FUNCTION abs",
    "DESCRIBE QUERY SELECT 1",
    "DESCRIBE HISTORY gold.divergences",
    "DESCRIBE DETAIL gold.divergences",
    "EXPLAIN SELECT 1",
    "EXPLAIN FORMATTED SELECT * FROM gold.divergences",
]


@pytest.fixture(scope="module")
def session(spark, empty_lake_dir: Path, tmp_path_factory: pytest.TempPathFactory):
    """The session as ``sql`` has it; with a function and a view that somebody made in it."""
    from ingest.lake.delta import Lake
    from ingest.lake.tables import TABLES
    from jobs.sql.names import LakeNames

    root = tmp_path_factory.mktemp("read_only") / "lake"
    shutil.copytree(empty_lake_dir, root)
    LakeNames(spark, str(root)).name(["leader_at"])
    Lake(spark, str(root)).register(TABLES[f"gold.{name}"] for name in ("divergences", "truncations", "isr_flapping"))
    spark.udf.register("test_of_a_function_of_the_session", lambda number: number)
    spark.range(1).createOrReplaceTempView("view_of_the_session")
    before = spark.conf.get("spark.sql.runSQLOnFiles")
    with reading_only(spark):
        yield spark
    assert spark.conf.get("spark.sql.runSQLOnFiles") == before == "true"
    spark.catalog.dropTempView("view_of_the_session")
    spark.sql("DROP TEMPORARY FUNCTION test_of_a_function_of_the_session")


def test_more_than_the_110_statements_that_were_tried():
    assert len(set(REFUSED)) == len(REFUSED) > 110


@pytest.mark.parametrize("statement", REFUSED)
def test_what_does_more_than_read_the_lake_is_refused(session, statement, record_property: Any):
    refused = refusal(session, statement)
    assert refused is not None
    assert "read-only" in refused
    record_property(Figure.HOSTILE, 1)


@pytest.mark.parametrize("statement", READ)
def test_what_reads_the_lake_is_run(session, statement):
    assert refusal(session, statement) is None
    session.sql(statement)  # is a statement, and is analysed under these settings


def test_a_parameter_is_a_value(session):
    assert refusal(session, "SELECT * FROM gold.divergences WHERE topic = :topic AND partition_id = ?") is None
    assert refusal(session, "SELECT * FROM IDENTIFIER(:relation)") is not None
    assert refusal(session, "SELECT IDENTIFIER(:function)(1)") is not None


def test_saved_questions_only_read(session):
    assert {name: refused for name, each in questions().items() if (refused := refusal(session, each.sql))} == {}


def test_the_settings_refuse_files_by_themselves(session):
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        session.sql("SELECT * FROM text.`/etc/hostname`")


def test_the_environment_is_not_put_into_statements(session):
    assert session.sql("SELECT '${env:HOME}' AS home").collect()[0]["home"] == "${env:HOME}"
