"""Writes to znodes, as ZooKeeper's transaction logs hold them: every one, with its instant and its session.

A log does not say which creation of a path a later write belongs to, nor, before ZooKeeper 3.6, which ephemeral znodes
a closed session takes along: both follow from the operations in their order, and from snapshots where the log begins
later than the znode.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

_PATH: Final = ("cluster_id", "path")
#: Creation of a znode of which neither log nor snapshot tells.
UNKNOWN_CZXID: Final = 0


def logged_changes(transactions: DataFrame, snapshots: DataFrame) -> DataFrame:
    """Grain: one row per (cluster, path, transaction, whether it deletes). Of several writes of one transaction to one
    znode the last one is shown; ``writes_count`` says how many there were."""
    operations = _operations(transactions)
    sightings = _sightings(snapshots)
    deaths = _ephemeral_deaths(operations, sightings)
    named = operations.where("path IS NOT NULL AND kind IN ('create', 'set_data', 'delete')")
    placed = _with_life(named.unionByName(deaths, allowMissingColumns=True), sightings)
    last = F.max_by(
        F.struct("data", "version", "transaction_time", "session_id", "record_id", "life", "last_write"), "ordinal"
    )
    is_deletion = F.col("kind") == "delete"
    return (
        placed.groupBy(*_PATH, "zxid", is_deletion.alias("is_deletion"))
        .agg(last.alias("row"), F.count("*").cast("int").alias("writes_count"))
        .select(
            *_PATH,
            F.when(F.col("is_deletion"), "deleted").otherwise("written").alias("change"),
            "row.data",
            F.coalesce("row.life.czxid", F.lit(UNKNOWN_CZXID)).alias("czxid"),
            F.when(F.col("is_deletion"), F.coalesce("row.last_write.zxid", "row.life.czxid", "zxid"))
            .otherwise(F.col("zxid"))
            .alias("mzxid"),
            F.when(F.col("is_deletion"), F.col("row.last_write.version"))
            .otherwise(F.col("row.version"))
            .alias("version"),
            F.coalesce("row.life.owner", F.lit(0)).alias("ephemeral_owner"),
            F.col("row.life.created_at").alias("created_at"),
            F.col("row.transaction_time").alias("changed_at"),
            "zxid",
            "row.session_id",
            F.col("row.record_id").alias("record_id"),
            "writes_count",
        )
    )


def _operations(transactions: DataFrame) -> DataFrame:
    """What changed something, each once: the servers of an ensemble log the same transactions."""
    own = F.struct("path", "data", "version", "is_ephemeral", "session_id", "operation", "record_id")
    return (
        transactions.where("operation IN ('create', 'set_data', 'delete', 'close_session')")
        .groupBy("cluster_id", "zxid", "ordinal", "transaction_time")
        .agg(F.min_by(own, "record_id").alias("own"))
        .select(
            "cluster_id",
            "own.path",
            "zxid",
            "ordinal",
            F.col("own.operation").alias("kind"),
            "transaction_time",
            "own.data",
            "own.version",
            F.when(F.col("own.is_ephemeral"), F.col("own.session_id")).otherwise(F.lit(0)).alias("ephemeral_owner"),
            "own.session_id",
            "own.record_id",
        )
    )


def _sightings(snapshots: DataFrame) -> DataFrame:
    """Which creation a path had at the write that a snapshot shows."""
    return (
        snapshots.where("czxid IS NOT NULL AND mzxid IS NOT NULL")
        .groupBy(*_PATH, "mzxid", "czxid")
        .agg(
            F.max("ephemeral_owner").alias("ephemeral_owner"),
            F.min("ctime").alias("created_at"),
            F.max("version").alias("version"),
        )
    )


def _ephemeral_deaths(operations: DataFrame, sightings: DataFrame) -> DataFrame:
    """The ephemeral znodes that a closed session took along, where no operation lists them."""
    born = operations.where("kind = 'create' AND ephemeral_owner != 0").select(
        *_PATH, F.col("zxid").alias("czxid"), "ephemeral_owner"
    )
    shown = sightings.where("ephemeral_owner != 0").select(*_PATH, "czxid", "ephemeral_owner")
    closed = operations.where("kind = 'close_session'").select(
        "cluster_id",
        F.col("session_id").alias("ephemeral_owner"),
        "zxid",
        "ordinal",
        "transaction_time",
        "session_id",
        "record_id",
    )
    dying = (
        born.unionByName(shown).distinct().join(closed, ["cluster_id", "ephemeral_owner"]).where("czxid < zxid")
    )  # a session closes once
    deleted = operations.where("kind = 'delete' AND path IS NOT NULL").select(
        *_PATH, F.col("zxid").alias("deleted_zxid")
    )
    listed = (
        dying.join(deleted, list(_PATH))
        .where("deleted_zxid > czxid AND deleted_zxid <= zxid")
        .select(*_PATH, "czxid", "zxid")
        .distinct()
    )
    order = Window.partitionBy("cluster_id", "zxid").orderBy("czxid", "path")
    return (
        dying.join(listed, [*_PATH, "czxid", "zxid"], "left_anti")
        .withColumns({"kind": F.lit("delete"), "ordinal": F.row_number().over(order)})
        .drop("czxid")
    )


def _with_life(named: DataFrame, sightings: DataFrame) -> DataFrame:
    """With ``life``, the creation of the znode that each operation concerns, and, for a deletion, its last write."""
    shown = sightings.select(
        *_PATH,
        F.col("mzxid").alias("zxid"),
        F.lit(-1).alias("ordinal"),
        F.lit("shown").alias("kind"),
        "version",
        "ephemeral_owner",
        F.struct("czxid", F.col("ephemeral_owner").alias("owner"), "created_at").alias("known"),
    )
    created = F.when(
        F.col("kind") == "create",
        F.struct(
            F.col("zxid").alias("czxid"),
            F.col("ephemeral_owner").alias("owner"),
            F.col("transaction_time").alias("created_at"),
        ),
    )
    in_order = Window.partitionBy(*_PATH).orderBy("zxid", "ordinal")
    so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    before = in_order.rowsBetween(Window.unboundedPreceding, -1)
    after = in_order.rowsBetween(1, Window.unboundedFollowing)
    write = F.when(F.col("kind") != "delete", F.struct("zxid", "version"))
    earlier = F.last("known", ignorenulls=True).over(so_far)
    ended = F.max(F.when(F.col("kind") == "delete", F.col("zxid"))).over(before)
    return (
        named.withColumn("known", created)
        .unionByName(shown, allowMissingColumns=True)
        .withColumns(
            {
                "earlier": earlier,
                "later": F.first("known", ignorenulls=True).over(after),
                "ended": ended,
                "last_write": F.last(write, ignorenulls=True).over(before),
            }
        )
        .where("kind != 'shown'")
        .withColumn("life", F.coalesce(_alive("earlier"), _alive("later")))
        .drop("known", "earlier", "later", "ended")
    )


def _alive(column: str) -> Column:
    """A creation that is not after the operation, and not before a deletion that came before the operation."""
    czxid = F.col(column)["czxid"]
    fits = (czxid <= F.col("zxid")) & (F.col("ended").isNull() | (czxid >= F.col("ended")))
    return F.when(fits, F.col(column))
