"""Brokers asked over loopback: what is asked, in which version, and what becomes of the answers."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ingest.capture import BrokerFiles, CaptureError, CaptureParams, CaptureSummary, run_capture
from ingest.capture.brokers import requests
from ingest.capture.brokers.client import BrokerClient
from ingest.capture.brokers.descriptions import HiddenTopics
from ingest.capture.brokers.failures import BrokerUnreachable
from ingest.capture.brokers.prober import Prober
from ingest.capture.brokers.shared import Shared
from ingest.capture.missed import Missed
from ingest.capture.output import CaptureFolder, JsonLines
from ingest.readers.capture_lines import offset_probes
from ingest.readers.work import Kept, WorkItem
from tests import ROOT
from tests.unit.ingest.capture.fake_broker import (
    KRAFT_3_9,
    KRAFT_4_0,
    SINCE_0_8_2,
    SINCE_1_1,
    SINCE_3_9,
    SINCE_4_0,
    FakeBroker,
    FakeCluster,
)

#: Of two partitions of one topic and one of another: replicas, log end offset, high watermark.
ALONE = {("orders", 0): ([1], 12, 10)}
PARTITIONS = {("orders", 0): ([1, 2], 12, 10), ("orders", 1): ([2, 1], 7, 7), ("audit", 0): ([2], 0, 0)}


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    made = FakeCluster(PARTITIONS)
    yield made
    for broker in made.brokers.values():
        broker.close()


def params(out: Path, broker: FakeBroker, **more: Any) -> CaptureParams:
    given: dict[str, Any] = {"interval_s": 0.1, "request_timeout_s": 20.0} | more
    return CaptureParams(str(out), bootstrap_servers=broker.address, **given)


def capture(out: Path, broker: FakeBroker, **more: Any) -> CaptureSummary:
    """One round: each broker takes part in the last one, however busy the machine, and may miss those before it."""
    return run_capture(params(out, broker, rounds=1, **more), threading.Event())


class Running:
    """A capture in a thread of its own, round after round until the ``with`` ends; ``summary`` is there then."""

    def __init__(self, given: CaptureParams) -> None:
        self.said: list[str] = []
        self.summary: CaptureSummary
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(given,))

    def _run(self, given: CaptureParams) -> None:
        self.summary = run_capture(given, self._stop, self.said.append)

    def __enter__(self) -> Running:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def wait_for(self, holds: Callable[[], object]) -> None:
        """Wait until it holds, for a minute at most, however busy the machine."""
        until = time.monotonic() + 60
        while not holds():
            assert time.monotonic() < until, self.said
            time.sleep(0.02)

    def wait_until_said(self, words: str) -> None:
        self.wait_for(lambda: any(words in sentence for sentence in self.said))


def lines(path: Path) -> list[dict[str, Any]]:
    """Those that are written whole: none while there is no such file."""
    written = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in written[: written.rfind("\n") + 1].splitlines()]


def offsets(path: Path) -> set[tuple[int, int, str, int, int]]:
    return {(e["broker"], e["replica_id"], e["topic"], e["partition"], e["offset"]) for e in lines(path)}


@pytest.mark.parametrize(
    ("versions", "asked"),
    [(SINCE_0_8_2, 0), (SINCE_1_1, 2), (SINCE_3_9, 5), (SINCE_4_0, 5)],
    ids=["0.8.2", "1.1", "3.9", "4.0"],
)
def test_every_replica_tells_its_log_end_and_the_leader_its_high_watermark(cluster, tmp_path, versions, asked):
    one, _ = FakeBroker(cluster, 1, versions), FakeBroker(cluster, 2, versions)
    summary = capture(tmp_path / "c", one)
    assert offsets(tmp_path / "c/probes-1.jsonl") == {
        (1, -2, "orders", 0, 12),
        (1, -2, "orders", 1, 7),
        (1, -1, "orders", 0, 10),
    }
    assert offsets(tmp_path / "c/probes-2.jsonl") == {
        (2, -2, "orders", 0, 12),
        (2, -2, "orders", 1, 7),
        (2, -2, "audit", 0, 0),
        (2, -1, "orders", 1, 7),
        (2, -1, "audit", 0, 0),
    }
    assert one.asked["ListOffsets", asked] == 2
    assert summary.answers == 8
    assert summary.missed == ()


def test_a_line_is_as_the_captures_have_it(cluster, tmp_path):
    broker = FakeBroker(cluster, 1), FakeBroker(cluster, 2)
    capture(tmp_path / "c", broker[0])
    (entry, *_) = lines(tmp_path / "c/probes-1.jsonl")
    assert list(entry) == ["sent_at", "received_at", "broker", "replica_id", "topic", "partition", "offset"]
    assert 0 <= entry["received_at"] - entry["sent_at"] < 5000


def test_the_ingest_keeps_every_line(cluster, tmp_path):
    broker = FakeBroker(cluster, 1), FakeBroker(cluster, 2)
    with Running(params(tmp_path / "c", broker[0])) as capture:  # of two rounds and more
        for broker_id, of_round in ((1, 3), (2, 5)):
            path = tmp_path / f"c/probes-{broker_id}.jsonl"
            capture.wait_for(lambda path=path, of_round=of_round: len(lines(path)) >= 2 * of_round)
    kept = 0
    for path in (tmp_path / "c").glob("probes-*.jsonl"):
        data = path.read_bytes()
        item = WorkItem("", None, "", "offset_probe", "c", None, "f", "f", len(data))
        rows = list(offset_probes.read(item, [data]))
        assert [row for row in rows if not isinstance(row, Kept)] == []
        kept += len(rows)
    assert kept == capture.summary.answers >= 16


def test_a_broker_that_knows_no_reassignments_or_log_dirs_is_not_asked_for_them(cluster, tmp_path):
    broker = FakeBroker(cluster, 1, SINCE_0_8_2)
    FakeBroker(cluster, 2, SINCE_0_8_2)
    capture(tmp_path / "c", broker)
    assert {name for name, _ in broker.asked} == {"Metadata", "ListOffsets"}
    assert not (tmp_path / "c/log-dirs.jsonl").exists()
    assert not (tmp_path / "c/reassignments.jsonl").exists()


def test_descriptions_are_written_once_while_they_stay_the_same(cluster, tmp_path):
    def told() -> list[dict[str, Any]]:
        return [e for e in lines(tmp_path / "c/descriptions.jsonl") if e["broker"] == 1]

    broker = FakeBroker(cluster, 1), FakeBroker(cluster, 2)
    with Running(params(tmp_path / "c", broker[0], metadata_every=1, interval_s=0.05)) as capture:
        capture.wait_for(lambda: [e["description"] for e in told()].count("cluster") >= 3)
    assert sorted(e["topic"] for e in told() if e["description"] == "topic") == ["audit", "orders"]
    (orders,) = (e for e in told() if e.get("topic") == "orders")
    assert orders["partitions"][1] | {"leader_epoch": None, "offline_replicas": None, "error_code": 0} == {
        "partition": 1,
        "error_code": 0,
        "leader": 2,
        "leader_epoch": None,
        "replicas": [2, 1],
        "isr": [2, 1],
        "offline_replicas": None,
    }


def test_lags_of_log_directories_and_reassignments_are_recorded(cluster, tmp_path):
    cluster.reassigning = {("orders", 0): ([3], [2])}
    broker = FakeBroker(cluster, 1), FakeBroker(cluster, 2)
    capture(tmp_path / "c", broker[0])
    lags = {
        (e["broker"], e["topic"], e["partitions"][0]["partition"]): e["partitions"][0]["offset_lag"]
        for e in lines(tmp_path / "c/log-dirs.jsonl")
        if "partitions" in e
    }
    assert lags[1, "orders", 0] == 2
    (told,) = lines(tmp_path / "c/reassignments.jsonl")
    assert (told["broker"], told["reassignments"]) == (
        1,
        [{"topic": "orders", "partition": 0, "replicas": [1, 2], "adding_replicas": [3], "removing_replicas": [2]}],
    )


def test_a_refused_description_is_said_and_the_rest_recorded(cluster, tmp_path):
    cluster.log_dir_error = 31
    broker = FakeBroker(cluster, 1), FakeBroker(cluster, 2)
    summary = capture(tmp_path / "c", broker[0])
    assert summary.answers == 8
    assert "log dirs of broker 1 not recorded: no permission to DESCRIBE the cluster" in summary.missed


def test_before_3_2_a_refused_description_is_an_empty_one(cluster, tmp_path):
    cluster.log_dir_error = 31
    one, _ = FakeBroker(cluster, 1, SINCE_1_1), FakeBroker(cluster, 2, SINCE_1_1)
    summary = capture(tmp_path / "c", one)
    assert summary.missed == tuple(
        f"log dirs of broker {broker} not recorded: the broker names none: no permission to DESCRIBE the cluster"
        for broker in (1, 2)
    )


def test_brokers_that_describe_no_topic_are_not_taken_for_a_cluster_without_any(cluster, tmp_path):
    cluster.hidden = {"orders", "audit"}
    one, _ = FakeBroker(cluster, 1), FakeBroker(cluster, 2)
    (sentence,) = capture(tmp_path / "c", one).missed
    assert sentence.startswith("probes of any topic not recorded")
    assert sentence.endswith("no topic is described: there is none, or no permission to DESCRIBE one")


class TestHiddenTopics:
    @pytest.fixture
    def said(self) -> list[str]:
        return []

    @pytest.fixture
    def missed(self, said: list[str]) -> Missed:
        return Missed(lambda lines: None, said.append)

    def test_what_the_cluster_has_and_brokers_refuse_by_name_is_said_once(self, cluster, missed, said):
        cluster.hidden = {"audit"}
        hidden = HiddenTopics(lambda: ("audit", "new", "orders"), missed)
        client = BrokerClient("127.0.0.1", FakeBroker(cluster, 1).port, {}, timeout_s=5)
        for _ in range(2):
            assert hidden.doubtful({"orders"}) == ["audit", "new"]
            hidden.answered(client.ask(requests.metadata(12, ["audit", "new"])))
        client.close()
        assert said == ["probes of topics without permission not recorded: no permission to DESCRIBE audit"]

    def test_a_topic_that_brokers_do_not_know_yet_is_not_said_to_be_hidden(self, cluster, missed, said):
        hidden = HiddenTopics(lambda: ("new", "orders"), missed)
        client = BrokerClient("127.0.0.1", FakeBroker(cluster, 1).port, {}, timeout_s=5)
        hidden.answered(client.ask(requests.metadata(12, hidden.doubtful({"orders"}))))
        client.close()
        assert said == []

    def test_of_more_than_are_asked_about_it_is_said_that_there_may_be_more(self, cluster, missed, said):
        known = [f"t{number:03}" for number in range(600)]
        cluster.hidden = set(known)
        hidden = HiddenTopics(lambda: known, missed)
        client = BrokerClient("127.0.0.1", FakeBroker(cluster, 1).port, {}, timeout_s=5)
        hidden.answered(client.ask(requests.metadata(12, hidden.doubtful(()))))
        client.close()
        assert [sentence.rpartition(": ")[2] for sentence in said] == [
            "no permission to DESCRIBE t000 and at least 499 more"
        ]

    def test_with_permission_it_is_over(self, missed, said):
        known = ["audit"]
        hidden = HiddenTopics(lambda: known, missed)
        assert hidden.doubtful(()) == ["audit"]
        hidden._judge(("audit",))
        assert hidden.doubtful({"audit"}) == []
        assert said[1].startswith("probes of topics without permission recorded again after")

    def test_a_cluster_that_has_no_topic_hides_none(self, missed, said):
        assert HiddenTopics(lambda: (), missed).doubtful(()) == []
        assert said == []


def test_a_connection_that_was_closed_between_two_rounds_costs_no_round(cluster, tmp_path):
    broker = FakeBroker(cluster, 1)
    cluster.partitions = {("orders", 0): ([1], 12, 10)}
    folder = CaptureFolder(str(tmp_path / "c"))
    said: list[str] = []
    probes = JsonLines(folder, "probes-1.jsonl")
    others = [JsonLines(folder, f"{name}.jsonl") for name in ("descriptions", "log-dirs", "reassignments")]
    missed = Missed(lambda lines: None, said.append)
    hidden = HiddenTopics(lambda: None, missed)
    shared = Shared(CaptureParams("c"), {}, *others, missed, hidden, lambda view: None, lambda error: None)
    prober = Prober(1, ("127.0.0.1", broker.port), probes, shared)
    for number in (1, 2, 3):
        prober.try_round(number)
        broker.hang_up()
    prober.disconnect()
    assert said == []
    assert probes.written == 6
    folder.close()


def test_a_listener_that_never_answers_the_handshake_of_tls_is_out_in_time():
    """As a broker that is frozen: the system takes the connection for it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        began = time.monotonic()
        with pytest.raises(BrokerUnreachable, match="does not answer in time"):
            BrokerClient("127.0.0.1", listening.getsockname()[1], {"security_protocol": "SSL"}, timeout_s=0.5)
        assert time.monotonic() - began < 20


def test_what_is_no_broker_at_all_is_one_sentence():
    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listening.accept()
                connection.recv(100)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
                connection.close()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, daemon=True).start()
        with pytest.raises(BrokerUnreachable) as raised:
            BrokerClient("127.0.0.1", listening.getsockname()[1], {}, timeout_s=2)
        assert f"127.0.0.1:{listening.getsockname()[1]}" in str(raised.value)
        listening.shutdown(socket.SHUT_RDWR)


def test_no_request_is_larger_than_asked(cluster, tmp_path):
    cluster.partitions = {("t", number): ([1], number, number) for number in range(25)}
    broker = FakeBroker(cluster, 1)
    capture(tmp_path / "c", broker, partitions_per_request=10)
    assert broker.asked["ListOffsets", 5] == 6
    assert len(offsets(tmp_path / "c/probes-1.jsonl")) == 50


def test_no_broker_is_asked_more_often_than_allowed(cluster, tmp_path):
    cluster.partitions = {("t", number): ([1], number, number) for number in range(30)}
    broker = FakeBroker(cluster, 1)
    began = time.monotonic()
    with Running(params(tmp_path / "c", broker, partitions_per_request=1, max_requests_per_second=20)) as capture:
        capture.wait_for(lambda: broker.asked["ListOffsets", 5] >= 35)
    # a second's permits may be saved up
    assert broker.asked["ListOffsets", 5] <= 20 + 20 * (time.monotonic() - began)


def test_a_broker_that_is_killed_and_started_again_costs_only_its_own_answers(cluster, tmp_path):
    one, two = FakeBroker(cluster, 1), FakeBroker(cluster, 2)
    probes = tmp_path / "c/probes-1.jsonl"
    with Running(params(tmp_path / "c", one)) as capture:
        capture.wait_for(lambda: lines(tmp_path / "c/probes-2.jsonl"))
        two.close()
        capture.wait_until_said("of broker 2 not recorded")
        before = len(lines(probes))
        capture.wait_for(lambda: len(lines(probes)) >= before + 9)  # three rounds without broker 2
        FakeBroker(cluster, 2, port=two.port)
        capture.wait_until_said("of broker 2 recorded again")
    assert [sentence for sentence in capture.summary.missed if "broker 1" in sentence] == []
    told = [entry for entry in lines(tmp_path / "c/missed.jsonl") if entry["of"] == "broker 2"]
    assert [entry["missed_to"] is None for entry in told] == [True, False]


def test_a_partition_that_moves_is_followed_to_its_new_broker(cluster, tmp_path):
    one, two = FakeBroker(cluster, 1), FakeBroker(cluster, 2)
    capture(tmp_path / "c", one)
    cluster.partitions["orders", 0] = ([2], 20, 20)
    with Running(params(tmp_path / "c", two)) as later:
        later.wait_for(lambda: (2, -1, "orders", 0, 20) in offsets(tmp_path / "c/probes-2.jsonl"))


NO_METADATA_LOG = (
    "the metadata log not recorded: no folder that was given holds __cluster_metadata-0: capture with --log-dirs on a"
    " node's machine too"
)


def test_a_metadata_log_within_reach_is_copied_beside_the_answers(cluster, tmp_path):
    cluster.partitions = ALONE
    quorum = tmp_path / "data" / "__cluster_metadata-0"
    quorum.mkdir(parents=True)
    shutil.copy(ROOT / "tests/data/kraft-4.1.0/broker-1/__cluster_metadata-0/00000000000000000000.log", quorum)
    node = BrokerFiles(1, log_dirs=(str(tmp_path / "data"),))
    summary = capture(tmp_path / "c", FakeBroker(cluster, 1, KRAFT_4_0), brokers=(node,))
    assert summary.missed == ()
    assert (tmp_path / "c/broker-1/__cluster_metadata-0/00000000000000000000.log").stat().st_size > 0


def of_kind(out: Path, kind: str) -> list[dict[str, Any]]:
    return [entry for entry in lines(out / "descriptions.jsonl") if entry["description"] == kind]


def test_a_quorum_and_who_is_fenced_and_eligible_is_described(cluster, tmp_path):
    one, _ = FakeBroker(cluster, 1, KRAFT_4_0), FakeBroker(cluster, 2, KRAFT_4_0)
    cluster.controller_id = 77  # Metadata names any broker
    cluster.fenced = {3}
    cluster.elr = {("orders", 1): ([2], [1])}
    cluster.reassigning = {("orders", 0): ([3], [2])}
    with Running(params(tmp_path / "c", one)) as capture:
        capture.wait_for(lambda: len(of_kind(tmp_path / "c", "quorum")) > 1)
        capture.wait_for(lambda: lines(tmp_path / "c/reassignments.jsonl"))
        for broker in (1, 2):  # its first round, with all descriptions, is over
            capture.wait_for(lambda path=tmp_path / f"c/probes-{broker}.jsonl": lines(path))
    assert capture.summary.missed == (NO_METADATA_LOG,)
    quorum = of_kind(tmp_path / "c", "quorum")
    assert {(e["leader"], e["leader_epoch"], e["high_watermark"], e["broker"]) for e in quorum} == {(101, 4, 51, 1)}
    assert [(voter["id"], voter["log_end_offset"]) for voter in quorum[0]["voters"]] == [(101, 151), (102, 152)]
    registered = of_kind(tmp_path / "c", "registered_brokers")
    assert [[(b["id"], b["is_fenced"]) for b in e["brokers"]] for e in registered] == [
        [(1, False), (2, False), (3, True)]
    ] * 2
    told = of_kind(tmp_path / "c", "topic_elr")
    assert [(e["topic"], e["partitions"]) for e in told] == [
        ("orders", [{"partition": 1, "eligible_leader_replicas": [2], "last_known_elr": [1]}])
    ] * 2
    moves = lines(tmp_path / "c/reassignments.jsonl")
    assert {move["reassignments"][0]["topic"] for move in moves} == {"orders"}


def test_before_4_0_no_answer_names_fenced_brokers(cluster, tmp_path):
    one = FakeBroker(cluster, 1, KRAFT_3_9)
    with Running(params(tmp_path / "c", one)) as capture:
        capture.wait_for(lambda: of_kind(tmp_path / "c", "quorum"))
        capture.wait_for(lambda: lines(tmp_path / "c/probes-1.jsonl"))
    assert of_kind(tmp_path / "c", "registered_brokers") == of_kind(tmp_path / "c", "topic_elr") == []
    assert not any(name == "DescribeCluster" for name, _ in one.asked)


def test_while_no_controller_is_active_the_brokers_are_asked_on(cluster, tmp_path):
    one = FakeBroker(cluster, 1, KRAFT_4_0)
    cluster.partitions = ALONE
    cluster.has_no_controller.set()
    out = tmp_path / "c"

    def asks_on() -> bool:
        """While one attempt at the quorum lasted, the broker was asked for three rounds."""
        order = list(one.order)
        attempts = [number for number, name in enumerate(order) if name == "DescribeQuorum"]
        return any(order[a:b].count("ListOffsets") >= 6 for a, b in pairwise([*attempts, len(order)]))

    with Running(params(out, one, request_timeout_s=3.0)) as capture:
        capture.wait_for(asks_on)
        capture.wait_until_said("the quorum not recorded")
        cluster.has_no_controller.clear()
        capture.wait_until_said("the quorum recorded again")
    own, sentence = capture.summary.missed
    assert own == NO_METADATA_LOG
    assert sentence.startswith("the quorum not recorded for ")
    assert "no active controller answers: " in sentence
    assert {entry["source"] for entry in lines(out / "missed.jsonl")} == {"the metadata log", "the quorum"}


def test_no_permission_to_describe_the_quorum_is_one_sentence(cluster, tmp_path):
    one = FakeBroker(cluster, 1, KRAFT_4_0)
    cluster.partitions = ALONE
    cluster.quorum_error = 31
    with Running(params(tmp_path / "c", one)) as capture:
        capture.wait_until_said("the quorum not recorded")
    summary = capture.summary
    assert summary.missed == (NO_METADATA_LOG, "the quorum not recorded: no permission to DESCRIBE the cluster")
    assert summary.errors["CLUSTER_AUTHORIZATION_FAILED"] >= 1
    assert of_kind(tmp_path / "c", "quorum") == []


def test_nobody_at_the_address_is_one_sentence(tmp_path):
    with pytest.raises(CaptureError, match=r"^no broker can be asked: nothing listens at 127\.0\.0\.1:1; see --boot"):
        run_capture(CaptureParams(str(tmp_path / "c"), bootstrap_servers="127.0.0.1:1"), threading.Event())


def test_with_waits_brokers_may_come_later(cluster, tmp_path):
    later = FakeBroker(cluster, 1)
    later.close()
    cluster.partitions = {("t", 0): ([1], 5, 4)}
    with Running(params(tmp_path / "c", later, waits=True)) as capture:
        capture.wait_until_said("probes of the brokers not recorded")
        FakeBroker(cluster, 1, port=later.port)
        capture.wait_for(lambda: lines(tmp_path / "c/probes-1.jsonl"))
    assert capture.summary.answers > 0
    assert any("probes of the brokers not recorded" in sentence for sentence in capture.summary.missed)
