"""``sql`` reads the lake and nothing else: what was found to run, and what else may be tried, is refused unrun."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dashboards.questions.question import questions
from jobs.sql.read_only import reading_only, refusal

_SCRIPT = "SELECT TRANSFORM(a) USING 'tee FILE' AS (b STRING) FROM VALUES ('x') t(a)"
_JAVA = "reflect('java.lang.System', 'setProperty', 'a', 'b')"

SCRIPTS = [
    _SCRIPT,
    f"WITH c AS ({_SCRIPT}) SELECT * FROM c",
    f"WITH a AS (WITH b AS ({_SCRIPT}) SELECT * FROM b) SELECT * FROM a",
    f"SELECT ({_SCRIPT})",
    f"SELECT 1 WHERE EXISTS ({_SCRIPT})",
    f"SELECT 1 WHERE 'x' IN ({_SCRIPT})",
    f"SELECT 1 WHERE 'x' NOT IN ({_SCRIPT})",
    f"SELECT * FROM VALUES (1) t(n), LATERAL ({_SCRIPT})",
    f"SELECT * FROM ({_SCRIPT})",
    f"SELECT * FROM VALUES (1) t(n) JOIN ({_SCRIPT}) u ON true",
    f"SELECT 1 UNION ALL ({_SCRIPT})",
    f"(({_SCRIPT}))",
    f"SELECT CASE WHEN EXISTS ({_SCRIPT}) THEN 1 END",
    f"SELECT max(n) FROM VALUES (1) t(n) HAVING max(n) > (SELECT count(*) FROM ({_SCRIPT}))",
    f"SELECT n FROM VALUES (1) t(n) ORDER BY ({_SCRIPT})",
    f"SELECT sum(n) OVER (ORDER BY ({_SCRIPT})) FROM VALUES (1) t(n)",
    f"SELECT transform(array(1), x -> ({_SCRIPT}))",
    f"SELECT * FROM VALUES (1) t(n) LIMIT (SELECT count(*) FROM ({_SCRIPT}))",
    f"EXPLAIN {_SCRIPT}",
    f"EXPLAIN EXTENDED WITH c AS ({_SCRIPT}) SELECT * FROM c",
    f"DESCRIBE QUERY {_SCRIPT}",
    f"/* harmless */ {_SCRIPT} -- harmless",
    f"SELECT /*+ BROADCAST(c) */ * FROM ({_SCRIPT}) c",
    f"FROM ({_SCRIPT}) |> SELECT b",
    "FROM VALUES ('x') t(a) MAP a USING 'tee FILE' AS b",
    "FROM VALUES ('x') t(a) REDUCE a USING 'tee FILE' AS b",
    "FROM (FROM VALUES ('x') t(a) MAP a USING 'cat' AS b) REDUCE b USING 'tee FILE' AS c",
]
FUNCTIONS = [
    f"SELECT {_JAVA}",
    "SELECT java_method('java.lang.System', 'getenv', 'HOME')",
    "SELECT try_reflect('java.lang.System', 'getenv', 'HOME')",
    "SELECT REFLECT('java.lang.Thread', 'sleep', 1)",
    "SELECT `reflect`('java.lang.System', 'getenv', 'HOME')",
    f"SELECT (SELECT {_JAVA})",
    f"SELECT 1 WHERE {_JAVA} IS NULL",
    f"SELECT 1 WHERE EXISTS (SELECT {_JAVA})",
    f"SELECT 1 WHERE 'x' IN (SELECT {_JAVA})",
    f"WITH c AS (SELECT {_JAVA} AS r) SELECT 1",
    f"SELECT * FROM VALUES (1) t(n), LATERAL (SELECT {_JAVA})",
    f"SELECT * FROM VALUES ({_JAVA})",
    f"SELECT * FROM VALUES (1) t(n) JOIN VALUES (1) u(m) ON {_JAVA} = 'x'",
    f"SELECT count(*) FROM VALUES (1) t(n) GROUP BY {_JAVA}",
    f"SELECT count(*) FROM VALUES (1) t(n) HAVING {_JAVA} IS NULL",
    f"SELECT n FROM VALUES (1) t(n) ORDER BY {_JAVA}",
    f"SELECT n FROM VALUES (1) t(n) DISTRIBUTE BY {_JAVA}",
    f"SELECT count(*) FILTER (WHERE {_JAVA} IS NULL) FROM VALUES (1) t(n)",
    f"SELECT row_number() OVER (PARTITION BY {_JAVA} ORDER BY n) FROM VALUES (1) t(n)",
    f"SELECT row_number() OVER w FROM VALUES (1) t(n) WINDOW w AS (ORDER BY {_JAVA})",
    f"SELECT transform(array('x'), x -> {_JAVA})",
    f"SELECT CASE WHEN {_JAVA} IS NULL THEN 1 END",
    f"SELECT named_struct('a', {_JAVA}).a",
    f"SELECT explode(array({_JAVA}))",
    f"SELECT * FROM explode(array({_JAVA}))",
    f"SELECT * FROM VALUES (1) t(n) LATERAL VIEW explode(array({_JAVA})) e",
    f"SELECT * FROM VALUES ('a', 1) t(k, n) PIVOT (max({_JAVA}) FOR k IN ('a'))",
    f"SELECT 1 LIMIT length({_JAVA})",
    f"SELECT * FROM range(length({_JAVA}))",
    f"EXPLAIN SELECT {_JAVA}",
    f"DESCRIBE QUERY SELECT {_JAVA}",
    f"FROM VALUES (1) t(n) |> EXTEND {_JAVA} AS r",
    f"FROM VALUES (1) t(n) |> AGGREGATE max({_JAVA})",
    "SELECT IDENTIFIER('reflect')('java.lang.System', 'getenv', 'HOME')",
    "SELECT system.builtin.reflect('java.lang.System', 'getenv', 'HOME')",
    "SELECT builtin.reflect('java.lang.System', 'getenv', 'HOME')",
    f"SELECT * FROM IDENTIFIER({_JAVA})",
    f"SELECT * FROM gold.divergences TIMESTAMP AS OF {_JAVA}",
    f"SELECT * FROM VALUES (1, 2) t(a, b) UNPIVOT (x FOR y IN (a, b)) WHERE x = {_JAVA}",
    f"SELECT count(*) FROM VALUES ('a') t(k) GROUP BY CUBE(k, {_JAVA})",
    f"SELECT aggregate(array('x'), '', (a, x) -> a, a -> {_JAVA})",
    f"SELECT array('x')[length({_JAVA})]",
    f"SELECT CAST({_JAVA} AS BINARY)",
    f"SELECT extract(YEAR FROM {_JAVA})",
    f"SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY length({_JAVA}))",
    f"SELECT map_filter(map('a', 1), (k, v) -> v = {_JAVA})",
    f"SELECT 'x' LIKE {_JAVA}",
    f"SELECT * FROM VALUES ('x') t(a), LATERAL explode(array({_JAVA}))",
    "SELECT input_file_name()",
    "SELECT from_protobuf(b, 'm', '/etc/hostname') FROM VALUES (X'00') t(b)",
    "SELECT from_avro(b, '{}') FROM VALUES (X'00') t(b)",
    "SELECT xpath_string('<!DOCTYPE a SYSTEM \"file:///etc/hostname\"><a/>', 'a')",
    "SELECT from_xml('<a/>', 'a INT')",
    "SELECT test_of_a_function_of_the_session(1)",
    "SELECT spark_catalog.gold.own_function(1)",
    "SELECT * FROM python_worker_logs()",
    "SELECT * FROM table_changes('gold.divergences', 0)",
    "SELECT * FROM table_changes_by_path('/nowhere', 0)",
]
FILES = [
    "SELECT * FROM csv.`/etc/hostname`",
    "SELECT * FROM text.`/etc/hostname`",
    "SELECT * FROM json.`/etc/hostname`",
    "SELECT * FROM binaryFile.`/etc/hostname`",
    "SELECT * FROM BINARYFILE.`/etc/hostname`",
    "SELECT * FROM parquet.`/nowhere`",
    "SELECT * FROM orc.`/nowhere`",
    "SELECT * FROM xml.`/nowhere`",
    "SELECT * FROM delta.`/nowhere`",
    "SELECT * FROM delta.`/nowhere@v0`",
    "SELECT * FROM `org.apache.spark.sql.execution.datasources.csv`.`/etc/hostname`",
    "SELECT * FROM image.`/nowhere`",
    "SELECT * FROM jdbc.`x`",
    "TABLE csv.`/etc/hostname`",
    "FROM csv.`/etc/hostname`",
    "FROM csv.`/etc/hostname` |> LIMIT 1",
    "SELECT (SELECT first(_c0) FROM csv.`/etc/hostname`)",
    "SELECT 1 WHERE EXISTS (SELECT * FROM csv.`/etc/hostname`)",
    "SELECT 1 WHERE 'x' IN (SELECT _c0 FROM csv.`/etc/hostname`)",
    "WITH c AS (SELECT * FROM csv.`/etc/hostname`) SELECT * FROM c",
    "WITH csv AS (SELECT 1) SELECT * FROM csv.`/etc/hostname`",
    "SELECT * FROM VALUES (1) t(n), LATERAL (SELECT * FROM csv.`/etc/hostname`)",
    "SELECT * FROM IDENTIFIER('csv.`/etc/hostname`')",
    "SELECT * FROM IDENTIFIER('csv' || '.`/etc/hostname`')",
    "SELECT * FROM gold.divergences WITH (path = '/etc/hostname')",
    "SELECT * FROM STREAM gold.divergences",
    "SELECT * FROM STREAM(csv.`/etc/hostname`)",
    "EXPLAIN SELECT * FROM csv.`/etc/hostname`",
    "DESCRIBE csv.`/etc/hostname`",
    "DESCRIBE QUERY SELECT * FROM csv.`/etc/hostname`",
    "DESCRIBE DETAIL '/nowhere'",
    "DESCRIBE DETAIL delta.`/nowhere`",
    "DESCRIBE HISTORY '/nowhere'",
    "DESCRIBE HISTORY delta.`/nowhere`",
    "SHOW COLUMNS IN csv.`/etc/hostname`",
    "SHOW CREATE TABLE delta.`/nowhere`",
    "SELECT * FROM other_catalog.gold.divergences",
    "SELECT * FROM system.information_schema.tables",
    "SELECT * FROM global_temp.somebodys",
    "SELECT * FROM view_of_the_session",
    "WITH view_of_the_session AS (SELECT * FROM view_of_the_session) SELECT * FROM view_of_the_session",
    "WITH a AS (SELECT * FROM view_of_the_session), view_of_the_session AS (SELECT 1) SELECT * FROM a",
    "SELECT * FROM (WITH c AS (SELECT 1) SELECT * FROM c) JOIN c",
]
ACTS = [
    "CREATE TABLE gold.copy AS SELECT 1",
    "CREATE OR REPLACE TEMPORARY VIEW v AS SELECT 1",
    "CREATE TEMPORARY FUNCTION f AS 'java.lang.String'",
    "CREATE TEMPORARY FUNCTION f(a INT) RETURNS INT RETURN a",
    "CREATE DATABASE d",
    "DROP TABLE gold.divergences",
    "ALTER TABLE gold.divergences SET TBLPROPERTIES (a = 'b')",
    "TRUNCATE TABLE gold.divergences",
    "INSERT INTO gold.divergences SELECT * FROM gold.divergences",
    "INSERT OVERWRITE DIRECTORY '/nowhere' USING csv SELECT 1",
    "INSERT OVERWRITE LOCAL DIRECTORY '/nowhere' SELECT 1",
    "WITH d AS (SELECT * FROM gold.divergences) INSERT INTO gold.divergences SELECT * FROM d",
    "FROM gold.divergences INSERT INTO gold.divergences SELECT * INSERT INTO gold.divergences SELECT *",
    "UPDATE gold.divergences SET rule_id = 'x'",
    "DELETE FROM gold.divergences",
    "MERGE INTO gold.divergences a USING gold.divergences b ON false WHEN NOT MATCHED THEN INSERT *",
    "LOAD DATA INPATH '/nowhere' INTO TABLE gold.divergences",
    "EXPLAIN INSERT INTO gold.divergences SELECT * FROM gold.divergences",
    "EXPLAIN DROP TABLE gold.divergences",
    "EXPLAIN CREATE TABLE gold.copy AS SELECT 1",
    "EXPLAIN CODEGEN DELETE FROM gold.divergences",
    "SET spark.sql.ansi.enabled = false",
    "SET VAR x = 1",
    "RESET",
    "DECLARE x INT DEFAULT 1",
    "USE gold",
    "ADD JAR '/nowhere.jar'",
    "ADD FILE '/etc/hostname'",
    "LIST JARS",
    "CACHE TABLE gold.divergences",
    "CACHE TABLE c AS SELECT 1",
    "UNCACHE TABLE gold.divergences",
    "CLEAR CACHE",
    "REFRESH TABLE gold.divergences",
    "ANALYZE TABLE gold.divergences COMPUTE STATISTICS",
    "MSCK REPAIR TABLE gold.divergences",
    "VACUUM gold.divergences",
    "OPTIMIZE gold.divergences",
    "RESTORE TABLE gold.divergences TO VERSION AS OF 0",
    "CONVERT TO DELTA parquet.`/nowhere`",
    "GENERATE symlink_format_manifest FOR TABLE gold.divergences",
    "CALL system.procedure()",
    "EXECUTE IMMEDIATE 'DROP TABLE gold.divergences'",
    "EXPLAIN EXECUTE IMMEDIATE 'DROP TABLE gold.divergences'",
    "BEGIN DROP TABLE gold.divergences; END",
    "BEGIN SELECT 1; END",
    "/* SELECT */ DROP TABLE gold.divergences",
    "-- SELECT\nDROP TABLE gold.divergences",
    "(DROP TABLE gold.divergences)",
    "KILL 1",
    "",
    "-- nothing",
]
REFUSED = [*SCRIPTS, *FUNCTIONS, *FILES, *ACTS]

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

    root = tmp_path_factory.mktemp("read_only") / "lake"
    shutil.copytree(empty_lake_dir, root)
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
def test_what_does_more_than_read_the_lake_is_refused(session, statement):
    refused = refusal(session, statement)
    assert refused is not None
    assert "read-only" in refused


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
