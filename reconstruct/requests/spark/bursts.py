"""Bursts: stretches of a controller's lines without a gap as long as a request can be under way.

What stands before such a gap and what stands behind it are of different requests: requests are matched burst by burst,
and of a lake that grows only those bursts anew in which lines are new.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F

from ingest.lake.plans import only
from reconstruct.requests.spark.matching import UNDER_WAY_US

_CONTROLLER: Final = ("cluster_id", "controller_id")
#: Lines in slots of this length that are not next to each other are further apart than a request is under way: µs.
SLOT_US: Final = UNDER_WAY_US + 120_000_000


def slot_of(at: Column) -> Column:
    """The time slot of an instant, µs of the epoch; that of 1970 where there is none."""
    return F.coalesce(F.floor(at / SLOT_US), F.lit(0)).cast("bigint")


def slotted(state_changes: DataFrame) -> DataFrame:
    """Events with their ``time_slot``."""
    return state_changes.withColumn("time_slot", slot_of(F.unix_micros("corrected_time")))


def with_bursts(state_changes: DataFrame) -> DataFrame:
    """The lines that name a controller, with ``burst``: the first time slot of the burst they are of."""
    lines = slotted(state_changes)
    return lines.join(F.broadcast(_bursts(lines)), [*_CONTROLLER, "time_slot"])


def whole_bursts(slots: DataFrame, every_slot: DataFrame) -> DataFrame:
    """All time slots of the bursts that have one of ``slots``: rows of (cluster, controller, time slot), as both are.
    Slots whose lines are gone hold a burst together as well: what was made of it is of the whole."""
    bursts = _bursts(every_slot)
    wanted = bursts.join(slots.distinct(), [*_CONTROLLER, "time_slot"], "left_semi")
    return bursts.join(wanted.select(*_CONTROLLER, "burst").distinct(), [*_CONTROLLER, "burst"], "left_semi").select(
        *_CONTROLLER, "time_slot"
    )


def of_slots(state_changes: DataFrame, slots: DataFrame, few: Sequence[Row] | None) -> DataFrame:
    """The events of these time slots, which are given too where they are ``few``: those long before and after are then
    not read."""
    numbers = [row["time_slot"] for row in few or ()]
    # in the slot of 1970 are lines of no time
    if not numbers or 0 in numbers:
        return only(state_changes, slots)
    instants = (F.timestamp_micros(F.lit(at * SLOT_US)) for at in (min(numbers), max(numbers) + 1))
    return only(state_changes.where(F.col("corrected_time").between(*instants)), slots)


def _bursts(slots: DataFrame) -> DataFrame:
    """Each time slot of a controller once, with its burst."""
    in_order = Window.partitionBy(*_CONTROLLER).orderBy("time_slot")
    begins = F.coalesce(F.col("time_slot") - F.lag("time_slot").over(in_order) > 1, F.lit(True))
    return (
        slots.where("controller_id IS NOT NULL")
        .select(*_CONTROLLER, "time_slot")
        .distinct()
        .withColumn("begin", F.when(begins, F.col("time_slot")))
        .withColumn("burst", F.last("begin", ignorenulls=True).over(in_order))
        .drop("begin")
    )
