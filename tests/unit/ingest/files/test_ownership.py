"""Whose a file is, and whether it is new: found from all files of a run together."""

from __future__ import annotations

import hashlib
import itertools
import random
from dataclasses import replace
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


def started(location: str, cluster_id: str, *starts: str, first: str, last: str) -> Inspected:
    """A server.log with its first and last time, and what it states when its broker starts."""
    return file(
        location,
        "server_log",
        cluster_id=cluster_id,
        cluster_rank=CLUSTER_LOG,
        cluster_at=starts[0],
        statements=tuple((at, cluster_id) for at in starts),
        first_at=first,
        last_at=last,
    )


OCTOBER = started(
    "/c/server.log.10", "B", "2025-10-01 00:00:03.000", first="2025-10-01 00:00:01.000", last="2025-10-02 09:00:00.000"
)
APRIL = started(
    "/c/server.log.04", "A", "2026-04-01 00:00:03.000", first="2026-04-01 00:00:01.000", last="2026-04-01 18:00:00.000"
)


def source_of(files: list[Inspected], location: str) -> tuple[str, str]:
    found, _ = attribute(files, cluster_id=None, brokers={}, known_cluster=None)
    (owner,) = (owner for owner in found if owner.file.location == location)
    return owner.cluster_id, owner.cluster_source


@pytest.mark.parametrize(
    ("first", "last", "cluster_id"),
    [
        ("2025-10-01 00:00:02.000", "2025-10-01 00:59:59.000", "B"),  # written before the broker states its id
        ("2026-01-05 10:00:00.000", "2026-01-05 11:00:00.000", "B"),
        ("2026-04-01 10:00:00.000", "2026-05-01 10:00:00.000", "A"),
        ("2025-10-01 10:00:00.000", "2026-04-01 10:00:00.000", None),  # of both
        ("2025-09-01 10:00:00.000", "2025-09-01 10:00:00.000", None),  # from before anything was stated
        (None, None, None),
    ],
)
def test_a_log_is_of_the_cluster_that_its_folder_stated_last_or_a_cluster_of_its_own(
    first: str | None, last: str | None, cluster_id: str | None
) -> None:
    log = file("/c/state-change.log", first_line="0123456789abcdefgh", first_at=first, last_at=last)
    expected = (cluster_id, "time") if cluster_id else (f"{UNKNOWN_CLUSTER}-0123456789abcdef", "ambiguous")
    assert source_of([OCTOBER, APRIL, log], log.location) == expected


def test_clusters_of_two_folders_at_one_time_are_both_possible_above_them() -> None:
    other = replace(OCTOBER, location="/c/two/server.log", cluster_id="C", statements=((OCTOBER.cluster_at, "C"),))
    times = {"first_at": "2025-10-01 10:00:00.000", "last_at": "2025-10-01 11:00:00.000"}
    above, beside = file("/c/three/controller.log", **times), file("/c/two/controller.log", **times)
    assert source_of([OCTOBER, other, above, beside], above.location)[1] == "ambiguous"
    assert source_of([OCTOBER, other, above, beside], beside.location) == ("C", "folder")


def test_what_names_a_cluster_without_a_time_is_possible_at_any_time() -> None:
    times = {"first_at": "2025-10-01 10:00:00.000", "last_at": "2025-10-01 11:00:00.000"}
    log = file("/c/state-change.log", **times)
    meta = file("/c/meta.properties", "meta_properties", cluster_id="C", cluster_rank=CLUSTER_META)
    same = replace(meta, cluster_id="A")
    assert source_of([OCTOBER, APRIL, same, log], log.location) == ("B", "time")
    assert source_of([OCTOBER, APRIL, meta, log], log.location)[1] == "ambiguous"


def test_several_clusters_in_one_folder_are_warned_of_and_what_is_not_read_makes_no_cluster() -> None:
    page = replace(file("/c/page.html", "unrecognised"), status="rejected")
    assert source_of([OCTOBER, APRIL, page], page.location) == (UNKNOWN_CLUSTER, "ambiguous")
    assert source_of([APRIL, page], page.location) == ("A", "folder")
    copies = [file(f"/c/{n}/replication-offset-checkpoint", "replication_offset_checkpoint") for n in "12"]
    found, warnings = attribute([OCTOBER, APRIL, page, *copies], cluster_id=None, brokers={}, known_cluster=None)
    assert len({owner.cluster_id for owner in found} - {UNKNOWN_CLUSTER}) == 4
    (warning,) = warnings
    assert "several clusters (A, B)" in warning


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
