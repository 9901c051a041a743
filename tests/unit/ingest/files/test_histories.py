"""Metadata logs that state one cluster's id, of one cluster or of several: real quorums."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Final

import google_crc32c
import pytest

from ingest.containers import storage
from ingest.files.attribution import UNKNOWN_CLUSTER, Attributed, attribute
from ingest.files.histories import part_histories
from ingest.files.inspection import inspect
from ingest.files.metadata_marks import LogMarks, offset_of
from ingest.readers.metadata_log.framing import HEADER, Batch, BatchFramer
from reconstruct.metadata_log.timeline import replay_of_none, replay_rows
from tests import ROOT
from tests.support.metadata_log import NODES, ONE_VOTER, QUORUM, REASSIGNED, UNCLEAN, cluster_log

#: The id that a Compose file sets.
COPIED: Final = "EP6hyiddQNW5FPrAvR9kWw"
OUTAGE: Final = ROOT / "tests" / "data" / "kraft-4.3.1-quorum-outage"
_LOG: Final = "__cluster_metadata-0"
_CRC_AT, _CRC_FROM = 17, 21

#: Changes batches of a file; None takes one away.
Change = Callable[[int, bytes], bytes | None]


def node(source: Path, target: Path, node_id: int | None = None) -> Path:
    """A copy of a node's folder that states the copied id."""
    shutil.copytree(source, target)
    named = node_id if node_id is not None else int(source.name.rpartition("-")[2])
    (target / "meta.properties").write_text(f"version=1\ncluster.id={COPIED}\nnode.id={named}\n")
    return target


def batches(data: bytes) -> Iterator[Batch]:
    framer = BatchFramer()
    yield from framer.take(data)


def rewrite(folder: Path, change: Change) -> None:
    """The node's log with each batch changed, its checksum made right again."""
    (log,) = (folder / _LOG).glob("*.log")
    kept = []
    for batch in batches(log.read_bytes()):
        changed = change(HEADER.unpack_from(batch.data)[0], batch.data)
        if changed is not None:
            checksum = struct.pack(">I", google_crc32c.value(changed[_CRC_FROM:]))
            kept.append(changed[:_CRC_AT] + checksum + changed[_CRC_FROM:])
    log.write_bytes(b"".join(kept))


def attributed(folder: Path, known: dict[str, frozenset[str]] | None = None) -> tuple[list[Attributed], list[str]]:
    files = [one for found in storage.list_files(str(folder)) for one in inspect(found)]
    owners, _ = attribute(files, cluster_id=None, brokers={}, known_cluster=None)
    return part_histories(owners, known or {})


def clusters(folder: Path, known: dict[str, frozenset[str]] | None = None) -> dict[str, list[str]]:
    """By cluster the files below the folder that are its."""
    found: dict[str, list[str]] = {}
    for owner in attributed(folder, known)[0]:
        found.setdefault(owner.cluster_id, []).append(owner.file.location.removeprefix(f"{folder}/"))
    return found


def by_folder(folder: Path) -> dict[str, set[str]]:
    """By the folder below the given one the clusters of its files."""
    found: dict[str, set[str]] = {}
    for cluster, names in clusters(folder).items():
        for name in names:
            found.setdefault(name.partition("/")[0], set()).add(cluster)
    return found


def test_logs_of_several_clusters_that_state_one_id_are_clusters_of_their_own(tmp_path: Path) -> None:
    for one in NODES:
        node(one, tmp_path / "first" / one.name)
    node(ONE_VOTER, tmp_path / "second" / "broker-1")
    node(UNCLEAN, tmp_path / "third" / "data", 1)
    (tmp_path / "second" / "broker-1" / "replication-offset-checkpoint").write_text("0\n0\n")
    found = by_folder(tmp_path)
    assert [len(ids) for ids in found.values()] == [1, 1, 1]
    assert len({min(ids) for ids in found.values()}) == 3
    assert all(id_.startswith(f"{COPIED}-") for ids in found.values() for id_ in ids)
    _, warnings = attributed(tmp_path)
    (warning,) = warnings
    assert f"state the cluster id {COPIED}" in warning
    assert "first/broker-2" in warning


@pytest.mark.parametrize("capture", [QUORUM, OUTAGE], ids=["quorum", "outage"])
def test_the_nodes_of_one_quorum_are_one_cluster(capture: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(capture, tmp_path / "all")
    assert len(clusters(folder)) == 1
    assert attributed(folder)[1] == []


def test_a_record_that_differs_behind_a_common_beginning_parts_nothing(tmp_path: Path) -> None:
    for one in NODES:
        node(one, tmp_path / one.name)

    def other_record(offset: int, data: bytes) -> bytes:
        return data[:-3] + bytes([data[-3] ^ 1]) + data[-2:] if offset == 100 else data

    def later(offset: int, data: bytes) -> bytes:
        """All times behind an offset are others, as where two controllers went on in one epoch."""
        times = struct.pack(">qq", *(at + 7 for at in struct.unpack_from(">qq", data, 27)))
        return data[:27] + times + data[43:] if offset >= 60 else data

    rewrite(tmp_path / "broker-2", other_record)
    rewrite(tmp_path / "broker-3", later)
    assert list(clusters(tmp_path)) == [COPIED]


def test_a_committed_record_that_differs_on_one_node_is_found_from_the_bytes_on(tmp_path: Path) -> None:
    nodes = tuple(node(one, tmp_path / one.name) for one in NODES)
    rewrite(nodes[1], lambda offset, data: data.replace(b"ledger", b"hedger") if b"ledger" in data else data)
    assert list(clusters(tmp_path)) == [COPIED]
    log, topics = cluster_log(nodes)
    findings = [one for rows in topics.values() for one in replay_rows(rows, log.of_quorum).verdicts.findings]
    findings += replay_of_none(log).verdicts.findings
    assert "R50" in {finding.rule_id for finding in findings if finding.severity == "error"}


def test_a_log_that_was_cut_at_its_head_or_its_end_is_still_of_its_quorum(tmp_path: Path) -> None:
    one, two, three = NODES
    node(one, tmp_path / one.name)
    rewrite(tmp_path / one.name, lambda offset, data: data if offset >= 120 else None)
    node(two, tmp_path / two.name)
    rewrite(tmp_path / two.name, lambda offset, data: data if offset < 60 else None)
    node(three, tmp_path / three.name)
    assert list(clusters(tmp_path)) == [COPIED]


def test_logs_that_overlap_nowhere_are_one_by_the_topics_and_processes_that_both_tell_of(tmp_path: Path) -> None:
    one, two, _ = NODES
    node(one, tmp_path / one.name)
    rewrite(tmp_path / one.name, lambda offset, data: data if offset >= 120 else None)
    node(two, tmp_path / two.name)
    rewrite(tmp_path / two.name, lambda offset, data: data if offset < 100 else None)
    for snapshot in (tmp_path / two.name / _LOG).glob("*.checkpoint"):
        snapshot.unlink()
    assert list(clusters(tmp_path)) == [COPIED]


def test_snapshots_alone_are_of_the_quorum_whose_log_they_end_in(tmp_path: Path) -> None:
    node(NODES[0], tmp_path / "one")
    node(NODES[1], tmp_path / "two")
    node(ONE_VOTER, tmp_path / "other")
    for folder in ("two", "other"):
        for log in (tmp_path / folder / _LOG).glob("*.log"):
            log.unlink()
    found = by_folder(tmp_path)
    assert found["one"] == found["two"]
    assert found["one"].isdisjoint(found["other"])


def test_a_node_that_was_copied_twice_is_one(tmp_path: Path) -> None:
    node(ONE_VOTER, tmp_path / "data")
    node(ONE_VOTER, tmp_path / "backup")
    rewrite(tmp_path / "backup", lambda offset, data: data if offset < 50 else None)
    assert list(clusters(tmp_path)) == [COPIED]


def test_a_segment_goes_with_its_folder_though_it_has_nothing_in_common_with_the_others(tmp_path: Path) -> None:
    node(ONE_VOTER, tmp_path / "data")
    (log,) = (tmp_path / "data" / _LOG).glob("*.log")
    framed = list(batches(log.read_bytes()))
    last = next(one for one in reversed(framed) if one.length < HEADER.size + 16)
    log.write_bytes(b"".join(one.data for one in framed if one.offset < last.offset))
    (log.parent / f"{HEADER.unpack_from(last.data)[0]:020d}.log").write_bytes(last.data)
    assert list(clusters(tmp_path)) == [COPIED]


def test_two_logs_of_one_folder_that_contradict_each_other_are_two(tmp_path: Path) -> None:
    node(ONE_VOTER, tmp_path / "data")
    (reassigned,) = (REASSIGNED / _LOG).glob("*.log")
    shutil.copy(reassigned, tmp_path / "data" / _LOG / "00000000000000000001.log")
    found = clusters(tmp_path)
    owners = {owner.file.location.rpartition("/")[2]: owner for owner in attributed(tmp_path)[0]}
    logs = ["00000000000000000000.log", "00000000000000000001.log"]
    assert len({owners[name].cluster_id for name in logs}) == 2
    # of which of the two its quorum-state is, nothing says
    assert owners["quorum-state"].is_ambiguous
    assert len(found) == 3


def test_files_without_a_metadata_log_go_with_their_node_or_stand_alone(tmp_path: Path) -> None:
    for one in NODES:
        node(one, tmp_path / "data" / one.name)
    node(ONE_VOTER, tmp_path / "data" / "single", 9)
    for name, id_ in (("second", 2), ("ninth", 9), ("fourth", 4)):
        folder = tmp_path / "more" / name
        folder.mkdir(parents=True)
        (folder / "meta.properties").write_text(f"version=1\ncluster.id={COPIED}\nnode.id={id_}\n")
        (folder / "replication-offset-checkpoint").write_text("0\n0\n")
    notes = tmp_path / "data" / "notes.txt"
    notes.write_text(f"{COPIED}\n")
    owners, _ = attributed(tmp_path)
    found: dict[str, set[tuple[str, bool]]] = {}
    for owner in owners:
        place = owner.file.location.removeprefix(f"{tmp_path}/").split("/")[1]
        found.setdefault(place, set()).add((owner.cluster_id, owner.is_ambiguous))
    assert found["second"] == found["broker-1"]
    assert found["ninth"] == found["single"]
    ((_, is_ambiguous),) = found["fourth"]
    assert is_ambiguous
    # what is not read makes no cluster
    assert found["notes.txt"] == {(UNKNOWN_CLUSTER, True)}


def test_a_node_that_states_no_id_is_one_cluster_of_its_own_beside_others_that_do(tmp_path: Path) -> None:
    node(NODES[0], tmp_path / "one")
    node(ONE_VOTER, tmp_path / "two")
    for name in ("one", "two"):
        meta = tmp_path / name / "meta.properties"
        meta.write_text(meta.read_text().replace(COPIED, f"{COPIED[:-1]}{name}"))
    folder = node(REASSIGNED, tmp_path / "nameless", 1)
    (folder / "meta.properties").write_text("version=1\ncluster.id=\nnode.id=1\n")
    (folder / "replication-offset-checkpoint").write_text("0\n0\n")
    found = by_folder(tmp_path)
    assert all(len(ids) == 1 for ids in found.values())
    assert len({min(ids) for ids in found.values()}) == 3


def test_nodes_that_state_no_id_are_told_apart_by_their_logs(tmp_path: Path) -> None:
    for source, name in ((ONE_VOTER, "one"), (REASSIGNED, "two"), (NODES[0], "three"), (NODES[1], "four")):
        (node(source, tmp_path / name) / "meta.properties").unlink()
    found = by_folder(tmp_path)
    assert found["three"] == found["four"]
    assert len({min(ids) for ids in found.values()}) == 3


def damage(folder: Path, random: Random) -> None:
    """The node's log cut at its head or end, a bit of it changed, its snapshots or what states its id gone."""
    (log,) = (folder / _LOG).glob("*.log")
    data = log.read_bytes()
    last = max(HEADER.unpack_from(batch.data)[0] for batch in batches(data))
    cut, at = random.randrange(1, last), random.randrange(len(data))
    match random.choice(["head", "end", "bit", "bytes", "snapshots", "id"]):
        case "head":
            rewrite(folder, lambda offset, batch: batch if offset >= cut else None)
        case "end":
            rewrite(folder, lambda offset, batch: batch if offset < cut else None)
        case "bit":
            log.write_bytes(data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :])
        case "bytes":
            log.write_bytes(data[:at])
        case "snapshots":
            for snapshot in (folder / _LOG).glob("*.checkpoint"):
                snapshot.unlink()
        case "id":
            (folder / "meta.properties").unlink()


@pytest.mark.parametrize("seed", range(20))
def test_damage_neither_parts_a_quorum_nor_joins_two(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    captures = {"quorum": NODES, "one": (ONE_VOTER,), "reassigned": (REASSIGNED,), "unclean": (UNCLEAN,)}
    for name in random.sample(sorted(captures), random.randint(1, 3)):
        for one in captures[name]:
            damage(node(one, tmp_path / name / one.name), random)
    found: dict[str, set[str]] = {}
    for owner in attributed(tmp_path)[0]:
        if owner.file.marks:
            name = owner.file.location.removeprefix(f"{tmp_path}/").partition("/")[0]
            found.setdefault(name, set()).add(owner.cluster_id)
    assert [len(ids) for ids in found.values()] == [1] * len(found)
    assert len(set().union(*found.values())) == len(found)


def marks_of(folder: Path) -> frozenset[str]:
    return frozenset(mark for owner in attributed(folder)[0] for mark in owner.file.marks)


def test_what_the_lake_has_of_an_id_goes_on_and_another_history_does_not(tmp_path: Path) -> None:
    node(ONE_VOTER, tmp_path / "first" / "data")
    node(REASSIGNED, tmp_path / "second" / "data")
    first, second = marks_of(tmp_path / "first"), marks_of(tmp_path / "second")
    assert list(clusters(tmp_path / "first", {COPIED: first, "another": frozenset()})) == [COPIED]
    (apart,) = clusters(tmp_path / "second", {COPIED: frozenset()})
    assert apart.startswith(f"{COPIED}-")
    both = clusters(tmp_path, {COPIED: first})
    assert set(both) == {COPIED, apart}
    assert list(clusters(tmp_path / "second", {COPIED: frozenset(), apart: second})) == [apart]


def test_what_a_lake_took_for_one_stays_one_and_is_told(tmp_path: Path) -> None:
    node(ONE_VOTER, tmp_path / "first")
    node(REASSIGNED, tmp_path / "second")
    known = {COPIED: marks_of(tmp_path)}
    assert list(clusters(tmp_path, known)) == [COPIED]
    (warning,) = attributed(tmp_path, known)[1]
    assert "begin a new lake" in warning


def test_the_coarser_of_two_copies_has_no_place_that_the_finer_lacks() -> None:
    def noops(start: int, end: int) -> list[str]:
        marks = LogMarks()
        for offset in range(start, end):
            header = HEADER.pack(offset, 50, 1, 2, 0, 0, 0, 1_000 + offset, 1_000 + offset, -1, -1, -1, 1)
            marks.take(Batch(0, len(header), 1, header))
        return sorted(marks.result(), key=lambda mark: offset_of(mark) or 0)

    whole, end = noops(0, 40_000), noops(37_003, 39_000)
    assert len(whole) < 1_100
    assert {mark for mark in whole if 37_003 <= (offset_of(mark) or 0) < 39_000} <= set(end)
    assert len(set(whole) & set(end)) > 20
