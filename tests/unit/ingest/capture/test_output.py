"""The capture folder, what was missed, the clock and the clients' settings."""

from __future__ import annotations

import json
import os
import threading

import pytest

from ingest.capture.clock import Backoff, Pace, RoundClock, Rounds
from ingest.capture.missed import Missed
from ingest.capture.output import CaptureFolder, JsonLines
from ingest.capture.params import CaptureError, CaptureParams
from ingest.capture.settings import addresses, client_properties, kafka_settings, unknown_names, zookeeper_settings
from ingest.files.recognise import recognise
from tests.cluster.certificates import Authority


@pytest.fixture
def folder(tmp_path):
    made = CaptureFolder(str(tmp_path / "c"))
    yield made
    made.close()


def test_a_second_capture_into_the_same_folder_is_refused(folder, tmp_path):
    with pytest.raises(CaptureError, match="another capture writes into"):
        CaptureFolder(str(tmp_path / "c"))


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "f").touch()
    with pytest.raises(CaptureError, match="cannot write"):
        CaptureFolder(str(tmp_path / "f"))


def test_what_a_kill_left_is_put_in_order(folder, tmp_path):
    folder.write("znodes/1795231546593.jsonl", b"{}\n")
    (tmp_path / "c/znodes/.1795231547593.jsonl.tmp").write_bytes(b'{"half')
    (tmp_path / "c/probes-1.jsonl").write_bytes(b'{"a":1}\n{"b":')
    folder.close()
    again = CaptureFolder(str(tmp_path / "c"))
    assert again.last_round_ms() == 1795231546593
    assert sorted(os.listdir(tmp_path / "c/znodes")) == ["1795231546593.jsonl"]
    probes = JsonLines(again, "probes-1.jsonl")
    probes.append([b'{"c":1}\n'])
    probes.close()
    assert (tmp_path / "c/probes-1.jsonl").read_bytes() == b'{"a":1}\n{"c":1}\n'
    folder._lock = os.open(tmp_path, os.O_RDONLY)
    again.close()


def test_a_file_of_lines_that_is_never_written_to_is_not_made(folder, tmp_path):
    lines = JsonLines(folder, "x.jsonl")
    lines.append([])
    assert not (tmp_path / "c/x.jsonl").exists()


def test_lines_of_several_threads_stay_whole(folder, tmp_path):
    lines = JsonLines(folder, "x.jsonl")
    threads = [
        threading.Thread(target=lambda n=n: [lines.append([b"%d " % n * 500 + b"\n"] * 5) for _ in range(20)])
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines.close()
    read = (tmp_path / "c/x.jsonl").read_text().splitlines()
    assert len(read) == lines.written == 400
    assert all(len(set(line.split())) == 1 for line in read)


def test_an_outage_is_written_when_it_begins_and_when_it_ends():
    written, said = [], []
    missed = Missed(lambda lines: written.extend(json.loads(line) for line in lines), said.append)
    missed.back("probes", "broker 1")
    missed.lost("probes", "broker 1", "nothing listens", since_ms=1000)
    missed.lost("probes", "broker 1", "nothing listens")
    missed.back("probes", "broker 1")
    missed.lost("znodes", "", "no connection", since_ms=2000)
    missed.close()
    assert [(e["source"], e["missed_from"], e["missed_to"] is None) for e in written] == [
        ("probes", 1000, True),
        ("probes", 1000, False),
        ("znodes", 2000, True),
        ("znodes", 2000, False),
    ]
    assert said[0] == "probes of broker 1 not recorded: nothing listens"
    assert said[1].startswith("probes of broker 1 recorded again after ")
    assert len(missed.sentences()) == 2


def test_what_is_refused_each_round_is_said_once():
    written, said = [], []
    missed = Missed(written.extend, said.append)
    for _ in range(100):
        missed.once("log dirs", "broker 1", "CLUSTER_AUTHORIZATION_FAILED")
    assert len(written) == len(said) == len(missed.sentences()) == 1


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (
            b'{"sent_at":1.0,"received_at":2.0,"broker":1,"description":"cluster","cluster_id":null}\n',
            "cluster_description",
        ),
        (b'{"sent_at":1.0,"received_at":2.0,"broker":1,"log_dir":"/d","error_code":0}\n', "cluster_description"),
        (b'{"sent_at":1.0,"received_at":2.0,"broker":1,"reassignments":[]}\n', "cluster_description"),
        (b'{"missed_from":1,"missed_to":null,"source":"probes","of":"broker 1","reason":"x"}\n', "capture_gap"),
    ],
)
def test_the_ingest_knows_every_line_of_a_capture(line, kind):
    found = recognise(line, ("c", "x.jsonl"), is_whole=True)
    assert (found.status, found.kind) == ("ingested", kind)


def test_rounds_go_forward_though_the_clock_is_set_back():
    now = iter([1000, 900, 900, 2000])
    clock = RoundClock(0, lambda: next(now))
    assert [clock.next(), clock.next(), clock.within(), clock.next()] == [1000, 1001, 1001, 2000]


def test_a_continued_capture_begins_behind_its_last_round():
    assert RoundClock(5000, lambda: 4000).next() == 5001


def test_pace_gives_no_more_than_its_rate():
    now = [0.0]
    pace = Pace(10, lambda: now[0])
    assert [pace.delay() for _ in range(10)] == [0.0] * 10
    assert pace.delay() == pytest.approx(0.1)
    now[0] = 1.1
    assert pace.delay(10) == pytest.approx(0.0)


def test_backoff_grows_to_its_longest_and_begins_anew():
    backoff = Backoff(0.2, 2.0)
    waits = [backoff.failed() for _ in range(2000)]
    assert 0.16 <= waits[0] <= 0.24
    assert min(waits[10:]) >= 1.6
    assert max(waits) <= 2.4
    backoff.succeeded()
    assert backoff.failed() <= 0.24


def test_a_thread_takes_part_in_the_last_round_though_it_wakes_late():
    rounds = Rounds()
    assert rounds.begin() == 1
    rounds.end()
    assert rounds.after(0) == 1
    assert rounds.after(1) == 0
    assert rounds.wait(10)


def test_the_environment_counts_before_the_file(tmp_path):
    (tmp_path / "client.properties").write_text("sasl.username=a\nsasl.password=file\nbatch.size=3\n")
    given = client_properties(
        str(tmp_path / "client.properties"), {"KAFKA_STATE_REPLAY_SASL_PASSWORD": "env", "SASL_USERNAME": "x"}
    )
    assert (given["sasl.username"], given["sasl.password"]) == ("a", "env")
    assert unknown_names(given) == ["batch.size"]


def test_jaas_of_java_s_clients_is_understood():
    settings = kafka_settings(
        {
            "security.protocol": "sasl_ssl",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.jaas.config": 'org.apache.kafka.common.security.scram.ScramLoginModule required username="al\\"ice"'
            ' password="s3cret;x";',
            "ssl.endpoint.identification.algorithm": "",
        }
    )
    assert settings == {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_plain_username": 'al"ice',
        "sasl_plain_password": "s3cret;x",
        "ssl_check_hostname": False,
    }


@pytest.mark.parametrize(
    ("properties", "sentence"),
    [
        ({"security.protocol": "TLS"}, "security.protocol must be one of"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "MAGIC"}, "sasl.mechanism must be one of"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}, "needs sasl.username and sasl.password"),
        ({"ssl.truststore.location": "/x/kafka.jks"}, "is a Java key store"),
        ({"ssl.truststore.location": "/nowhere.pem"}, r"there is no file /nowhere\.pem"),
    ],
)
def test_settings_that_cannot_be_used_are_one_sentence(properties, sentence):
    with pytest.raises(CaptureError, match=sentence):
        kafka_settings(properties)


def test_settings_of_zookeeper(tmp_path):
    ca = Authority(tmp_path, "ours").pem
    assert zookeeper_settings({}) == {}
    assert zookeeper_settings({"zookeeper.ssl.truststore.location": str(ca)}) == {
        "use_ssl": True,
        "ca": str(ca),
        "check_hostname": True,
    }
    assert zookeeper_settings({"zookeeper.digest.username": "u", "zookeeper.digest.password": "p"}) == {
        "auth_data": [("digest", "u:p")]
    }


def test_no_password_is_in_what_is_printed_of_the_params():
    assert "hunter2" not in repr(CaptureParams("c", client_properties={"sasl.password": "hunter2"}))


@pytest.mark.parametrize("text", ["host", "host:", "host:x", ":9092", "host:99999", "a:1,,b:2"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(CaptureError, match="is no HOST:PORT"):
        addresses(text)


def test_addresses_may_be_several_and_ipv6():
    assert addresses("a:1, [::1]:9092") == [("a", 1), ("::1", 9092)]
