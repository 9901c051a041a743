"""Which processes wrote a file, and which broker each is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ingest.readers.logs.layouts import reading
from ingest.readers.logs.streams import StreamFacts

HEAD = "[2024-05-01 10:00:00,123] INFO "
LINES = [
    f"kafka-1      | {HEAD}[KafkaServer id=1] started (kafka.server.KafkaServer)",
    f"kafka-2      | {HEAD}[Controller id=2] Ready (kafka.controller.KafkaController)",
    f"kafka-2      | {HEAD}Loading (kafka.log.Log)",
    f"zookeeper    | {HEAD}binding to port 0.0.0.0/0.0.0.0:2181 (org.apache.zookeeper.server.NIOServerCnxnFactory)",
    "kafka-1      | \tat a.b",
    f"mixed        | {HEAD}[KafkaServer id=1] started (kafka.server.KafkaServer)",
    f"mixed        | {HEAD}[KafkaServer id=2] started (kafka.server.KafkaServer)",
]
DATA = "".join(line + "\n" for line in LINES).encode()


@given(st.integers(1, 300))
def test_each_process_is_the_broker_its_records_say(size: int) -> None:
    facts = StreamFacts(reading("compose+bracketed"))
    for start in range(0, len(DATA), size):
        facts.take(DATA[start : start + size])
    assert facts.result() == {"kafka-1": 1, "kafka-2": 2, "mixed": None, "zookeeper": None}
    assert facts.process_count == 4


def test_a_few_records_that_speak_of_another_broker_do_not_count() -> None:
    facts = StreamFacts(reading("compose+bracketed"))
    facts.take((LINES[0] + "\n").encode() * 20 + LINES[0].replace("id=1", "id=3").encode() + b"\n")
    assert facts.result() == {"kafka-1": 1}


def test_lines_that_name_no_process_have_no_streams() -> None:
    for name in ("bracketed", "kubernetes+bracketed", "docker_json+bracketed"):
        facts = StreamFacts(reading(name))
        facts.take(f"{HEAD}[KafkaServer id=1] started (kafka.A)\n".encode())
        assert facts.result() == {}


def test_a_file_is_split_where_every_process_begins_a_record() -> None:
    facts = StreamFacts(reading("compose+bracketed"))
    facts.take(DATA)
    assert facts.split(b"broken\n" + DATA) == len(b"broken\n")
    open_stack = "".join(line + "\n" for line in LINES[3:]).encode()
    assert facts.split(b"broken\n" + open_stack) is None
    behind_it = len("broken\n" + LINES[3] + "\n" + LINES[4] + "\n")
    assert facts.split(b"broken\n" + open_stack + DATA) == behind_it
