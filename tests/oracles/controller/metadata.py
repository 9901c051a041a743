"""Telling brokers' metadata caches, outside any transition."""

from __future__ import annotations

from collections.abc import Iterable

from reconstruct.model.controller.request_batch import RequestBatch
from reconstruct.model.controller.values import TopicPartition
from tests.oracles.controller.context import ControllerContext
from tests.oracles.controller.outcomes import (
    Result,
)
from tests.oracles.controller.zookeeper import ZooKeeper


def send_update_metadata(
    context: ControllerContext, zookeeper: ZooKeeper, broker_ids: Iterable[int], partitions: Iterable[TopicPartition]
) -> Result:
    """``sendUpdateMetadataRequest``: no partitions means none since 2.2, and all of them before."""
    batch = RequestBatch()
    batch.add_update_metadata(context, broker_ids, partitions)
    return Result(context, zookeeper, batch.requests(context))
