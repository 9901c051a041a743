"""The metadata log of a KRaft node, copied while it grows."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest

from ingest.capture.machine.metadata_copies import MetadataCopies, whole_batches
from ingest.capture.output import CaptureFolder
from ingest.readers.log_dirs.names import METADATA_DIRECTORY
from tests import ROOT

PLAYED = ROOT / "tests" / "data" / "kraft-4.1.0" / "broker-1"
SEGMENT = "00000000000000000000.log"
WHOLE = (PLAYED / METADATA_DIRECTORY / SEGMENT).read_bytes()


class Node:
    """A node's log directory, and its copy."""

    def __init__(self, folder: Path) -> None:
        self.log_dir = folder / "data"
        self.directory = self.log_dir / METADATA_DIRECTORY
        self.directory.mkdir(parents=True)
        self.capture = CaptureFolder(str(folder / "capture"))
        self.copied = folder / "capture" / "broker-1"
        self.copies = self.again()

    def again(self) -> MetadataCopies:
        """As another capturer begins."""
        return MetadataCopies(1, str(self.log_dir), self.capture.write, self.capture.path)

    def has(self, content: bytes, name: str = SEGMENT) -> None:
        (self.directory / name).write_bytes(content)

    def copy_of(self, name: str = SEGMENT) -> bytes:
        return (self.copied / METADATA_DIRECTORY / name).read_bytes()


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_a_directory_without_a_metadata_log_gives_nothing(node: Node) -> None:
    shutil.rmtree(node.directory)
    assert node.copies.copy() == 0
    assert not node.copied.exists()


def test_whole_batches_are_copied_as_the_log_grows(node: Node) -> None:
    for size in range(0, len(WHOLE), 500):
        node.has(WHOLE[:size])
        node.copies.copy()
        if size:
            copied = node.copy_of()
            assert copied == WHOLE[: whole_batches(WHOLE[:size])]
    node.has(WHOLE)
    node.again().copy()
    assert node.copy_of() == WHOLE
    assert node.again().copy() == 0
    assert node.copies.lost == []


def test_zeros_that_were_preallocated_are_not_copied(node: Node) -> None:
    node.has(WHOLE + bytes(4096))
    node.copies.copy()
    assert node.copy_of() == WHOLE


def test_a_log_that_was_cut_back_replaces_its_copy_and_is_told(node: Node) -> None:
    half = whole_batches(WHOLE[: len(WHOLE) // 2])
    node.has(WHOLE)
    node.copies.copy()
    node.has(WHOLE[:half])
    assert node.copies.copy() == 1
    assert node.copy_of() == WHOLE[:half]
    assert [name for name, _ in node.copies.lost] == [SEGMENT]


def test_damage_is_copied_as_it_is(node: Node) -> None:
    absurd = struct.pack(">qi", 7, -5) + b"whatever"
    node.has(WHOLE + absurd)
    node.copies.copy()
    assert node.copy_of() == WHOLE + absurd


def test_snapshots_and_the_vote_are_copied_and_unfinished_files_are_not(node: Node) -> None:
    name = "00000000000000000042-0000000001.checkpoint"
    snapshot = (PLAYED / METADATA_DIRECTORY / name).read_bytes()
    node.has(WHOLE)
    node.has(snapshot, name)
    node.has(snapshot[:9], "00000000000000000106-0000000001.checkpoint.part")
    node.has(b'{"leaderId":1}', "quorum-state")
    (node.log_dir / "bootstrap.checkpoint").write_bytes(snapshot)
    assert node.copies.copy() == 4
    assert node.copies.copy() == 0
    node.has(b'{"leaderId":2}', "quorum-state")
    assert node.copies.copy() == 1
    found = sorted(path.name for path in (node.copied / METADATA_DIRECTORY).iterdir())
    assert found == [SEGMENT, name, "quorum-state"]
    assert node.copy_of("quorum-state") == b'{"leaderId":2}'
    assert (node.copied / "bootstrap.checkpoint").read_bytes() == snapshot


def test_what_a_node_has_deleted_stays_copied(node: Node) -> None:
    node.has(WHOLE)
    node.copies.copy()
    (node.directory / SEGMENT).rename(node.directory / f"{SEGMENT}.deleted")
    node.has(WHOLE, "00000000000000000108.log")
    node.copies.copy()
    assert node.copy_of() == WHOLE
