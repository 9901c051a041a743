"""JSON that is nested deeper than anybody means: nothing raises on it, wherever it stands and however deep it is."""

from __future__ import annotations

import time
from typing import Final

import pytest

from ingest.readers.capture_lines import json_lines
from ingest.readers.secrets import HIDDEN, masked_znode
from ingest.readers.work import Kept, Rejected
from ingest.readers.zookeeper.transaction_log import read
from ingest.shapes import match
from ingest.shapes.partition_lists import assignment_json
from ingest.shapes.structs import leader_and_isr_json
from ingest.shapes.values import json_object
from reconstruct.clocks.evidence import ZnodeFact, znode_marks
from tests.support.files import jute
from tests.unit.ingest.readers.zookeeper.records import column, item_of, read_all, reasons

#: Python follows some 990 levels, less where more of the program is around it: what it reads it may not print.
DEPTHS: Final = (2, 100, 900, *range(930, 1000), 10_000)
LOGGERS: Final = (("controller_log", "kafka.controller.KafkaController"), ("server_log", "kafka.utils.ZkUtils$"))
STATE: Final = "/brokers/topics/t/partitions/0/state"


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


@pytest.mark.parametrize("depth", DEPTHS)
def test_values_of_messages_and_znodes(depth: int) -> None:
    deep = nested(depth)
    state = f'{{"leader":{deep},"leader_epoch":{deep},"isr":{deep},"controller_epoch":1}}'
    assert json_object(f'{{"a":{deep},"b":[1,"x"],"c":2}}') in ({}, {"b": [1, "x"], "c": 2})
    assert set(leader_and_isr_json(state)) <= {"state_controller_epoch"}
    for listed in (f'{{"0":{deep}}}', f'[{{"topic":{deep},"partition":0,"replicas":[1]}}]', f"[{deep}]"):
        assert "replicas" not in assignment_json(f'{{"partitions":{listed}}}')
    fact = ZnodeFact("e", STATE, state, 1, 1, 1, 1, state, 0)
    assert all(len(mark.key) < 100 for mark in znode_marks(fact))
    config = f'{{"version":1,"config":{{"ssl.key.password":"hunter2","x":{deep}}}}}'
    assert "hunter2" not in str(masked_znode("/config/brokers/1", config))
    assert HIDDEN in str(masked_znode("/config/brokers/1", config))
    (found,) = json_lines.objects(item_of(b""), [f'{{"a":{deep}}}\n'.encode()])
    assert isinstance(found[1], dict) or found[1].startswith("no JSON: ")


@pytest.mark.parametrize("depth", [900, 980, 10_000])
def test_whole_messages(depth: int) -> None:
    deep = nested(depth)
    for message in (
        f'New leader and ISR for partition [t,0] is {{"leader":{deep},"isr":{deep}}}',
        f'Conditional update of path {STATE} with value {{"leader":{deep},"leader_epoch":1,"isr":[1]}} and expected'
        " version 1 succeeded, returning the new version: 2",
        f'Writing to {STATE} {{"partitions":{deep}}}',
    ):
        for kind, logger in LOGGERS:
            found = match(kind, logger, message)
            assert found is None or all(len(value) <= len(message) for value in dict(found.fields).values())


def test_a_znode_that_names_a_million_partitions_is_one_rejected_record_and_the_next_is_read() -> None:
    """And one of as much as a record may have is read, in time that grows with it."""
    entry = '{"topic":"t","partition":%d,"replicas":[1,2,3]}'
    many = '{"version":1,"partitions":[' + ",".join(entry % number for number in range(1_000_000)) + "]}"
    fitting = many[: (8 << 20) - 200].rpartition(",{")[0] + "]}"
    path = "/admin/reassign_partitions"
    began = time.process_time()
    bodies = ((1, jute.create(path, many)), (5, jute.set_data(path, fitting, 1)), (2, jute.text(path)))
    data = jute.log(*(jute.transaction(number, *body) for number, body in enumerate(bodies, 1)))
    rows = read_all(read, data)
    assert [type(row) for row in rows] == [Rejected, Kept, Kept]
    assert "more than the 8 MiB it may have" in reasons(rows)[0]
    assert column(rows, "data") == [fitting, None]
    assert assignment_json(fitting)["topic_partitions"].count(",") == fitting.count('"topic"') - 1
    assert time.process_time() - began < 20
