"""How Spark plans queries on one machine: for a small lake plans are what costs, for a large one rows.

A reconstruction of a megabyte is a hundred queries over next to nothing. Two thirds of their time Spark's driver goes
through their plans, rule by rule, 300,000 times in all.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OPTIMIZER: Final = "org.apache.spark.sql.catalyst.optimizer"
_DATA_SOURCES: Final = "org.apache.spark.sql.execution.datasources"
#: Rules that only spare work on rows and find next to nothing to do, those first that take longest. Not among them:
#: RemoveRedundantAliases, without which Delta's VACUUM fails where expressions are interpreted; FoldablePropagation and
#: PushDownLeftSemiAntiJoin: without both of them the anti-join of Delta's RESTORE finds other rows, and files go that
#: it is to keep (each alone may be left out: found by trying).
LEFT_OUT: Final = (
    "org.apache.spark.sql.delta.metric.OptimizeConditionalIncrementMetric",
    f"{_OPTIMIZER}.PruneFilters",
    f"{_DATA_SOURCES}.PushVariantIntoScan",
    f"{_OPTIMIZER}.SimplifyConditionals",
    f"{_OPTIMIZER}.InferFiltersFromConstraints",
    f"{_OPTIMIZER}.OptimizeOneRowRelationSubquery",
    f"{_OPTIMIZER}.BooleanSimplification",
    f"{_DATA_SOURCES}.SchemaPruning",
    f"{_OPTIMIZER}.OptimizeCsvJsonExprs",
    f"{_OPTIMIZER}.GenerateOptimization",
    f"{_OPTIMIZER}.MergeScalarSubqueries",
    f"{_OPTIMIZER}.OptimizeWindowFunctions",
    f"{_OPTIMIZER}.UnwrapCastInBinaryComparison",
    f"{_OPTIMIZER}.SimplifyBinaryComparison",
    f"{_OPTIMIZER}.PushFoldableIntoBranches",
    f"{_OPTIMIZER}.ConstantPropagation",
    f"{_OPTIMIZER}.NullDownPropagation",
    f"{_OPTIMIZER}.InjectRuntimeFilter",
    f"{_OPTIMIZER}.ReplaceNullWithFalseInPredicate",
    f"{_OPTIMIZER}.OptimizeUpdateFields",
    f"{_OPTIMIZER}.RewriteNonCorrelatedExists",
)
#: For a small lake: expressions are interpreted, since to compile them takes longer than to run them; plans are made
#: once, since to make them anew after each stage takes longer than the stage; and small files are read by one task.
PLANNED_ONCE: Final[Mapping[str, str]] = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.files.minPartitionNum": "1",
    "spark.sql.optimizer.excludedRules": ",".join(LEFT_OUT),
}
#: For more text than :data:`SMALL_LAKE_BYTES`.
PLANNED_WITH_CARE: Final[Mapping[str, str]] = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.files.minPartitionNum": str(max(os.cpu_count() or 1, 1)),
    "spark.sql.optimizer.excludedRules": "",
}
#: Above this much text, compiled expressions and adaptive plans win back what they cost.
SMALL_LAKE_BYTES: Final = 24 << 20
#: What a run knows counts so much less: with a hundredth or two more they cost 94 s of the processors in place of 81
#: at 29 MB, and spare 15 of 118 at 124 MB.
KNOWN_TEXT_COUNTS: Final = 3


def is_local(master: str) -> bool:
    """Whether Spark runs on this machine alone."""
    return master.startswith("local")


def suit_to_size(spark: SparkSession, text_bytes: int) -> None:
    """Plan in the way that is faster for a lake of so much text; on a local master only."""
    if is_local(spark.conf.get("spark.master", "") or ""):
        for name, value in (PLANNED_ONCE if text_bytes < SMALL_LAKE_BYTES else PLANNED_WITH_CARE).items():
            spark.conf.set(name, value)
