"""Writes to znodes: all that a transaction log holds, else those that snapshots show.

A snapshot shows each version once, and a deletion only by the interval it fell in. It is not atomic and may be cut:
that a znode is not in it proves a deletion only where the same round shows all children that its parent counts.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ingest.lake.plans import union
from ingest.lake.tables.events import ZNODE_CHANGES
from reconstruct.events.spark.znode_transactions import UNKNOWN_CZXID
from reconstruct.model.versions import MODEL_VERSION
from reconstruct.model.znode_paths import BROKER_PATTERN

_ZNODE: Final = ("cluster_id", "path", "czxid")


def znode_changes(snapshots: DataFrame, transactions: DataFrame, logged: DataFrame) -> DataFrame:
    """``bronze.znode_snapshots`` and ``bronze.znode_transactions`` as ``silver.znode_changes``. ``logged`` are their
    :func:`~reconstruct.events.spark.znode_transactions.logged_changes`, which are read several times."""
    logged = logged.withColumns({"changed_at_upper": F.col("changed_at"), "evidence": F.array("record_id")})
    write, rounds = ["cluster_id", "path", "mzxid"], ("first_shown_at", "last_shown_at")
    writes = _writes(snapshots)
    shown = writes.join(logged.where("change = 'written'").select(*write), write, "left_anti")
    seen = writes.groupBy(*write, F.lit("written").alias("change")).agg(
        F.min("first_shown_at").alias(rounds[0]), F.max("last_shown_at").alias(rounds[1])
    )
    logged = logged.join(seen, [*write, "change"], "left")
    gone = _deletions(snapshots).join(logged.where("change = 'deleted'").select(*_ZNODE), list(_ZNODE), "left_anti")
    return (
        union([logged, shown, gone])
        .join(F.broadcast(_brokers_of_sessions(snapshots, transactions)), ["cluster_id", "session_id"], "left")
        .withColumns({"hidden_writes_count": _hidden_writes(), "model_version": F.lit(MODEL_VERSION)})
        .select(*ZNODE_CHANGES.column_names)
    )


def _hidden_writes() -> Column:
    """Writes between this one and the last one known, of the same znode, that nothing shows."""
    own = Window.partitionBy(*_ZNODE, "change").orderBy("mzxid")
    before = F.coalesce(F.lag("version").over(own), F.when(F.col("czxid") != UNKNOWN_CZXID, F.lit(-1)))
    hidden = F.try_subtract(F.try_subtract(F.col("version"), before), F.coalesce("writes_count", F.lit(1)))
    return F.when((F.col("change") == "written") & hidden.isNotNull(), F.greatest(hidden, F.lit(0)))


def _brokers_of_sessions(snapshots: DataFrame, transactions: DataFrame) -> DataFrame:
    """Which broker a session is: the one that registered itself in it."""
    is_broker = F.col("path").rlike(BROKER_PATTERN)
    created = transactions.where(is_broker & (F.col("operation") == "create") & F.col("is_ephemeral"))
    shown = snapshots.where(is_broker & (F.col("ephemeral_owner") != 0))
    owned = created.select("cluster_id", "path", "session_id").unionAll(
        shown.select("cluster_id", "path", F.col("ephemeral_owner").alias("session_id"))
    )
    registered = owned.withColumn("broker", F.regexp_extract("path", BROKER_PATTERN, 1).try_cast("int"))
    return (
        registered.groupBy("cluster_id", "session_id")
        .agg(F.min("broker").alias("written_by_broker_id"), F.count_distinct("broker").alias("brokers_count"))
        .where("brokers_count = 1")
        .drop("brokers_count")
    )


def _writes(snapshots: DataFrame) -> DataFrame:
    """Each write that a snapshot shows, by the first row that shows it."""
    known = snapshots.where(F.col("czxid").isNotNull() & F.col("mzxid").isNotNull() & F.col("mtime").isNotNull())
    first = F.min_by(
        F.struct("data", "version", "ephemeral_owner", "ctime", "mtime", "record_id"),
        F.struct("captured_at", "record_id"),
    )
    over_the_wire = F.when(F.col("snapshot_zxid").isNull(), F.col("captured_at"))
    return (
        known.groupBy(*_ZNODE, "mzxid")
        .agg(
            first.alias("row"),
            F.min(over_the_wire).alias("first_shown_at"),
            F.max(over_the_wire).alias("last_shown_at"),
        )
        .select(
            *_ZNODE,
            "mzxid",
            F.lit("written").alias("change"),
            "row.data",
            "row.version",
            "row.ephemeral_owner",
            F.col("row.ctime").alias("created_at"),
            F.col("row.mtime").alias("changed_at"),
            F.col("row.mtime").alias("changed_at_upper"),
            F.col("mzxid").alias("zxid"),
            F.array("row.record_id").alias("evidence"),
            "first_shown_at",
            "last_shown_at",
        )
    )


def _deletions(snapshots: DataFrame) -> DataFrame:
    """Znodes last shown before a round that shows all children of their parent, and not them."""
    placed = snapshots.withColumn("parent", F.regexp_extract("path", r"^(.*)/[^/]*$", 1))
    one_round = ("cluster_id", "file_id", "captured_at")
    counted = placed.groupBy(*one_round, "parent").agg(F.count("*").alias("shown"))
    listed = placed.select(*one_round, F.col("path").alias("parent"), "num_children")
    whole = listed.join(counted, [*one_round, "parent"], "left").where(
        F.coalesce("shown", F.lit(0)) == F.col("num_children")
    )
    # the root is in no snapshot of ours: a round that shows these four stands for it
    root = (
        placed.where((F.col("parent") == "") & F.col("path").isin("/brokers", "/config", "/admin", "/controller_epoch"))
        .groupBy(*one_round)
        .agg(F.count_distinct("path").alias("shown"))
        .where(F.col("shown") == 4)
        .withColumn("parent", F.lit(""))
    )
    complete = (
        whole.select(*one_round, "parent")
        .unionByName(root.select(*one_round, "parent"))
        .join(F.broadcast(_read_by(snapshots)), list(one_round))
        .select("cluster_id", "parent", "captured_at", "read_by")
    )
    last_shown = placed.groupBy("cluster_id", "parent", *_ZNODE[1:]).agg(
        F.max("captured_at").alias("captured_at"),
        F.max_by(
            F.struct("mzxid", "version", "ephemeral_owner", "record_id"), F.struct("captured_at", "record_id")
        ).alias("row"),
    )
    in_time = F.unix_micros("captured_at")
    later = Window.partitionBy("cluster_id", "parent").orderBy(in_time).rangeBetween(1, Window.unboundedFollowing)
    return (
        complete.unionByName(last_shown, allowMissingColumns=True)
        .withColumn("gone_by", F.min(F.when(F.col("path").isNull(), F.col("read_by"))).over(later))
        .where(F.col("path").isNotNull() & F.col("gone_by").isNotNull())
        .select(
            *_ZNODE,
            "row.mzxid",
            F.lit("deleted").alias("change"),
            "row.version",
            "row.ephemeral_owner",
            F.col("captured_at").alias("changed_at"),
            F.col("gone_by").alias("changed_at_upper"),
            F.array("row.record_id").alias("evidence"),
            F.lit("znode_snapshot").alias("inferred_from"),
        )
    )


def _read_by(snapshots: DataFrame) -> DataFrame:
    """When the znodes of each round had been read, at the latest: when the next round began. Where there is none, a
    round of ours is taken to be over at once; one of ZooKeeper's own snapshots has no end then."""
    rounds = snapshots.groupBy("cluster_id", "file_id", "captured_at").agg(F.max("snapshot_zxid").alias("own"))
    in_time = Window.partitionBy("cluster_id").orderBy(F.unix_micros("captured_at"))
    following = F.min("captured_at").over(in_time.rangeBetween(1, Window.unboundedFollowing))
    return rounds.select(
        "cluster_id",
        "file_id",
        "captured_at",
        F.coalesce(following, F.when(F.col("own").isNull(), F.col("captured_at"))).alias("read_by"),
    )
