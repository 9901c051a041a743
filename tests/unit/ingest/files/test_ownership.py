"""Whose a file is, and whether it is new: found from all files of a run together."""

from __future__ import annotations

import hashlib
import itertools
import random
from typing import Any

import pytest

from ingest.files.attribution import UNKNOWN_CLUSTER, Attributed, attribute, round_ends
from ingest.files.inspected import SHARED, Inspected
from ingest.files.znode_facts import CLUSTER_BIRTH, CLUSTER_LOG, CLUSTER_META, CLUSTER_ZNODE
from ingest.run.planning import Action, StoredFile, needed_prefixes, plan


def file(location: str, kind: str = "state_change_log", **values: Any) -> Inspected:
    defaults: dict[str, Any] = {
        "size_bytes": 1,
        "content_hash": location,
        "complete_bytes": 1,
        "complete_hash": location,
    }
    if kind.endswith("_log"):
        defaults["first_line"] = "head"
    return Inspected(location, location.rsplit("/", 1)[-1], None, "none", kind, "ingested", **(defaults | values))


def owners(*files: Inspected, **options: Any) -> dict[str, tuple[str, int | None]]:
    settings: dict[str, Any] = {"cluster_id": None, "brokers": {}, "known_cluster": None} | options
    expected, _ = attribute(files, **settings)
    found = {owner.file.location: (owner.cluster_id, owner.broker_id) for owner in expected}
    for seed in range(3):
        shuffled = list(files)
        random.Random(seed).shuffle(shuffled)
        again, _ = attribute(shuffled, **settings)
        assert {owner.file.location: (owner.cluster_id, owner.broker_id) for owner in again} == found
    return found


CHECKPOINT = "broker-2/checkpoints/replication-offset-checkpoint/1795231841294"


def test_a_parent_folder_with_two_captures_holds_two_clusters() -> None:
    found = owners(
        file(
            "/in/one/broker-1/logs/server.log", "server_log", cluster_id="A" * 22, cluster_rank=CLUSTER_LOG, broker_id=1
        ),
        file("/in/one/broker-1/logs/state-change.log"),
        file(f"/in/one/{CHECKPOINT}", "replication_offset_checkpoint"),
        file(
            "/in/two/znodes/1795231841294.jsonl",
            "znode_snapshot",
            cluster_id="unknown-1",
            cluster_rank=CLUSTER_BIRTH,
            birth_id="unknown-1",
        ),
        file("/in/two/broker-1/logs/state-change.log", broker_id=7),
    )
    assert found == {
        "/in/one/broker-1/logs/server.log": ("A" * 22, 1),
        "/in/one/broker-1/logs/state-change.log": ("A" * 22, 1),
        f"/in/one/{CHECKPOINT}": ("A" * 22, 2),
        "/in/two/znodes/1795231841294.jsonl": ("unknown-1", None),
        "/in/two/broker-1/logs/state-change.log": ("unknown-1", 7),
    }


def test_nobody_is_told_to_have_written_the_logs_of_a_folder_that_several_brokers_started_from() -> None:
    found = owners(
        file("/k/logs/server.log", "server_log", streams=SHARED),
        file("/k/logs/server.log.1", "server_log", broker_id=1),
        file("/k/logs/log-cleaner.log", "server_log"),
        file("/k/logs/state-change.log", broker_id=0),
        file("/k/data-1/meta.properties", "meta_properties", broker_id=1),
        file("/k/data-1/replication-offset-checkpoint", "replication_offset_checkpoint"),
    )
    assert {location.removeprefix("/k/"): broker for location, (_, broker) in found.items()} == {
        "logs/server.log": None,
        "logs/server.log.1": None,
        "logs/log-cleaner.log": None,
        "logs/state-change.log": 0,
        "data-1/meta.properties": 1,
        "data-1/replication-offset-checkpoint": 1,
    }
    given = owners(file("/k/logs/server.log", "server_log", streams=SHARED), brokers={"/k/logs": 3})
    assert given["/k/logs/server.log"][1] == 3


def test_a_snapshot_from_before_the_cluster_had_an_id_belongs_to_the_capture_around_it() -> None:
    early = file(
        "/c/znodes/1.jsonl", "znode_snapshot", cluster_id="unknown-1", cluster_rank=CLUSTER_BIRTH, birth_id="unknown-1"
    )
    log = file("/c/broker-1/server.log", "server_log", cluster_id="X", cluster_rank=CLUSTER_LOG)
    late = file("/d/znodes/2.jsonl", "znode_snapshot", cluster_id="X", cluster_rank=CLUSTER_ZNODE, birth_id="unknown-1")
    assert owners(early, log)["/c/znodes/1.jsonl"][0] == "X"
    assert owners(early, late)["/c/znodes/1.jsonl"][0] == "X"
    assert owners(early)["/c/znodes/1.jsonl"][0] == "unknown-1"


def test_several_ids_in_one_folder_warn_and_the_best_stated_is_taken() -> None:
    files = [
        file("/c/a.log", "server_log", cluster_id="B", cluster_rank=CLUSTER_LOG, cluster_at="2026-01-01 00:00:01"),
        file("/c/b.log", "server_log", cluster_id="A", cluster_rank=CLUSTER_LOG, cluster_at="2026-01-01 00:00:02"),
        file("/c/meta.properties", "meta_properties", cluster_id="C", cluster_rank=CLUSTER_META),
        file("/c/state-change.log"),
    ]
    assert owners(*files)["/c/state-change.log"][0] == "B"
    _, warnings = attribute(files, cluster_id=None, brokers={}, known_cluster=None)
    assert len(warnings) == 1
    assert "A, B, C" in warnings[0]


def test_options_come_first_and_the_lake_last() -> None:
    log = file("/c/broker-3/server.log", "server_log", broker_id=3, cluster_id="X", cluster_rank=CLUSTER_LOG)
    assert owners(log, cluster_id="mine", brokers={"/c": 8, "/c/broker-3": 9}) == {log.location: ("mine", 9)}
    assert owners(file("/c/s.log"), known_cluster="only") == {"/c/s.log": ("only", None)}
    assert owners(file("/c/s.log")) == {"/c/s.log": (UNKNOWN_CLUSTER, None)}


def test_what_meta_properties_say_goes_before_the_name_of_the_folder() -> None:
    found = owners(
        file("/c/broker-1/data/meta.properties", "meta_properties", broker_id=101),
        file("/c/broker-1/data/replication-offset-checkpoint", "replication_offset_checkpoint"),
        file("/c/broker-2/replication-offset-checkpoint", "replication_offset_checkpoint"),
    )
    assert found["/c/broker-1/data/replication-offset-checkpoint"][1] == 101
    assert found["/c/broker-2/replication-offset-checkpoint"][1] == 2


def test_rounds_are_those_of_the_broker_and_of_the_znodes() -> None:
    found, _ = attribute(
        [
            file("/c/broker-1/log-start-offset-checkpoint/1", "log_start_offset_checkpoint", captured_at_ms=30),
            file("/c/broker-1/replication-offset-checkpoint/1", "replication_offset_checkpoint", captured_at_ms=10),
            file("/c/broker-2/replication-offset-checkpoint/1", "replication_offset_checkpoint", captured_at_ms=15),
            file("/c/znodes/1.jsonl", "znode_snapshot", captured_at_ms=20),
        ],
        cluster_id="X",
        brokers={},
        known_cluster=None,
    )
    assert round_ends(found) == {("X", 1): [10, 20, 30], ("X", 2): [15, 20]}


def states(*contents: bytes) -> list[Attributed]:
    """Files of one log, each with this content."""
    return [
        Attributed(
            file(
                f"/c/{name}.log",
                size_bytes=len(data),
                content_hash=sha(data),
                complete_bytes=len(data),
                complete_hash=sha(data),
            ),
            "X",
            1,
            "id",
        )
        for name, data in zip("abcdef", contents, strict=False)
    ]


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def actions(*contents: bytes, stored: bytes | None = None) -> dict[bytes, Action]:
    files = states(*contents)
    known = (
        {}
        if stored is None
        else {("X", "id"): StoredFile("X", "id", 1, "server_log", "server.log", "ingested", len(stored), sha(stored))}
    )
    by_location = dict(zip((f.file.location for f in files), contents, strict=True))
    hashes = {
        (location, member, length): sha(by_location[location][:length])
        for (location, member), lengths in needed_prefixes(files, known).items()
        for length in lengths
    }
    return {by_location[entry.owner.file.location]: entry.action for entry in plan(files, known, hashes)}


@pytest.mark.parametrize("order", list(itertools.permutations([b"abc", b"abcdef", b"abX"])))
def test_of_several_states_of_one_log_the_longest_is_taken(order: tuple[bytes, ...]) -> None:
    assert actions(*order) == {b"abcdef": Action.NEW, b"abc": Action.KNOWN, b"abX": Action.FORK}


def test_what_the_lake_holds_is_known_grown_or_forked() -> None:
    assert actions(b"abc", stored=b"abc") == {b"abc": Action.KNOWN}
    assert actions(b"abcdef", b"abcd", stored=b"abc") == {b"abcdef": Action.GROWN, b"abcd": Action.KNOWN}
    assert actions(b"abXdef", stored=b"abc") == {b"abXdef": Action.FORK}


def test_copies_of_one_content_are_taken_once() -> None:
    files = states(b"abc", b"abc")
    assert sorted(entry.action.value for entry in plan(files, {}, {})) == ["known", "new"]
