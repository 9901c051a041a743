"""Stories of requests: whole batches of three eras, and what becomes of them where lines are lost, bent, late or told
twice, where a broker hangs, is started again or hears of an older controller."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from tests.support.files.request_story import Said, at_info, batch_0_8, batch_1_1, batch_3_9, bent, later, without


def twice(batch: Callable[[int, int, int], list[Said]], bend: Callable[[list[Said]], list[Said]] = list) -> list[Said]:
    """Two batches ten seconds apart, the first of them bent."""
    return [*bend(batch(60_000, 10, 5)), *batch(70_000, 12, 6)]


def hung(batch: Callable[[int, int, int], list[Said]], by_ms: int) -> list[Said]:
    """A batch that its broker handles, and answers, so much later, and one more behind it."""
    story = batch(60_000, 10, 5)
    for name in (*RECEIPT, *METADATA[1:]):
        story = later(story, name, by_ms) if any(said.name == name for said in story) else story
    return [*story, *batch(70_000 + by_ms, 12, 6)]


def again_and_again(batch: Callable[[int, int, int], list[Said]], lacking: str) -> list[Said]:
    return [said for n in range(4) for said in without(batch(60_000 + 20_000 * n, 10 + 2 * n, 5 + n), lacking)]


def of_two(story: list[Said]) -> list[Said]:
    """The story with each line about partition t-0 once more, about t-1."""
    texts = (dict.fromkeys((said.text, said.text.replace("t-0", "t-1"))) for said in story)
    return [replace(said, text=text) for said, both in zip(story, texts, strict=True) for text in both]


def while_it_hung(*numbers: int) -> list[Said]:
    """A broker hangs as it begins to handle a request, and receives the same again each half minute."""
    first = without(batch_1_1(60_000, 10, 5), "completed", "answered", *METADATA[1:])
    again = [batch_1_1(60_000 + 30_000 * number, 10 + number, 5) for number in numbers]
    return [*first, *(said for batch in again for said in batch if said.name == "received")]


def by_threads_at_once() -> list[Said]:
    """What was sent again while the broker hung is received by two threads at once, which then refuse it."""
    received = [
        Said(2, 90_000, said.text, name="received")
        for both in zip(*(named(of_two(batch_1_1(0, number, 5)), "received") for number in (11, 12)), strict=True)
        for said in both
    ]
    refused = [
        Said(2, 90_001, IGNORED.format(number, partition), "DEBUG") for number in (12, 11) for partition in (0, 1)
    ]
    return [*of_two(batch_1_1(60_000, 10, 5)), *received, *refused, *batch_1_1(95_000, 14, 6)]


def with_epoch(story: list[Said], controller_epoch: int) -> list[Said]:
    """The story, of another epoch of its controller."""
    of = re.compile(r"(epoch[= ]|controllerEpoch=)4\b")
    return [replace(said, text=of.sub(rf"\g<1>{controller_epoch}", said.text)) for said in story]


def named(story: list[Said], name: str) -> list[Said]:
    return [said for said in story if said.name == name]


RECEIPT: Final = ("received", "started", "completed", "answered")
METADATA: Final = ("sent metadata", "cached", "cached batch", "answered metadata")
LATER_MS: Final = 1_260_000
OLD_CONTROLLER: Final = (
    "[Broker id=2] Cached leader info PartitionState(controllerEpoch=3, leader=3, leaderEpoch=4, isr=[3], zkVersion=5,"
    " replicas=[2, 1], offlineReplicas=[]) for partition t-0 in response to UpdateMetadata request sent by controller 3"
    " epoch 3 with correlation id 40"
)
IGNORED: Final = (
    "[Broker id=2] Ignoring LeaderAndIsr request from controller 1 with correlation id {} epoch 4 for partition t-{}"
    " since its associated leader epoch 5 is not higher than the current leader epoch 5"
)
REFUSED: Final = (
    "[Broker id=2] Received update metadata request with correlation id 40 from an old controller 3 with epoch {}."
    " Latest known controller epoch is 4"
)
UNCONNECTED: Final = (
    "[RequestSendThread controllerId=1] Controller 1's connection to broker localhost:9092 (id: 2 rack: null) was"
    " unsuccessful"
)
NODE_UNREACHABLE: Final = (
    "[Controller id=1, targetBrokerId=2] Connection to node 2 could not be established. Broker may not be available."
)
STORIES: Final[dict[str, list[Said]]] = {
    # its disk stood still, and its session lived on
    "hung": hung(batch_1_1, 1_200_000),
    "hung for longer than a burst": hung(batch_1_1, 2_400_000),
    "received again while it hung": while_it_hung(1, 2, 3),
    "received by threads at once": by_threads_at_once(),
    "0.8": twice(batch_0_8),
    "1.1": twice(batch_1_1),
    "3.9": twice(batch_3_9),
    "3.9 at INFO": at_info(twice(batch_3_9)),
    "not received": twice(batch_1_1, lambda story: without(story, *RECEIPT)),
    "not connected": [
        *twice(batch_1_1, lambda story: without(story, *RECEIPT)),
        *(
            Said(1, at, UNCONNECTED, "WARN", source_kind="controller_log")
            for at in (59_000, 60_100, 60_400, 60_700, 61_000)
        ),
        Said(
            1,
            60_200,
            UNCONNECTED.replace("localhost:9092 (id: 2", "localhost:9093 (id: 3"),
            "WARN",
            source_kind="controller_log",
        ),
        Said(1, 60_300, NODE_UNREACHABLE, "WARN", source_kind="server_log"),
        Said(1, 72_000, UNCONNECTED, "WARN", source_kind="controller_log"),
    ],
    "never sent": twice(batch_1_1, lambda story: without(story, "sent")),
    "never sent, 0.8": twice(batch_0_8, lambda story: without(story, "sent")),
    "other content": twice(batch_1_1, lambda story: bent(story, "sent", "leaderEpoch=5", "leaderEpoch=9")),
    "not handled": twice(batch_1_1, lambda story: without(story, "started", "completed")),
    "not handled, of no answers": without(
        twice(batch_1_1, lambda story: without(story, "started", "completed")), "answered", "answered metadata"
    ),
    "not answered": twice(batch_0_8, lambda story: without(story, "answered")),
    "late": twice(batch_1_1, lambda story: later(story, "cached", 4_000)),
    # two UpdateMetadata requests that the controller's lines do not tell apart, the first of them lost
    "one stretch": [
        *without(batch_1_1(60_000, 10, 5), "cached", "answered metadata"),
        *[said for said in batch_1_1(60_001, 12, 5) if "metadata" in said.name or said.name == "cached"],
        *batch_1_1(70_000, 14, 6),
    ],
    # the answer was lost, the controller asks again: received twice, with two correlation ids
    "sent again": [
        *without(batch_1_1(60_000, 10, 5), "answered", "cached", "answered metadata"),
        *[said for said in batch_1_1(60_020, 11, 5) if said.name in (*RECEIPT, "cached", "answered metadata")],
        *batch_1_1(70_000, 13, 6),
    ],
    # twenty minutes later the same words, for another broker started
    "the same words again": [*batch_1_1(60_000, 10, 5), *batch_1_1(LATER_MS, 12, 5)],
    "the same words again, received twice": [
        *batch_1_1(60_000, 10, 5),
        *without(batch_1_1(LATER_MS, 12, 5), "answered", "answered metadata"),
        *[said for said in batch_1_1(LATER_MS + 20, 14, 5) if said.name in (*RECEIPT, *METADATA[1:])],
    ],
    "the same words again, their sending lost": [
        *batch_1_1(60_000, 10, 5),
        *without(batch_1_1(LATER_MS, 12, 5), "sent", "sent metadata"),
    ],
    "the same words again, not received before": [
        *without(batch_1_1(60_000, 10, 5), *RECEIPT),
        *batch_1_1(70_000, 12, 6),
        *batch_1_1(LATER_MS, 14, 5),
        *[said for said in batch_1_1(LATER_MS + 20, 16, 5) if said.name in (*RECEIPT, *METADATA[1:])],
    ],
    # what one log lost of a request, and what the other lost of one of its id twenty minutes later
    "answered later": [
        *without(batch_1_1(60_000, 10, 5), "answered", *METADATA),
        *without(batch_1_1(LATER_MS, 10, 6), *RECEIPT[:3], *METADATA),
    ],
    "decided long before": [
        *(said for said in batch_1_1(60_000, 10, 5) if said.name == "decided"),
        *without(batch_1_1(LATER_MS, 10, 6), "decided"),
    ],
    # the UpdateMetadata request that names the epoch was lost, and the next is of another tenure
    "epoch unknown at INFO": [
        *(said for said in at_info(batch_3_9(60_000, 10, 5)) if said.name not in METADATA),
        *bent(at_info(batch_3_9(LATER_MS, 10, 6)), "cached batch", "epoch 4", "epoch 5"),
    ],
    "in another burst": [*batch_1_1(60_000, 10, 5), *batch_1_1(2 * LATER_MS, 10, 5), *batch_3_9(2 * LATER_MS, 20, 6)],
    # the broker registered anew: its connection counts from 10 again
    "ids begin anew": [*batch_1_1(60_000, 10, 5), *batch_1_1(63_000, 10, 6)],
    # elected again, and soon of one id: other partitions
    "ids begin anew, of another epoch": [
        *batch_1_1(60_000, 10, 5),
        *(replace(said, text=said.text.replace("t-0", "t-1")) for said in with_epoch(batch_1_1(63_000, 10, 6), 5)),
    ],
    # minutes later, and the lines of the receipt are lost
    "ids begin anew, of another epoch, unopened": [
        *batch_1_1(60_000, 10, 5),
        *without(with_epoch(batch_1_1(200_000, 10, 6), 5), "received"),
    ],
    "old controller": [*twice(batch_1_1), Said(2, 80_000, OLD_CONTROLLER)],
    "old controller, restarted": [*twice(batch_1_1), Said(2, 80_000, OLD_CONTROLLER)],
    "refused": [*twice(batch_1_1), Said(2, 80_000, REFUSED.format(3), "WARN")],
    "refused wrongly": [*twice(batch_1_1), Said(2, 80_000, REFUSED.format(4), "WARN")],
    "lossy": again_and_again(batch_1_1, "started"),
    "fewer sent than counted": again_and_again(batch_3_9, "sent"),
    "fewer received than counted": again_and_again(batch_3_9, "received"),
    # its log lost the lines between: the UpdateMetadata is of a later connection, which counts anew
    "next of another connection": [
        *without(batch_3_9(60_000, 10, 5), *METADATA),
        *(said for said in batch_3_9(70_000, 10, 6) if said.name in METADATA),
    ],
    # of two lines that a request counts one is lost, and the other was given twice
    "a line twice": twice(
        batch_3_9,
        lambda story: [
            *bent(story, "handling", "for 1 partitions", "for 2 partitions"),
            *(said for said in story if said.name == "received"),
        ],
    ),
}
