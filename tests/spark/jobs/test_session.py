"""The session holds what the jobs rely on."""

from __future__ import annotations

import datetime as dt
import gc
import os
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pandas
import pyarrow as pa
import pytest
from py4j.java_gateway import JavaObject
from py4j.protocol import GATEWAY_SERVER_OBJECT_ID, Py4JJavaError
from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql.classic import column

from ingest.lake.tables.bronze import INGESTED_FILES
from jobs.command.job import suit_session_to
from jobs.session import java_calls
from jobs.session.local_files import use_own_local_files
from jobs.session.planning import KNOWN_TEXT_COUNTS, LEFT_OUT
from jobs.session.session import build_session


def test_settings_that_the_rows_depend_on(spark):
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.execution.arrow.pyspark.enabled") == "true"
    assert spark.conf.get("spark.sql.catalogImplementation") == "in-memory"
    assert spark.conf.get("spark.driver.memory") == "3g", "what tests/conftest.py gives wins"


def test_a_machine_that_slept_overnight_has_lost_no_executor(spark):
    asleep_ms = 12 * 3600 * 1000
    assert spark._jsc.sc().conf().getTimeAsMs("spark.storage.blockManagerHeartbeatTimeoutMs") > asleep_ms


def test_python_workers_import_the_pyspark_that_is_installed(spark):
    def where(batches):
        import pyarrow as pa
        import pyspark

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"place": [pyspark.__file__]})

    import pyspark

    assert {row["place"] for row in spark.range(1).mapInArrow(where, "place string").collect()} == {pyspark.__file__}


def test_text_that_a_run_knows_counts_less(spark, offset_lake, monkeypatch):
    told = []
    monkeypatch.setattr("jobs.command.job.suit_to_size", lambda _, text_bytes: told.append(text_bytes))
    lake = offset_lake.lake
    files = lake.read(INGESTED_FILES).select("ingested_at", "ingested_bytes").collect()
    instants = [row["ingested_at"].replace(tzinfo=dt.UTC).timestamp() for row in files]
    for known_until in (None, min(instants), max(instants) + 1):
        suit_session_to(lake, known_until)
    sizes = [row["ingested_bytes"] or 0 for row in files]
    whole, known = sum(sizes), sum(size // KNOWN_TEXT_COUNTS for size in sizes)
    # what is asked of one table is planned as a small lake is
    assert told == [0, whole, 0, whole, 0, known]
    assert 0 < known < whole


def test_values_of_numpy_are_handed_to_java_as_ever(spark):
    import numpy as np

    of_java = spark._jvm.java.util.Arrays
    assert of_java.toString(np.array([1, 2], dtype="int64")) == "[1, 2]"
    assert spark._jvm.java.lang.Long.toString(np.int64(7)) == "7"
    assert spark.range(3).where(F.col("id") == np.int64(1)).count() == 1
    with pytest.raises(Exception, match=r"ndarray|does not exist|cannot"):
        of_java.toString(np.array([[1], [2]]))


def test_whether_a_value_is_numpy_s_is_known_without_pandas():
    told = (
        "import sys; from jobs.session.java_calls import call_less; call_less();"
        " from pyspark.sql import types; each = types.NumpyScalarConverter(), types.NumpyArrayConverter();"
        " print([one.can_convert('text') for one in each], 'pandas' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", told], check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "[False, False] False"


def test_what_a_scan_is_handed_are_hadoop_s_settings_without_where_they_are_from(spark):
    settings = spark._jsparkSession.sessionState().newHadoopConf()
    assert settings.getPropertySources("io.file.buffer.size") is None, "core-default.xml"
    jvm, read = spark._jvm, spark._jvm.org.apache.hadoop.conf.Configuration(False)
    written = jvm.java.io.ByteArrayOutputStream()
    settings.write(jvm.java.io.DataOutputStream(written))
    read.readFields(jvm.java.io.DataInputStream(jvm.java.io.ByteArrayInputStream(written.toByteArray())))
    assert read.size() == settings.size() > 1000
    for name in ("io.file.buffer.size", "fs.file.impl", "fs.s3a.impl"):
        assert read.get(name) == settings.get(name) is not None


def test_delta_tables_can_be_written_and_read(spark, tmp_path):
    path = str(tmp_path / "table")
    spark.range(3).write.format("delta").save(path)
    assert spark.read.format("delta").load(path).count() == 3


def test_only_the_two_delta_jars_are_added(spark):
    jars = spark.sparkContext.getConf().get("spark.driver.extraClassPath").split(os.pathsep)
    assert sorted(jar.rsplit("/", 1)[-1] for jar in jars) == [
        "delta-spark_4.1_2.13-4.4.0.jar",
        "delta-storage-4.4.0.jar",
    ]


def test_a_collected_instant_is_the_stored_one(spark):
    row = spark.sql("SELECT TIMESTAMP '2026-11-21T01:02:03.123456Z' AS at").first()
    assert row.at == dt.datetime(2026, 11, 21, 1, 2, 3, 123456)


def test_workers_run_this_interpreter(spark):
    version = F.udf(lambda _: ".".join(map(str, sys.version_info[:3])))
    assert spark.range(1).select(version("id").alias("v")).first().v == ".".join(map(str, sys.version_info[:3]))


def test_a_worker_imports_pandas_where_a_function_of_pandas_asks_for_it_alone(spark):
    def modules(batches):
        for _ in batches:
            made = pa.array([1])
            yield pa.RecordBatch.from_pylist([{"is_there": "pandas" in sys.modules}] * len(made))

    assert [row.is_there for row in spark.range(1).mapInArrow(modules, "is_there boolean").collect()] == [False]
    at = dt.datetime(2026, 11, 21, 3, 30, 0, 123457)
    rows = [("a", 1, at), (None, None, None), ("c", 3, at)]
    given = spark.createDataFrame(rows, "text string, number bigint, at timestamp").coalesce(1)

    def later(frames):
        for frame in frames:
            yield frame.assign(number=frame.number + 1, at=frame["at"] + pandas.Timedelta(seconds=1))

    then = at + dt.timedelta(seconds=1)
    assert [*map(tuple, given.mapInPandas(later, given.schema).collect())] == [
        ("a", 2, then),
        (None, None, None),
        ("c", 4, then),
    ]


def test_workers_leave_alone_what_was_there_before_them(spark):
    frozen = F.udf(lambda _: str(gc.get_freeze_count()))
    assert int(spark.range(1).select(frozen("id").alias("n")).first().n) > 10_000


def test_workers_collect_garbage_and_leave_alone_the_modules_that_came(spark):
    def task(_):
        import mailbox
        import weakref

        class Node:
            pass

        tracked = any(each is mailbox.Mailbox for each in gc.get_objects())
        is_gone = getattr(mailbox, "last", lambda: None)() is None
        node = Node()
        node.itself, mailbox.last = node, weakref.ref(node)
        return f"{os.getpid()} {tracked} {is_gone}"

    seen = {}
    for _ in range(6):
        pid, *found = spark.range(1).select(F.udf(task)("id").alias("said")).first().said.split()
        seen.setdefault(pid, []).append(found)
    assert any(len(found) > 1 for found in seen.values()), "a worker has several tasks"
    for first, *others in seen.values():
        assert first == ["True", "True"]
        assert all(found == ["False", "True"] for found in others)


def test_what_a_name_of_java_means_is_asked_once(spark):
    view = spark.sparkContext._jvm
    assert view.java is view.java
    assert view.java.lang.Math is view.java.lang.Math
    assert view.java.lang.Math.abs is view.java.lang.Math.abs
    assert view.java.lang.Math.abs(-1) == 1
    assert view.java.lang.Integer.MAX_VALUE == 2**31 - 1


def made_of(name):
    """A column of several calls, of which pyspark makes each anew."""
    return F.when(F.col(name).isNull(), F.coalesce(F.lit("a"), F.lit("b"))).otherwise(F.expr("'c'")).alias("made")


def test_a_column_is_made_once_and_no_other_is_taken_for_it(spark):
    for make in (lambda: F.col("id"), lambda: F.lit("same"), lambda: made_of("id")):
        assert make()._jc is make()._jc
    assert made_of("id")._jc is not made_of("other")._jc
    given = (1, True, "1", 1.0, 0, False, 0.0, -0.0, "", None, 1 << 40, dt.date(2026, 11, 21), "id")
    for _ in range(2):
        row = spark.range(1).select(*map(F.lit, given), F.col("id"), made_of("id")).first()
        assert [(type(one), str(one)) for one in row] == [(type(one), str(one)) for one in (*given, 0, "c")]


def test_what_is_another_each_time_is_made_each_time(spark):
    """Java draws a number; a frame's own column is that of this frame alone."""
    for make in (F.rand, F.randn, F.uuid, lambda: F.shuffle(F.col("id")), lambda: spark.range(2)["id"] + 1):
        assert make()._jc is not make()._jc
    assert spark.range(1).select(F.uuid().alias("a"), F.uuid().alias("b")).where("a = b").count() == 0
    one, other = spark.range(2), spark.range(1, 3)
    assert one.join(other, one["id"] == other["id"]).count() == 1


def test_columns_that_no_longer_are_kept_are_made_anew(spark, monkeypatch):
    kept = spark.sparkContext._gateway._gateway_client.columns_made
    monkeypatch.setattr(java_calls, "_MOST_KEPT", len(kept.by_call) + 3)
    before = made_of("id")
    for number in range(20):
        made = made_of(f"c{number}")
        assert spark.range(1).select(F.lit(number).alias(f"c{number}")).select(made).first().made == "c"
    assert len(kept.by_call) <= java_calls._MOST_KEPT
    assert made_of("id")._jc is not before._jc
    assert spark.range(1).select(before, made_of("id").alias("again")).first() == ("c", "c")


def test_a_sequence_can_be_gone_through_again(spark):
    for _ in range(2):
        assert list(spark.sparkContext._jvm.java.util.List.of("a", "b")) == ["a", "b"]
        walked = column._to_seq(spark.sparkContext, ["a", "b"]).iterator()
        assert [walked.next(), walked.next()] == ["a", "b"]


@pytest.mark.parametrize("count", [0, 1, 10, 11, 25])
def test_a_sequence_of_any_length_comes_to_java_whole_and_in_order(spark, count):
    names = [f"c{number}" for number in range(count)]
    frame = spark.range(1).select("id", *(F.lit(name).alias(name) for name in names))
    assert frame.select(*names).columns == names
    wanted = [*names, None, "id"]
    assert frame.select(F.array(*map(F.lit, wanted)).alias("all")).first().all == wanted
    seq = column._to_seq(spark.sparkContext, wanted)
    assert [seq.apply(number) for number in range(seq.size())] == wanted


def test_java_lets_go_of_what_python_needs_no_more_and_of_nothing_else(spark):
    held = F.lit("held")
    for _ in range(3):
        gone = [F.lit(number + 0.5)._jc._get_object_id() for number in range(1000)]
        client = spark.sparkContext._gateway._gateway_client
        kept = JavaObject(GATEWAY_SERVER_OBJECT_ID, client).getGateway().getBindings()
        waited_until = time.monotonic() + 30
        while sum(kept.containsKey(object_id) for object_id in gone) > 200:
            assert time.monotonic() < waited_until
            gc.collect()
            time.sleep(0.1)
    assert kept.containsKey(held._jc._get_object_id())
    assert spark.range(1).select(held).first()[0] == "held"


def test_json_that_is_nested_without_end_or_names_no_number_is_null(spark):
    deep = '{"a":' + "[" * 100_000 + "]" * 100_000 + "}"
    texts = [deep, '{"a":' + "9" * 5_000 + "}", '{"a":1e999}', '{"a":']
    read = [
        F.from_json("text", "a bigint")["a"],
        F.from_json("text", "a array<int>")["a"],
        F.from_json("text", "map<string,array<string>>")["a"],
    ]
    rows = spark.createDataFrame([(text,) for text in texts], "text string").select("text", *read).collect()
    assert [list(row)[1:] for row in rows] == [[None] * 3] * len(texts)
    found = spark.createDataFrame([(deep,)], "text string").select(F.get_json_object("text", "$.b")).first()
    assert found[0] is None


def test_files_of_this_machine_are_written_as_hadoop_writes_them_and_no_process_is_started_for_one(spark, tmp_path):
    hadoop, conf = spark._jvm.org.apache.hadoop.fs, spark._jsparkSession.sessionState().newHadoopConf()
    files = hadoop.Path(tmp_path.as_uri()).getFileSystem(conf)
    assert files.getClass().getSimpleName() == "OwnLocalFileSystem"
    context = hadoop.FileContext.getFileContext(files.getUri(), conf)
    assert context.getDefaultFileSystem().getClass().getSimpleName() == "OwnLocalFs"
    usual, secret = (hadoop.Path((tmp_path / name).as_uri()) for name in ("new/usual", "new/secret"))
    for path in (usual, secret):
        files.create(path).close()
    files.setPermission(secret, hadoop.permission.FsPermission("600"))
    modes = [stat.S_IMODE((tmp_path / "new" / name).stat().st_mode) for name in ("", "usual", "secret")]
    assert modes == [0o755, 0o644, 0o600]
    with pytest.raises(Py4JJavaError, match="FileAlreadyExistsException"):
        context.rename(usual, secret, spark.sparkContext._gateway.new_array(hadoop.Options.Rename, 0))
    assert context.getFileLinkStatus(usual).getLen() == 0


def test_a_java_that_an_earlier_session_left_has_those_files_already(spark):
    use_own_local_files(spark)
    files = spark._jvm.org.apache.hadoop.fs.FileSystem.getLocal(spark.sparkContext._jsc.hadoopConfiguration())
    assert files.getClass().getSimpleName() == "OwnLocalFileSystem"


def test_of_many_who_commit_the_same_version_at_once_one_does(spark, tmp_path):
    hadoop, conf = spark._jvm.org.apache.hadoop.fs, spark._jsparkSession.sessionState().newHadoopConf()
    context = hadoop.FileContext.getFileContext(hadoop.Path(tmp_path.as_uri()).toUri(), conf)
    no_option = spark.sparkContext._gateway.new_array(hadoop.Options.Rename, 0)
    together = threading.Barrier(6)

    def refusal(version: int, writer: int) -> str:
        written = tmp_path / f"{version}-{writer}.tmp"
        written.write_text(str(writer))
        names = [hadoop.Path(path.as_uri()) for path in (written, tmp_path / f"{version}.json")]
        together.wait(60)
        try:
            context.rename(*names, no_option)
        except Py4JJavaError as error:
            return str(error.java_exception.getClass().getSimpleName())
        return ""

    with ThreadPoolExecutor(together.parties) as writers:
        for version in range(60):
            refusals = list(writers.map(partial(refusal, version), range(together.parties)))
            assert sorted(refusals) == ["", *["FileAlreadyExistsException"] * 5]
            assert (tmp_path / f"{version}.json").read_text() == str(refusals.index(""))


def test_a_session_that_exists_is_taken_over(spark):
    assert build_session(master="local[1]") is spark


@pytest.mark.parametrize("rows", [10_000, 200_000])
def test_a_window_holds_no_more_of_one_key_than_64_mib(spark, rows):
    """What it holds nobody can ask back: the next window of the task would find no memory, where the task has some left
    at all, and `reconstruct` would end there."""
    wide = spark.range(rows).select("id", *(F.xxhash64("id", F.lit(n)).alias(f"of_{n}") for n in range(60)))
    of_all = Window.partitionBy(F.lit(1)).orderBy("id")
    before = wide.withColumn("before", F.lag("of_0").over(of_all)).agg(
        F.count("before"), F.max(F.xxhash64(*wide.columns))
    )
    assert before.collect()[0][0] == rows - 1
    (window,) = (step for step in steps_of(before) if step.nodeName() == "Window")
    assert (window.metrics().apply("spillSize").value() > 0) is (rows * 61 * 8 > 64 << 20)


def steps_of(rows):
    """Those of the plan by which the rows were made."""
    plans = [rows._jdf.queryExecution().executedPlan()]
    while plans:
        plan = plans.pop()
        yield plan
        adaptive = plan.nodeName() == "AdaptiveSparkPlan"
        children = (
            [plan.executedPlan()] if adaptive else [plan.children().apply(n) for n in range(plan.children().size())]
        )
        plans += [child.plan() if child.nodeName().endswith("QueryStage") else child for child in children]


def test_rules_that_plans_of_small_lakes_go_without_are_still_named_so(spark):
    is_there = spark._jvm.org.apache.spark.util.Utils.classIsLoadable
    assert spark.conf.get("spark.sql.optimizer.excludedRules") == ",".join(LEFT_OUT)
    assert [name for name in LEFT_OUT if not is_there(name) and not is_there(f"{name}$")] == []


def test_a_restored_table_has_the_rows_of_its_version(spark, tmp_path):
    """Without FoldablePropagation and PushDownLeftSemiAntiJoin both, the file of the first version was removed too."""
    path = str(tmp_path / "restored")
    for start, end in ((0, 3), (3, 5)):
        spark.range(start, end).coalesce(1).write.format("delta").mode("append").save(path)
    spark.sql(f"RESTORE TABLE delta.`{path}` TO VERSION AS OF 0")
    assert sorted(row.id for row in spark.read.format("delta").load(path).collect()) == [0, 1, 2]
