"""The lab's pieces that need no cluster: jars, ports, settings, scenarios, options."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path

import pytest
from kafka.errors import KafkaTimeoutError

from jobs import cli
from jobs.command.job import WRONG_USE
from jobs.lab import load
from jobs.lab.events import Events
from jobs.lab.job import Params
from jobs.lab.load import Acknowledged, silences
from jobs.lab.machines import cluster, settings
from jobs.lab.machines.kraft import KraftCluster
from jobs.lab.machines.ports import LOOPBACK, free_ports
from jobs.lab.machines.releases import (
    BY_NAME,
    KRAFT_RELEASES,
    RELEASES,
    Release,
    kafka_jars,
    pinned,
)
from jobs.lab.scenarios.catalogue import SCENARIOS
from jobs.lab.waiting import NeverHappened, wait_for
from jobs.session.pinned_jars import JarsMissing, ivy_module
from reconstruct.model.versions import KafkaVersion
from tests import ROOT

OLDEST, NEWEST = RELEASES[0], RELEASES[-1]
EVERY = pytest.mark.parametrize("release", BY_NAME.values(), ids=BY_NAME)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@EVERY
def test_every_jar_is_pinned_and_the_broker_is_among_them(release: Release) -> None:
    jars = pinned(release)
    assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest in jars.values())
    assert any(re.fullmatch(rf"org\.apache\.kafka:kafka_2\.\d+:{re.escape(release.version)}", name) for name in jars)
    binding = "org.apache.logging.log4j:log4j-slf4j-impl:" if release.has_log4j2 else "org.slf4j:slf4j-"
    decider = "org.apache.kafka:kafka-raft:" if release.is_kraft else "org.apache.zookeeper:zookeeper:"
    for needed in (decider, binding):
        assert any(name.startswith(needed) for name in jars), needed


def test_nothing_behind_the_listed_jars_is_fetched() -> None:
    module = ivy_module(pinned(NEWEST))
    assert module.count('transitive="false"') == len(pinned(NEWEST))


def test_without_a_network_a_sentence_says_what_to_do(tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho 'java.net.UnknownHostException: nowhere'\nexit 1\n")
    java.chmod(0o755)
    with pytest.raises(JarsMissing) as raised:
        kafka_jars(str(java), OLDEST, tmp_path / "cache")
    sentence = str(raised.value)
    assert "UnknownHostException" in sentence
    assert "needs Maven Central" in sentence
    assert str(tmp_path / "cache" / "kafka" / "0.8.2.2") in sentence


def test_a_jar_with_other_bytes_is_fetched_again(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "kafka" / "0.8.2.2"
    folder.mkdir(parents=True)
    for coordinate in pinned(OLDEST):
        _, artifact, version = coordinate.split(":")
        (folder / f"{artifact}-{version}.jar").write_bytes(b"something else")
    with pytest.raises(JarsMissing, match="cannot download"):
        kafka_jars("false", OLDEST, tmp_path / "cache")


def test_ports_are_free_different_and_given_to_no_client() -> None:
    ports = free_ports(8)
    assert len(set(ports)) == 8
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert all(port < lowest for port in ports) or lowest < 14_000
    with socket.socket() as taken:
        taken.bind((LOOPBACK, ports[0]))


def test_a_broker_is_told_its_place_as_its_release_understands_it() -> None:
    old = settings.broker_properties(OLDEST, 2, 9092, 2181, Path("/data"), {})
    new = settings.broker_properties(NEWEST, 2, 9092, 2181, Path("/data"), {"replica.lag.time.max.ms": "7"})
    assert "port=9092\n" in old
    assert "listeners" not in old
    assert f"listeners=PLAINTEXT://{LOOPBACK}:9092\n" in new
    assert "replica.lag.time.max.ms=7\n" in new


def test_a_node_of_a_quorum_is_told_its_roles_and_what_the_scenario_sets() -> None:
    own = {"zookeeper.session.timeout.ms": "20000", "replica.lag.time.max.ms": "7"}
    voters = {2: 9093, 101: 9193}
    both = settings.kraft_properties(2, ["broker", "controller"], 9092, 9093, voters, Path("/data"), own=own)
    alone = settings.kraft_properties(101, ["controller"], 9192, 9193, voters, Path("/data"), own={})
    assert "zookeeper" not in both
    assert "broker.session.timeout.ms=20000\n" in both
    assert "replica.lag.time.max.ms=7\n" in both
    assert f"listeners=PLAINTEXT://{LOOPBACK}:9092,CONTROLLER://{LOOPBACK}:9093\n" in both
    assert f"controller.quorum.voters=2@{LOOPBACK}:9093,101@{LOOPBACK}:9193\n" in both
    assert f"\nlisteners=CONTROLLER://{LOOPBACK}:9193\n" in alone
    assert "advertised" not in alone


def test_a_controller_that_may_join_the_voters_is_one_that_each_node_asks_for_the_leader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "kafka_jars", lambda java, release: ())
    made = KraftCluster(BY_NAME["4.1.1"], tmp_path, (1,), (101,), spare_ids=(104,))
    asked = ",".join(f"{LOOPBACK}:{made.nodes[controller].port}" for controller in (101, 104))
    for node in made.nodes.values():
        assert f"controller.quorum.bootstrap.servers={asked}\n" in node.properties.read_text()


def test_a_producer_that_hangs_hides_nothing_that_failed_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Hanging:
        def __init__(self, **settings: object) -> None: ...

        def flush(self, timeout: float) -> None:
            raise KafkaTimeoutError

        def close(self, timeout: float) -> None:
            raise KafkaTimeoutError

    monkeypatch.setattr(load, "KafkaProducer", Hanging)
    monkeypatch.setattr(cluster, "kafka_jars", lambda java, release: ())
    made = KraftCluster(BY_NAME["4.1.1"], tmp_path, (1,), (1,))
    with pytest.raises(NeverHappened), load.Load(made, ()):
        raise NeverHappened("20 more records are acknowledged: not within 120 s")
    assert "load_done" in made.events.file.read_text()


@pytest.mark.parametrize("release", KRAFT_RELEASES, ids=lambda release: release.name)
def test_a_node_of_a_quorum_logs_what_its_controller_does_apart(release: Release) -> None:
    written = settings.kraft_log4j(release, Path("/logs"), "TRACE")
    for file in ("server.log", "controller.log", "state-change.log"):
        assert f"/logs/{file}\n" in written
    assert "org.apache.kafka.controller" in written
    assert ("rootLogger.appenderRef" in written) is release.has_log4j2


def test_only_what_0_8_repeats_without_pause_is_left_out_of_the_log() -> None:
    assert "StringMatchFilter" in settings.broker_log4j(OLDEST, Path("/logs"), "TRACE")
    assert "StringMatchFilter" not in settings.broker_log4j(OLDEST, Path("/logs"), "TRACE", keeps_flood=True)
    assert all("StringMatchFilter" not in settings.broker_log4j(r, Path("/logs"), "INFO") for r in RELEASES[1:])


@EVERY
def test_a_capture_s_name_tells_the_version(release: Release) -> None:
    assert BY_NAME[release.name] is release
    for scenario in SCENARIOS.values():
        name = scenario.file_name(release)
        assert KafkaVersion.parse(name) == KafkaVersion(release.number)
        assert name.split("-")[1] == release.version


def test_a_deadline_that_passes_says_what_was_waited_for() -> None:
    answers = iter([None, 0, 7])
    assert wait_for("a number", lambda: next(answers), pause_s=0) == 7
    with pytest.raises(NeverHappened, match="the moon is blue: not within 0 s"):
        wait_for("the moon is blue", lambda: False, within_s=0.01, pause_s=0)


def test_events_are_lines_with_their_time(tmp_path: Path) -> None:
    events = Events(tmp_path / "made" / "events.jsonl")
    events.note("signal", broker=2, signal="SIGKILL")
    event = json.loads(events.file.read_text())
    assert event.pop("ts") > 1_700_000_000
    assert event == {"what": "signal", "broker": 2, "signal": "SIGKILL"}


def test_the_scenarios_are_listed_without_playing_one(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["lab", "--list"])
    assert ended.value.code == 0
    listed = capsys.readouterr().out
    assert [line.split()[0] for line in listed.splitlines()] == list(SCENARIOS)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ([], "no SCENARIO given: `lab --list` lists them"),
        (["chaos"], "there is no scenario 'chaos': there are creation"),
        (["kill", "--out", "full"], "is there and not empty"),
        (["kill", "--out", "full/a"], "is there and not empty"),
        (["kill", "--master", "yarn"], "starts its cluster on this machine"),
        (["zookeeper-outage", "--version", "4.1.1"], "zookeeper-outage does not play on 4.1.1"),
        (["small-segments", "--version", "4.1.1"], "small-segments does not play on 4.1.1"),
        (["quorum-outage", "--version", "3.9.1"], "quorum-outage does not play on 3.9.1"),
    ],
)
def test_wrong_use_is_said_before_anything_starts(
    argv: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").write_text("x")
    assert cli.main(["lab", *argv]) == WRONG_USE
    assert words in capsys.readouterr().err


def test_the_page_lists_every_scenario() -> None:
    page = (ROOT / "docs" / "lab.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `([\w-]+)` \|", page, re.MULTILINE) == list(SCENARIOS)


def test_options_of_the_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KAFKA_STATE_REPLAY_LAKE", raising=False)
    params = cli.parse(["lab", "zombie", "--version", "0.8.2.2", "--level", "INFO", "--no-open"])[2]
    assert params == Params(
        "zombie", "0.8.2.2", "INFO", False, str(tmp_path / "lab" / "zombie-0.8.2.2"), None, opens=False
    )
    assert cli.parse(["lab", "kill", "--version", "3.9.2-kraft", "--separate-controllers"])[2].is_separate
    assert cli.parse(["lab", "kill", "--lake", "l"])[2].lake == str(tmp_path / "l")


def test_a_producer_remembers_when_a_partition_answered_nothing() -> None:
    answers = {("orders", 0): (10.0, 10.5, 16.0, 16.2), ("orders", 1): (10.1, 15.9, 15.8, 16.1)}
    acknowledged = [Acknowledged(partition, 0, at) for partition, times in answers.items() for at in times]
    assert silences(acknowledged, 16.3) == {("orders", 0): [(10.5, 16.0)], ("orders", 1): [(10.1, 15.8)]}
    assert silences(acknowledged, 20.0)["orders", 0] == [(10.5, 16.0), (16.2, None)]
    assert silences(acknowledged, 15.0)["orders", 0] == [(10.5, 16.0)], "answers may come when no more is sent"
    assert silences([], 1.0) == {}
