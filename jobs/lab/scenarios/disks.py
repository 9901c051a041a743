"""Incidents with disks: checkpoints that are lost or corrupt, a whole log directory that is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from jobs.lab.admin import Partition
from jobs.lab.load import Load
from jobs.lab.scenarios.brokers import not_the_controller
from jobs.lab.stage import ORDERS, Stage
from jobs.lab.waiting import NeverHappened, wait_for

HIGH_WATERMARKS: Final = "replication-offset-checkpoint"


def lost_checkpoint(stage: Stage) -> None:
    """A broker dies and comes back without its high watermark checkpoint."""

    def lose(broker: int) -> None:
        stage.say(f"removing {HIGH_WATERMARKS} of broker {broker}")
        stage.cluster.brokers[broker].lose_checkpoint(HIGH_WATERMARKS)
        stage.note("checkpoint_removed", broker=broker, file=HIGH_WATERMARKS)

    _die_and_return_without(stage, lose)


def lost_disk(stage: Stage) -> None:
    """A broker dies and comes back with an empty log directory: it fetches everything again."""

    def lose(broker: int) -> None:
        stage.say(f"emptying the log directory of broker {broker}")
        stage.cluster.lose_data(broker)
        stage.note("data_lost", broker=broker)

    _die_and_return_without(stage, lose)


def small_segments(stage: Stage) -> None:
    """Segments of two kilobytes are rolled, and deleted but for three; a broker dies meanwhile, and returns."""
    small = {"segment.bytes": "2048", "retention.bytes": "6144", "index.interval.bytes": "256"}
    orders = stage.create("orders", ORDERS, small)
    with stage.produce(orders) as load:
        stage.let_run(load, rounds=6)
        broker = not_the_controller(stage)
        stage.kill(broker)
        stage.let_run(load)
        stage.cluster.start(broker)
        stage.cluster.wait_for_full_isr()
        wait_for("retention has deleted segments of orders", lambda: not any(_first_segments(stage, orders)))
        stage.let_run(load)


def _first_segments(stage: Stage, partitions: Sequence[Partition]) -> Iterator[bool]:
    """Of each replica, whether it still has its log's first segment."""
    for broker in stage.cluster.brokers.values():
        for topic, number in partitions:
            yield (broker.data / f"{topic}-{number}" / f"{0:020}.log").exists()


def directory_failure(stage: Stage) -> None:
    """One of a broker's two log directories fails while it runs: what it holds there is led by others, and the broker
    serves on with the other one; it is started again with both."""
    with stage.busy() as (orders, load):
        lose_a_directory(stage, not_the_controller(stage), orders, load)


def lose_a_directory(stage: Stage, broker: int, partitions: Sequence[Partition], load: Load) -> None:
    """Until others lead what is in it, the broker was stopped, and it is back with all its directories."""
    directory = stage.cluster.brokers[broker].directories[-1]
    lost = [(topic, number) for topic, number in partitions if (directory / f"{topic}-{number}").exists()]
    stage.say(f"a log directory of broker {broker} fails")
    stage.note("directory_failed", broker=broker, lost=[list(partition) for partition in lost])
    stage.cluster.brokers[broker].fail_directory(-1)
    others = [other for other in stage.cluster.brokers if other != broker]
    for partition in lost:
        stage.wait_for_leader(partition, others)
        stage.wait_for_isr(partition, others)
    stage.let_run(load)
    stage.cluster.stop(broker)
    stage.cluster.brokers[broker].repair_directory(-1)
    stage.note("directory_repaired", broker=broker)
    stage.cluster.start(broker)
    stage.cluster.wait_for_full_isr()


def _die_and_return_without(stage: Stage, lose: Callable[[int], None]) -> None:
    with stage.busy() as (_, load):
        broker = not_the_controller(stage)
        stage.kill(broker)
        lose(broker)
        stage.let_run(load)
        stage.cluster.start(broker)
        stage.cluster.wait_for_full_isr()


def corrupt_checkpoint(stage: Stage) -> None:
    """A broker stops, its high watermark checkpoint gets a line that is no entry, it starts; then that is repaired."""
    with stage.busy() as (_, load):
        broker = not_the_controller(stage)
        stage.cluster.stop(broker)
        stage.say(f"corrupting {HIGH_WATERMARKS} of broker {broker}")
        stage.cluster.brokers[broker].corrupt_checkpoint(HIGH_WATERMARKS)
        stage.note("checkpoint_corrupted", broker=broker, file=HIGH_WATERMARKS)
        stage.let_run(load)
        _try_to_start(stage, broker)
        stage.let_run(load, rounds=6)
        stage.say(f"broker {broker} again, without the corrupt file")
        _end(stage, broker)
        stage.cluster.brokers[broker].lose_checkpoint(HIGH_WATERMARKS)
        stage.note("checkpoint_removed", broker=broker, file=HIGH_WATERMARKS)
        stage.cluster.start(broker)
        stage.cluster.wait_for_full_isr()


def _try_to_start(stage: Stage, broker: int) -> None:
    """Some releases end at once over a corrupt checkpoint, or soon after: that is what there is to see."""
    try:
        stage.cluster.start(broker)
    except NeverHappened as error:
        stage.say(f"broker {broker} does not start")
        stage.note("did_not_start", broker=broker, why=str(error).splitlines()[-1][:200])


def _end(stage: Stage, broker: int) -> None:
    process = stage.cluster.brokers[broker].process
    if process.is_running:
        stage.kill(broker)
    else:
        stage.note("had_ended", broker=broker)
        wait_for(f"broker {broker} is not registered", lambda: broker not in stage.admin.live_brokers())
