"""``capture`` of real clusters with locks on: what it records, what it says where it may not, what it keeps secret."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from ingest.capture import CaptureParams, CaptureSummary, run_capture
from jobs.lab.load import Load
from jobs.lab.machines.releases import BY_NAME
from jobs.lab.waiting import wait_for
from tests.cluster.certificates import STORE_PASSWORD
from tests.cluster.client_settings import digest, jaas, locked, sasl, shown, tls, zookeeper_sasl, zookeeper_tls
from tests.cluster.conftest import require_jars
from tests.cluster.processes import processes_of
from tests.cluster.secured import PASSWORDS, REAUTHENTICATION_MS, TOPICS, Secured, secured
from tests.cluster.secured_captures import (
    ROUNDS,
    UNREADABLE,
    WRONG,
    assert_no_secret,
    assert_probed,
    assert_refused,
    capture_argv,
    captured,
    lines,
    truth,
)

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

#: On a machine with too much to do, rounds as short as these may be too short.
LATE: Final = "the tree was not read within a round"


@pytest.fixture(scope="module", params=["1.1.1", "2.8.2", "3.9.1"])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """One of each release for all tests: with topics that hold records, and znodes that not everybody may read."""
    release = BY_NAME[request.param]
    require_jars(release)
    folder = tmp_path_factory.mktemp("secured")
    made = secured(release, folder)
    with made.cluster:
        partitions = [(topic, number) for topic in TOPICS for number in (0, 1)]
        for topic in TOPICS:
            made.cluster.admin.create_topic(topic, {0: (1, 2), 1: (2, 1)})
        made.cluster.wait_for_full_isr()
        with Load(made.cluster, partitions, acks="all") as load:
            load.wait_for_more(5)
        for answer in load.acknowledged:
            made.ends[answer.partition] = max(made.ends.get(answer.partition, 0), answer.offset + 1)
        made.lock_znodes((UNREADABLE,))
        yield made
    assert processes_of(folder) == {}


# --- what is captured -----------------------------------------------------------------------------------------------

LISTENERS: Final = {
    "SSL": ("TLS", tls),
    "SSL with a certificate of the client": ("MUTUAL", lambda c: tls(c) | shown(c.papers.client)),
    "SSL with a key that has a password": ("MUTUAL", locked),
    "SSL without a look at the name": ("ELSEWHERE", lambda c: tls(c) | {"ssl.endpoint.identification.algorithm": ""}),
    "SASL_SSL PLAIN": ("PLAINTLS", lambda c: sasl(c, "capturer")),
    "SASL_SSL SCRAM-SHA-256": ("SCRAMTLS", lambda c: sasl(c, "scramble", "SCRAM-SHA-256")),
    "SASL_SSL SCRAM-SHA-256 by JAAS": ("SCRAMTLS", jaas),
    "SASL_PLAINTEXT PLAIN": ("PLAINSASL", lambda c: sasl(c, "capturer", "PLAIN", "SASL_PLAINTEXT")),
    "SASL_PLAINTEXT SCRAM-SHA-256": (
        "SCRAMSASL",
        lambda c: sasl(c, "scramble", "SCRAM-SHA-256", "SASL_PLAINTEXT"),
    ),
}


@pytest.mark.parametrize("lock", LISTENERS)
def test_every_replica_is_asked_through_a_secured_listener(lock: str, cluster: Secured, tmp_path: Path) -> None:
    listener, properties = LISTENERS[lock]
    summary, said = captured(cluster, tmp_path / "c", properties(cluster), bootstrap=cluster.bootstrap(listener))
    assert summary.missed == ()
    assert summary.errors == {}
    assert_probed(cluster, tmp_path / "c", TOPICS)
    described = lines(tmp_path / "c" / "descriptions.jsonl")
    ports = {each["id"]: each["port"] for entry in described for each in entry.get("brokers", ())}
    assert ports == {number: own[listener] for number, own in cluster.cluster.ports.items()}
    assert {entry["topic"] for entry in described if "topic" in entry} == set(TOPICS)
    assert {entry["broker"] for entry in lines(tmp_path / "c" / "log-dirs.jsonl")} == {1, 2}
    assert (tmp_path / "c" / "reassignments.jsonl").exists() == (cluster.cluster.release.number >= (2, 4))
    assert_no_secret(tmp_path / "c", *said)


ZOOKEEPERS: Final = {
    "digest": lambda c: digest(),
    "SASL": lambda c: zookeeper_sasl(),
    "TLS and digest": lambda c: zookeeper_tls(c, c.papers.client) | digest(),
    "TLS and SASL": lambda c: zookeeper_tls(c, c.papers.client) | zookeeper_sasl(),
    "TLS, a key with a password, and digest": lambda c: (
        zookeeper_tls(c, c.papers.client)
        | {
            "zookeeper.ssl.key.location": str(c.papers.client.locked_key),
            "zookeeper.ssl.keystore.password": STORE_PASSWORD,
        }
        | digest()
    ),
}


@pytest.mark.parametrize("lock", ZOOKEEPERS)
def test_every_znode_is_read_that_the_user_may_read(lock: str, cluster: Secured, tmp_path: Path) -> None:
    has_tls = lock.startswith("TLS")
    if has_tls and not cluster.zookeeper_tls:
        pytest.skip("ZooKeeper 3.4 has no TLS")
    address = cluster.zookeeper_tls if has_tls else cluster.zookeeper
    summary, said = captured(cluster, tmp_path / "c", ZOOKEEPERS[lock](cluster), zookeeper=address)
    told = [sentence for sentence in summary.missed if not sentence.endswith(LATE)]
    assert told == [f"znodes of {UNREADABLE} not recorded: no permission to read it"]
    assert summary.snapshots >= ROUNDS // 2
    rows = {row["path"]: row for row in lines(sorted((tmp_path / "c" / "znodes").iterdir())[-1])}
    assert {path: (row["data"], row["mzxid"]) for path, row in rows.items()} == truth(cluster)
    assert_no_secret(tmp_path / "c", *said)


def test_all_of_it_at_once_beside_the_files_of_a_broker(cluster: Secured, tmp_path: Path) -> None:
    """As a person starts it: the settings in a file, one password in the environment."""
    given = sasl(cluster, "scramble", "SCRAM-SHA-256", password=WRONG) | digest()
    if cluster.zookeeper_tls:
        given |= zookeeper_tls(cluster, cluster.papers.client)
    broker = cluster.cluster.brokers[1]
    finished = subprocess.run(
        [
            sys.executable,
            "-m",
            "jobs.cli",
            *capture_argv(tmp_path, given),
            "--rounds",
            "3",
            "--bootstrap-server",
            cluster.bootstrap("SCRAMTLS"),
            "--zookeeper",
            cluster.zookeeper_tls or cluster.zookeeper,
            "--logs",
            f"1={broker.logs}",
            "--log-dirs",
            f"1={broker.data}",
            "--config",
            f"1={broker.properties}",
        ],
        env=os.environ | {"PYTHONPATH": os.getcwd(), "KAFKA_STATE_REPLAY_SASL_PASSWORD": PASSWORDS["scramble"]},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert finished.returncode == 0, finished.stderr
    assert_probed(cluster, tmp_path / "c", TOPICS)
    assert len(list((tmp_path / "c" / "znodes").iterdir())) == 3
    log = (tmp_path / "c" / "broker-1" / "logs" / "server.log").read_bytes()
    assert log
    assert broker.server_log.read_bytes().startswith(log)
    config = (tmp_path / "c" / "broker-1" / "server.properties").read_text()
    assert "listener.name.plaintls.plain.sasl.jaas.config=[hidden]\n" in config
    assert "ssl.keystore.password=[hidden]\n" in config
    assert_no_secret(tmp_path / "c", finished.stdout, finished.stderr)


def test_credentials_are_shown_again_when_brokers_want_them_again(cluster: Secured, tmp_path: Path) -> None:
    if cluster.cluster.release.number < (2, 2):
        pytest.skip("before 2.2 a connection is as good as at its beginning for ever (KIP-368)")
    said: list[str] = []
    params = CaptureParams(
        str(tmp_path / "c"),
        bootstrap_servers=cluster.bootstrap("BRIEFSASL"),
        interval_s=0.4,
        duration_s=4 * REAUTHENTICATION_MS / 1000,
        client_properties=sasl(cluster, "capturer", "PLAIN", "SASL_PLAINTEXT"),
    )
    summary = run_capture(params, threading.Event(), said.append)
    assert (said, summary.missed, dict(summary.errors)) == ([], (), {})
    for broker in (1, 2):
        answered = {row["received_at"] // 1000 for row in lines(tmp_path / "c" / f"probes-{broker}.jsonl")}
        assert len(answered) >= 3 * REAUTHENTICATION_MS / 1000


# --- who may not ----------------------------------------------------------------------------------------------------


def test_who_may_describe_no_topic_is_told_so(cluster: Secured, tmp_path: Path) -> None:
    summary, said = captured(
        cluster, tmp_path / "c", sasl(cluster, "stranger"), bootstrap=cluster.bootstrap("PLAINTLS")
    )
    assert summary.answers == 0
    told = [sentence for sentence in summary.missed if sentence.startswith("probes")]
    assert len(told) == 1
    assert told[0].endswith("no topic is described: there is none, or no permission to DESCRIBE one")
    assert_no_secret(tmp_path / "c", *said)


def test_with_zookeeper_the_topics_that_may_not_be_described_are_known(cluster: Secured, tmp_path: Path) -> None:
    for user, wanted in (("stranger", "orders and 1 more"), ("clerk", "payroll")):
        summary, said = captured(
            cluster,
            tmp_path / user,
            sasl(cluster, user) | digest(),
            bootstrap=cluster.bootstrap("PLAINTLS"),
            zookeeper=cluster.zookeeper,
        )
        told = [sentence for sentence in summary.missed if sentence.startswith("probes")]
        assert len(told) == 1, told
        assert told[0].startswith("probes of topics without permission not recorded")
        assert told[0].endswith(f": no permission to DESCRIBE {wanted}")
        assert_no_secret(tmp_path / user, *said)
    assert_probed(cluster, tmp_path / "clerk", ("orders",))


def test_who_may_describe_topics_but_not_the_cluster_gets_all_but_log_dirs_and_reassignments(
    cluster: Secured, tmp_path: Path
) -> None:
    summary, said = captured(
        cluster,
        tmp_path / "c",
        sasl(cluster, "reader") | digest(),
        bootstrap=cluster.bootstrap("PLAINTLS"),
        zookeeper=cluster.zookeeper,
    )
    assert_probed(cluster, tmp_path / "c", TOPICS)
    told = {sentence.partition(" of ")[0] for sentence in summary.missed if "DESCRIBE the cluster" in sentence}
    assert told == {"log dirs", "reassignments"} if cluster.cluster.release.number >= (2, 4) else {"log dirs"}
    assert len([sentence for sentence in summary.missed if sentence.startswith("log dirs")]) == 2
    assert not [sentence for sentence in summary.missed if sentence.startswith("probes")]
    assert_no_secret(tmp_path / "c", *said)


# --- what is wrong --------------------------------------------------------------------------------------------------

#: The listener, the settings, and what the one sentence says.
WRONG_FOR_BROKERS: Final = {
    "a client for PLAINTEXT at a listener for SSL": (
        "TLS",
        lambda c: {},
        r"closed the connection: is it a broker's listener for PLAINTEXT\? see security.protocol",
    ),
    "a client for PLAINTEXT at a listener for SASL": (
        "PLAINSASL",
        lambda c: {},
        r"closed the connection: is it a broker's listener for PLAINTEXT\?",
    ),
    "a client for SASL_PLAINTEXT at a listener for SASL_SSL": (
        "PLAINTLS",
        lambda c: sasl(c, "capturer", protocol="SASL_PLAINTEXT"),
        r"closed the connection: is it a broker's listener for SASL_PLAINTEXT\?",
    ),
    "a client for SSL at a listener for SASL_SSL": (
        "PLAINTLS",
        tls,
        r"closed the connection: is it a broker's listener for SSL\?",
    ),
    "a client for SSL at a listener for PLAINTEXT": (
        "PLAINTEXT",
        tls,
        r"broke off the TLS handshake: is it a listener for TLS\? see security.protocol",
    ),
    "a client for SASL at a listener without": (
        "TLS",
        lambda c: sasl(c, "capturer"),
        "does not take SASL PLAIN: see sasl.mechanism and security.protocol",
    ),
    "an unknown authority": (
        "TLS",
        lambda c: tls(c, ssl_truststore_location=str(c.papers.stranger.pem)),
        r"the certificate of [\d.:]+ is not trusted \(self-signed certificate in certificate chain\): see ssl.trustst",
    ),
    "a name that is not in the certificate": (
        "ELSEWHERE",
        tls,
        r"the certificate of [\d.:]+ is not valid for 127.0.0.1: see ssl.endpoint.identification",
    ),
    "no certificate of the client": (
        "MUTUAL",
        tls,
        r"refuses TLS without a certificate of the client \(.*\): see ssl.keystore.location",
    ),
    "a certificate of the client that is not trusted": (
        "MUTUAL",
        lambda c: tls(c) | shown(c.papers.forged),
        r"refuses the client's certificate, or its TLS \(",
    ),
    "no password for the key": (
        "MUTUAL",
        lambda c: {**locked(c), "ssl.key.password": ""},
        "holds no key as PEM, or one that needs ssl.key",
    ),
    "a wrong password for the key": (
        "MUTUAL",
        lambda c: {**locked(c), "ssl.key.password": WRONG},
        "holds no key as PEM that ssl.key.password opens",
    ),
    "a wrong password, PLAIN": (
        "PLAINTLS",
        lambda c: sasl(c, "capturer", password=WRONG),
        r"refuses the credentials \(SASL PLAIN\): see sasl",
    ),
    "a wrong password, SCRAM": (
        "SCRAMTLS",
        lambda c: sasl(c, "scramble", "SCRAM-SHA-256", password=WRONG),
        r"refuses the credentials \(SASL SCRAM-SHA-256\): see sasl.username and sasl.password",
    ),
    "a wrong password, SCRAM without TLS": (
        "SCRAMSASL",
        lambda c: sasl(c, "scramble", "SCRAM-SHA-256", "SASL_PLAINTEXT", WRONG),
        r"refuses the credentials \(SASL SCRAM-SHA-256\)",
    ),
    "a user that is not there": (
        "SCRAMSASL",
        lambda c: sasl(c, "reader", "SCRAM-SHA-256", "SASL_PLAINTEXT"),
        r"refuses the credentials \(SASL SCRAM-SHA-256\)",
    ),
    "PLAIN where SCRAM is wanted": (
        "SCRAMSASL",
        lambda c: sasl(c, "capturer", protocol="SASL_PLAINTEXT"),
        "does not take SASL PLAIN: see sasl",
    ),
    "SCRAM where PLAIN is wanted": (
        "PLAINTLS",
        lambda c: sasl(c, "scramble", "SCRAM-SHA-256"),
        "does not take SASL SCRAM-SHA-256: see sasl.mechan",
    ),
    "SCRAM of another hash": (
        "SCRAMTLS",
        lambda c: sasl(c, "scramble", "SCRAM-SHA-512"),
        "does not take SASL SCRAM-SHA-512: see sasl.mechan",
    ),
    "the address of ZooKeeper": ("ZOOKEEPER", lambda c: {}, r"closed the connection: is it a broker's listener"),
    "an address where nobody is": ("NOBODY", lambda c: {}, r"nothing listens at 127.0.0.1:\d+; see --bootstrap-server"),
}


@pytest.mark.parametrize("wrong", WRONG_FOR_BROKERS)
def test_what_brokers_do_not_take_is_one_sentence(
    wrong: str, cluster: Secured, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listener, properties, sentence = WRONG_FOR_BROKERS[wrong]
    argv = ["--bootstrap-server", cluster.bootstrap(listener)]
    assert_refused([*capture_argv(tmp_path, properties(cluster)), *argv], sentence, capsys)
    assert_no_secret(tmp_path / "c")


#: Which address, the settings, and what the one sentence says.
WRONG_FOR_ZOOKEEPER: Final = {
    "nobody's credentials": (
        "plain",
        lambda c: {},
        "no permission to read the znodes of Kafka at .*: see zookeeper.sasl.username",
    ),
    "a wrong digest": (
        "plain",
        lambda c: digest(WRONG),
        "no permission to read .*: see zookeeper.digest.username",
    ),
    "a wrong password, SASL": (
        "plain",
        lambda c: zookeeper_sasl(WRONG),
        "refuses the credentials: see zookeeper.sasl.username",
    ),
    "a user that is not there, SASL": (
        "plain",
        lambda c: zookeeper_sasl(WRONG, "nobody"),
        "refuses the credentials: see zookeeper.sasl.username",
    ),
    "a mechanism that ZooKeeper has not": (
        "plain",
        lambda c: zookeeper_sasl() | {"zookeeper.sasl.mechanism": "PLAIN"},
        "must be DIGEST-MD5 or GSSAPI",
    ),
    "a chroot that is not there": ("/nowhere", lambda c: digest(), "has no chroot /nowhere: see zookeeper.connect"),
    "a chroot without Kafka": ("/config", lambda c: digest(), "has no Kafka below /config: name the chroot"),
    "an address where nobody is": ("nobody", lambda c: digest(), r"nothing listens at 127.0.0.1:\d+: see --zookeeper"),
    "the address of a broker": (
        "broker",
        lambda c: digest(),
        r"breaks off the connection: is it ZooKeeper's port, and the one without TLS\?",
    ),
    "TLS: no certificate of the client": (
        "tls",
        lambda c: zookeeper_tls(c) | digest(),
        r"refuses TLS without a certificate of the client .*: see zookee",
    ),
    "TLS: a certificate that is not trusted": (
        "tls",
        lambda c: zookeeper_tls(c, c.papers.forged) | digest(),
        "refuses the client's certificate, or its TLS",
    ),
    "TLS: an unknown authority": (
        "tls",
        lambda c: zookeeper_tls(c, c.papers.client) | {"zookeeper.ssl.truststore.location": str(c.papers.stranger.pem)},
        "is not trusted .*: see zookeeper.ssl.truststore.location",
    ),
    "TLS where there is none": (
        "plain",
        lambda c: zookeeper_tls(c, c.papers.client) | digest(),
        r"broke off the TLS handshake: is it a listener for TLS\? see zookeeper.ssl.client.enable",
    ),
    "no TLS where there is some": (
        "tls",
        lambda c: digest(),
        r"breaks off the connection: is it ZooKeeper's port, and the one without TLS\?",
    ),
}


@pytest.mark.parametrize("wrong", WRONG_FOR_ZOOKEEPER)
def test_what_zookeeper_does_not_take_is_one_sentence(
    wrong: str, cluster: Secured, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place, properties, sentence = WRONG_FOR_ZOOKEEPER[wrong]
    if place == "tls" and not cluster.zookeeper_tls:
        pytest.skip("ZooKeeper 3.4 has no TLS")
    addresses = {
        "plain": cluster.zookeeper,
        "tls": cluster.zookeeper_tls,
        "nobody": cluster.bootstrap("NOBODY"),
        "broker": cluster.cluster.brokers[1].address,
    }
    address = addresses.get(place) or cluster.zookeeper + place
    assert_refused([*capture_argv(tmp_path, properties(cluster)), "--zookeeper", address], sentence, capsys)
    assert_no_secret(tmp_path / "c")


# --- what goes away -------------------------------------------------------------------------------------------------


def test_with_locks_on_it_comes_back_to_a_broker_and_to_zookeeper(cluster: Secured, tmp_path: Path) -> None:
    """Each new session must show the credentials again. Last: the cluster is not the same afterwards."""
    given = sasl(cluster, "scramble", "SCRAM-SHA-256") | zookeeper_sasl()
    if cluster.zookeeper_tls:
        given |= zookeeper_tls(cluster, cluster.papers.client)
    said: list[str] = []
    stop = threading.Event()
    params = CaptureParams(
        str(tmp_path / "c"),
        cluster.zookeeper_tls or cluster.zookeeper,
        cluster.bootstrap("SCRAMTLS"),
        interval_s=0.3,
        client_properties=given,
    )
    summaries: list[CaptureSummary] = []
    thread = threading.Thread(target=lambda: summaries.append(run_capture(params, stop, said.append)), daemon=True)
    thread.start()
    try:
        snapshots = tmp_path / "c" / "znodes"
        wait_for("it captures", lambda: snapshots.is_dir() and len(list(snapshots.iterdir())) > 2)
        cluster.cluster.kill(2)
        wait_for("the broker is missed", lambda: any("probes of broker 2 not recorded" in each for each in said))
        cluster.wait_until_gone(2)
        cluster.cluster.brokers[2].launch()
        wait_for("the broker is back", lambda: any("probes of broker 2 recorded again" in each for each in said))
        cluster.cluster.kill_zookeeper()
        wait_for("ZooKeeper is missed", lambda: any("znodes of ZooKeeper not recorded" in each for each in said))
        cluster.cluster.start_zookeeper()
        wait_for("ZooKeeper is back", lambda: any("znodes of ZooKeeper recorded again" in each for each in said))
    finally:
        stop.set()
        thread.join(30)
    assert len(summaries) == 1
    assert_no_secret(tmp_path / "c", *said, *summaries[0].missed)
