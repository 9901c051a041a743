"""A producer that keeps producing, and remembers what was acknowledged."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from types import TracebackType
from typing import Any, Final

from kafka import KafkaProducer
from kafka.errors import KafkaError

from jobs.lab.admin import Partition
from jobs.lab.machines.cluster import Cluster
from jobs.lab.waiting import wait_for

#: Between two records to the same partition.
_PAUSE_S: Final = 0.04
_DELIVERY_MS: Final = 8_000
#: So long without an answer a partition could not be written.
SILENT_S: Final = 1.0


@dataclass(frozen=True)
class Acknowledged:
    """One record that the cluster said it has; ``at`` in seconds since the epoch, when we heard so."""

    partition: Partition
    offset: int
    at: float


def silences(acknowledged: Iterable[Acknowledged], until: float) -> dict[Partition, list[tuple[float, float | None]]]:
    """The spans, in seconds since the epoch, in which a partition that was produced to had nothing acknowledged for
    longer than :data:`SILENT_S`: from one answer to the next; to None where none came until the last record was sent,
    at ``until``."""
    answers: dict[Partition, list[float]] = {}
    for each in acknowledged:
        answers.setdefault(each.partition, []).append(each.at)
    found: dict[Partition, list[tuple[float, float | None]]] = {}
    for partition, unsorted in answers.items():
        at = sorted(unsorted)
        found[partition] = [(one, other) for one, other in pairwise(at) if other - one > SILENT_S]
        if until - at[-1] > SILENT_S:
            found[partition].append((at[-1], None))
    return found


class Load:
    """Produces to every one of ``partitions`` from entering to leaving the context; ``acks`` as Kafka means it."""

    def __init__(self, cluster: Cluster, partitions: Iterable[Partition], acks: int | str = 1) -> None:
        logging.getLogger("kafka").setLevel(logging.CRITICAL)
        self._cluster = cluster
        self._partitions = sorted(partitions)
        self._acks = acks
        self._lock = threading.Lock()
        self._acknowledged: list[Acknowledged] = []
        self._failed_count = 0
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._produce, name="lab-load", daemon=True)
        self._producer: KafkaProducer | None = None

    @property
    def acknowledged(self) -> list[Acknowledged]:
        """What was acknowledged so far, in the order of the answers."""
        with self._lock:
            return list(self._acknowledged)

    def counts(self) -> dict[Partition, int]:
        """How many records of each partition were acknowledged so far."""
        found = dict.fromkeys(self._partitions, 0)
        for each in self.acknowledged:
            found[each.partition] += 1
        return found

    def wait_for_more(self, count: int, partitions: Iterable[Partition] | None = None) -> None:
        """Until each of ``partitions`` (default: all) got ``count`` more acknowledged records."""
        chosen = self._partitions if partitions is None else sorted(partitions)
        before = self.counts()

        def look() -> bool:
            now = self.counts()
            return all(now[partition] - before[partition] >= count for partition in chosen)

        wait_for(f"{count} more records of each of {chosen} are acknowledged", look)

    def __enter__(self) -> Load:
        self._producer = KafkaProducer(
            bootstrap_servers=self._cluster.bootstrap,
            api_version=self._cluster.release.client_api,
            acks=self._acks,
            enable_idempotence=False,
            delivery_timeout_ms=_DELIVERY_MS,
            request_timeout_ms=_DELIVERY_MS // 2,
            max_block_ms=1_000,
            retry_backoff_ms=200,
            reconnect_backoff_ms=100,
            reconnect_backoff_max_ms=500,
            metadata_max_age_ms=2_000,
            metrics_enabled=False,
            allow_auto_create_topics=False,
        )
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Send no more, wait for the answers, note the sums."""
        producer = self._producer
        assert producer is not None
        self._ending.set()
        self._thread.join()
        ended = time.time()
        with contextlib.suppress(KafkaError):  # what was not answered is not acknowledged
            producer.flush(timeout=_DELIVERY_MS / 1000 * 2)
        with contextlib.suppress(KafkaError):  # one that hangs must not hide what failed before
            producer.close(timeout=1)
        acknowledged = self.acknowledged
        last: dict[Partition, int] = {}
        since: dict[Partition, float] = {}
        for each in acknowledged:
            last[each.partition] = max(each.offset, last.get(each.partition, -1))
            since[each.partition] = min(each.at, since.get(each.partition, each.at))
        spans = silences(acknowledged, ended)
        self._cluster.events.note(
            "load_done",
            acks=self._acks,
            acked=len(acknowledged),
            failed=self._failed_count,
            last_acked_offset={_name(partition): offset for partition, offset in last.items()},
            acked_since={_name(partition): round(at, 3) for partition, at in since.items()},
            silent={_name(p): [(round(a, 3), b and round(b, 3)) for a, b in own] for p, own in spans.items() if own},
        )

    def _produce(self) -> None:
        producer = self._producer
        assert producer is not None
        number = 0
        while not self._ending.is_set():
            for partition in self._partitions:
                number += 1
                self._send(producer, partition, number)
            self._ending.wait(_PAUSE_S)

    def _send(self, producer: KafkaProducer, partition: Partition, number: int) -> None:
        topic, partition_id = partition
        try:
            future = producer.send(topic, f"{number:012d}".encode(), partition=partition_id)
        except (KafkaError, AssertionError):
            self._failed()
            return
        future.add_callback(lambda answer: self._answered(partition, answer))
        future.add_errback(lambda _: self._failed())

    def _answered(self, partition: Partition, answer: Any) -> None:
        with self._lock:
            self._acknowledged.append(Acknowledged(partition, answer.offset, time.time()))

    def _failed(self) -> None:
        with self._lock:
            self._failed_count += 1


def _name(partition: Partition) -> str:
    return f"{partition[0]}-{partition[1]}"
