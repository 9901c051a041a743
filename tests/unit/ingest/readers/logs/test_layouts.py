"""Layouts and wrappers: each reads its own samples, and is found from lines of its own."""

from __future__ import annotations

import pytest

from ingest.readers.logs.layouts import (
    LAYOUT_BY_NAME,
    LAYOUTS,
    WRAPPER_BY_NAME,
    detect,
    explain,
    reading,
    sample,
    split_position,
)
from ingest.readers.logs.patterns import Layout
from ingest.readers.logs.times import LogClock
from ingest.readers.logs.wrappers import WRAPPERS, Wrapper
from ingest.readers.logs.writers import kind_of_logger
from tests import ROOT
from tests.support.files.log_samples import LAYOUT_SAMPLES, WRAPPER_SAMPLES
from tests.support.loops import for_each
from tests.unit.ingest.readers.logs.rendering import LAYOUT_RENDERERS, WRAPPER_RENDERERS, Record

STARTED = Record("[KafkaServer id=1] started")
RECORDS = [
    STARTED,
    Record("Cluster ID = abc", level="WARN"),
    Record("[Log partition=t-0] Loading", stack=("\tat a.b",)),
]


@for_each(layout=LAYOUTS)
def test_a_layout_reads_its_samples_and_is_found_from_them(layout: Layout) -> None:
    for text in LAYOUT_SAMPLES[layout.name]:
        content, header = reading(layout.name).record(text.encode())
        assert header is not None
        assert LogClock("UTC", "2024-05-01").micros(header.group("time").decode()) is not None
        assert content[0][header.end() :]
        found = detect([text.encode()])
        assert found is not None
        assert found.name == layout.name


@pytest.mark.parametrize("wrapper", WRAPPERS, ids=lambda wrapper: wrapper.name)
def test_a_wrapper_is_taken_off_its_samples(wrapper: Wrapper) -> None:
    for text in WRAPPER_SAMPLES[wrapper.name]:
        unwrapped = wrapper.unwrap(text.encode())
        assert unwrapped is not None
        assert unwrapped.text.startswith(b"[20")
        assert not unwrapped.more
        found = detect([text.encode()])
        assert found is not None
        assert found.name == f"{wrapper.name}+bracketed"


def test_every_layout_and_every_wrapper_is_documented() -> None:
    page = (ROOT / "docs" / "sources" / "logs.md").read_text()
    assert [name for name in [*LAYOUT_BY_NAME, *WRAPPER_BY_NAME] if f"`{name}`" not in page] == []


def test_every_layout_and_every_wrapper_can_be_written() -> None:
    assert LAYOUT_RENDERERS.keys() == LAYOUT_BY_NAME.keys()
    assert WRAPPER_RENDERERS.keys() == WRAPPER_BY_NAME.keys()


@for_each(layout=LAYOUT_RENDERERS, wrapper=[None, *WRAPPER_RENDERERS])
def test_a_layout_is_found_inside_a_wrapper(layout: str, wrapper: str | None) -> None:
    lines = [line for record in RECORDS for line in LAYOUT_RENDERERS[layout](record)]
    if wrapper is not None:
        lines = [WRAPPER_RENDERERS[wrapper](line, "kafka-1") for line in lines]
    found = detect([line.encode() for line in lines])
    assert found is not None
    assert found.name == (f"{wrapper}+{layout}" if wrapper else layout)
    assert reading(found.name) == found


@pytest.mark.parametrize(
    ("wrappers", "line"),
    [
        ("compose+timestamped+ansi", "k  | 2024-05-01T10:00:00.1Z [2024-05-01 10:00:00,1] \x1b[32mINFO\x1b[m x (k.A)"),
        ("pod+timestamped", "[pod/kafka-0/kafka] 2024-05-01T10:00:00.1Z [2024-05-01 10:00:00,1] INFO x (kafka.A)"),
        ("timestamped+compose", "2024-05-01T10:00:00.1Z k.1.ab@n1    | [2024-05-01 10:00:00,1] INFO x (kafka.A)"),
        ("ansi+stern", "\x1b[36mk-0\x1b[0m \x1b[32mkafka\x1b[0m [2024-05-01 10:00:00,1] INFO x (kafka.A)"),
    ],
)
def test_wrappers_lie_around_one_another(wrappers: str, line: str) -> None:
    found = detect([line.encode()] * 3)
    assert found is not None
    assert found.name == f"{wrappers}+bracketed"


def test_docker_writes_json_around_json() -> None:
    inner = LAYOUT_RENDERERS["json_ecs"](STARTED)[0]
    found = detect([WRAPPER_RENDERERS["docker_json"](inner, "").encode()])
    assert found is not None
    assert found.name == "docker_json+json_ecs"


def test_a_layout_is_found_where_a_runtime_cut_every_line() -> None:
    line = "[2024-05-01 10:00:00,123] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)"
    pieces = [f"2024-05-01T10:00:00.1Z stdout P {line[:40]}", f"2024-05-01T10:00:00.1Z stdout F {line[40:]}"]
    found = detect([piece.encode() for piece in pieces * 10])
    assert found is not None
    assert found.name == "kubernetes+bracketed"


def test_a_log_whose_lines_are_all_cut_off_is_of_the_plain_layout() -> None:
    found = detect([b"[2024-05-01 10:00:00,123] INFO [KafkaServer id=1] a line without its e"])
    assert found is not None
    assert found.name == "bracketed"


def test_kafkas_own_identifier_in_brackets_is_no_thread() -> None:
    found = detect(
        [
            b"[2026-11-21 03:30:16,055] INFO [Controller id=1 epoch=1] Sending LeaderAndIsr (state.change.logger)",
            b"[2026-11-21 03:30:16,055] INFO [Broker id=1] Handling LeaderAndIsr (state.change.logger)",
        ]
    )
    assert found is not None
    assert found.name == "bracketed"


def test_lines_of_other_processes_do_not_hide_kafkas_layout() -> None:
    zookeeper = b"2024-05-01 10:00:00,123 [myid:1] - INFO  [main:o.a.z.s.ZooKeeperServer@123] - starting"
    kafka = b"[2024-05-01 10:00:00,123] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)"
    lines = [b"zookeeper-1  | " + zookeeper] * 3000 + [b"kafka-1      | " + kafka] * 3000
    found = detect(sample(lines))
    assert found is not None
    assert found.name == "compose+bracketed"


@pytest.mark.parametrize(
    "line",
    [
        b'{"captured_at":1,"path":"/brokers","data":"x","czxid":1,"mzxid":3,"ctime":1,"mtime":1,"version":0}',
        b'{"sent_at":1,"received_at":2,"replica_id":-2,"topic":"t","partition":0,"offset":3}',
        b'{"ts": 1, "what": "kill", "message": "broker 1"}',
        b"broker.id=1",
        b"hello world",
        b"0",
    ],
)
def test_what_is_no_log_has_no_layout(line: bytes) -> None:
    assert detect([line] * 3) is None


def test_a_sample_is_the_first_lines_and_some_of_the_rest() -> None:
    lines = [b"%d" % number for number in range(1000)]
    assert sample(lines[:3]) == lines[:3]
    taken = sample(lines, 10)
    assert taken[:2] == lines[:2]
    assert len(taken) == 10
    assert int(taken[-1]) > 700


@pytest.mark.parametrize(
    ("head", "words"),
    [
        ("[2024-05-01 10:00:00,123] INFO x (kafka.A)\n".encode("utf-16"), "UTF-16"),
        ("[2024-05-01 10:00:00,123] INFO x (kafka.A)\n".encode("utf-16-le"), "UTF-16"),
        (b'[ {\n  "thread" : "main",\n  "level" : "INFO",\n  "message" : "x"\n}, {\n', "jq -c"),
        (b'[{"timeMillis":1,"level":"INFO","message":"x"}, {"timeMillis":2,"level":"INFO","message":"y"}]\n', "'.[]'"),
        (b'<log4j:event logger="kafka.A" timestamp="1" level="INFO">\n', "XML"),
        (b"[03/04/2024 10:00:00,123] INFO x (kafka.A)\n", "day or the month"),
        (b"hello\nworld\n", None),
        (b"\0\1\2\3" * 9, None),
    ],
)
def test_a_log_that_cannot_be_read_says_what_to_do(head: bytes, words: str | None) -> None:
    assert detect(head.split(b"\n")) is None
    why = explain(head)
    assert why == words or (why is not None and words is not None and words in why)


@pytest.mark.parametrize(
    ("logger", "kind"),
    [
        ("state.change.logger", "state_change_log"),
        ("logger", "state_change_log"),
        ("kafka.controller.KafkaController", "controller_log"),
        ("kafka.controller", "controller_log"),
        ("KafkaController", "controller_log"),
        ("controller.PartitionStateMachine$AddPartitionsListener", "controller_log"),
        ("k.c.TopicDeletionManager", "controller_log"),
        ("org.apache.kafka.controller.QuorumController", "controller_log"),
        ("k.c.Partition", "server_log"),
        ("kafka.server.KafkaServer", "server_log"),
        ("com.example.KafkaController", "server_log"),
    ],
)
def test_the_logger_tells_the_kind_also_where_it_is_shortened(logger: str, kind: str) -> None:
    assert kind_of_logger(logger) == kind


LINE = b"[2024-05-01 10:00:00,123] INFO x (kafka.A)\n"


def test_a_wrapped_log_is_split_where_a_record_begins() -> None:
    how = reading("timestamped+bracketed")
    stamp = b"2024-05-01T10:00:00.1Z "
    block = b"broken\n" + stamp + b"\tat a.b\n" + stamp + LINE
    assert how.can_split
    assert split_position(how, block) == len(b"broken\n" + stamp + b"\tat a.b\n")


def test_a_log_of_several_processes_is_split_where_all_of_them_begin_a_record() -> None:
    how = reading("compose+bracketed")
    one, two = b"kafka-1  | ", b"kafka-2  | "
    before = b"x\n" + one + LINE + two + b"\tat a.b\n"
    block = before + one + LINE + two + LINE + two + b"\tat c.d\n"
    assert split_position(how, block, [b"kafka-1", b"kafka-2"]) == len(before)
    assert split_position(how, block, [b"kafka-1", b"kafka-2", b"kafka-3"]) is None
    assert split_position(how, before, [b"kafka-1", b"kafka-2"]) is None


@pytest.mark.parametrize("name", ["kubernetes+bracketed", "docker_json+bracketed", "journald_json+bracketed"])
def test_where_lines_come_in_pieces_a_log_is_not_split(name: str) -> None:
    assert not reading(name).can_split
    assert split_position(reading(name), b"\n" + LINE * 3) is None
