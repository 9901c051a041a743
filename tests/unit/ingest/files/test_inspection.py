"""Inspection of files and members: what one pass over their bytes says."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import os
import resource
import tarfile
from pathlib import Path

import pytest

from ingest.containers import storage
from ingest.containers.storage import ListedFile
from ingest.files.inspection import inspect

LINE = b"[2026-03-11 10:21:07,123] INFO [Controller id=4] Ready (kafka.controller.KafkaController)\n"


def test_an_archive_that_is_cut_off_says_so(tmp_path: Path) -> None:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w:gz") as archive:
        for name in ("a.log", "b.log"):
            data = os.urandom(100_000)
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    path = tmp_path / "cut.tgz"
    path.write_bytes(whole.getvalue()[:150_000])
    found = list(inspect(ListedFile(str(path), "cut.tgz")))
    assert [item.source_file for item in found][:2] == ["cut.tgz!a.log", "cut.tgz!b.log"]
    assert found[0].size_bytes == 100_000
    assert found[1].damage is not None or "cut off" in str(found[-1].reason)


def test_a_file_that_cannot_be_opened_is_rejected_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(location: str, offset: int = 0) -> storage.ByteStream:
        raise PermissionError(13, "Permission denied", location)

    monkeypatch.setattr(storage, "open_stream", denied)
    (item,) = inspect(ListedFile("/c/server.log", "server.log"))
    assert item.status == "rejected"
    assert item.reason == "the file cannot be read (Permission denied): check its permissions and its disk"


def test_out_of_file_handles_says_so_and_the_file_is_read_the_next_time(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(LINE)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(map(int, os.listdir("/dev/fd")))
    held = [os.open(os.devnull, os.O_RDONLY)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, limits[1]))
    try:
        with contextlib.suppress(OSError):
            while True:
                held.append(os.open(os.devnull, os.O_RDONLY))
        (item,) = inspect(ListedFile(str(path), "server.log"))
    finally:
        for handle in held:
            os.close(handle)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert item.status == "rejected"
    assert item.reason == (
        "the file cannot be read (Too many open files): let more files be open (`ulimit -n`), then ingest it again"
    )
    (item,) = inspect(ListedFile(str(path), "server.log"))
    assert (item.status, item.size_bytes) == ("ingested", len(LINE))


def test_a_file_that_shrinks_while_it_is_read_is_what_is_left_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes that were read are those that are told of, whatever else the file was or becomes."""
    path, opened = tmp_path / "server.log", storage.open_stream
    path.write_bytes(LINE * 100_000)

    def cut(location: str, offset: int = 0) -> storage.ByteStream:
        stream = opened(location, offset)
        os.truncate(location, len(LINE) * 10)
        return stream

    monkeypatch.setattr(storage, "open_stream", cut)
    (item,) = inspect(ListedFile(str(path), "server.log"))
    assert item.status == "ingested"
    assert item.content_hash == hashlib.sha256(path.read_bytes()).hexdigest()
    assert item.size_bytes == len(LINE) * 10


def test_splits_are_at_records_and_know_their_line(tmp_path: Path) -> None:
    path = tmp_path / "big.log"
    record = LINE + b"\tat a.B.c(B.scala:1)\n"
    path.write_bytes(record * 50_000)
    (item,) = inspect(ListedFile(str(path), "big.log"), split_bytes=1 << 20)
    assert len(item.splits) == 2
    for offset, line in item.splits:
        assert offset % len(record) == 0
        assert line == 2 * (offset // len(record)) + 1
    assert item.line_count == 100_000


def test_an_unfinished_last_line_is_kept_back_in_a_live_log_only(tmp_path: Path) -> None:
    for name, data, ingestible in (
        ("server.log", LINE + b"[2026", len(LINE)),
        ("server.log.1", LINE + b"[2026", len(LINE) + 5),
    ):
        (tmp_path / name).write_bytes(data)
        (item,) = inspect(ListedFile(str(tmp_path / name), name))
        assert item.ingestible_bytes == ingestible
    (tmp_path / "x.log.gz").write_bytes(gzip.compress(LINE + b"[2026"))
    (item,) = inspect(ListedFile(str(tmp_path / "x.log.gz"), "x.log.gz"))
    assert (item.ingestible_bytes, item.compression) == (len(LINE) + 5, "gzip")


def test_a_log_says_when_it_begins_and_ends_and_each_cluster_that_it_states(tmp_path: Path) -> None:
    lines = [
        f"[2026-01-0{day} 10:00:00,123] INFO Cluster ID = {cluster} (kafka.server.KafkaServer)\n"
        for day, cluster in ((1, "A" * 22), (2, "B" * 22), (3, "A" * 22))
    ]
    filler = "[2026-01-02 11:00:00,000] INFO nothing (kafka.server.KafkaServer)\n" * 40_000
    (tmp_path / "server.log").write_text(lines[0] + lines[1] + filler + lines[2] + "\tat a stack trace\n" * 9)
    (file,) = inspect(ListedFile(str(tmp_path / "server.log"), "server.log"))
    assert (file.first_at, file.last_at) == ("2026-01-01 10:00:00.123", "2026-01-03 10:00:00.123")
    assert file.statements == (
        ("2026-01-01 10:00:00.123", "A" * 22),
        ("2026-01-02 10:00:00.123", "B" * 22),
        ("2026-01-03 10:00:00.123", "A" * 22),
    )
    assert (file.cluster_id, file.cluster_at) == ("A" * 22, "2026-01-01 10:00:00.123")


@pytest.mark.parametrize(
    "line",
    [
        "[BrokerLifecycleManager id=1] Incarnation UuK063FcSiiWE2DIIfUVvg of broker 1 in cluster {} is now STARTING."
        " (kafka.server.BrokerLifecycleManager)",
        "[Controller 1] Creating new QuorumController with clusterId {}, authorizer Optional.empty."
        " (org.apache.kafka.controller.QuorumController)",
        "[QuorumController id=1] Creating new QuorumController with clusterId {}."
        " (org.apache.kafka.controller.QuorumController)",
        "[QuorumController id=1] Creating new QuorumController with clusterId {}"
        " (org.apache.kafka.controller.QuorumController)",
    ],
)
def test_a_node_of_kraft_states_its_cluster_as_it_starts(line: str, tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text(f"[2025-07-06 15:08:31,763] INFO {line.format('MkU3OEVBNTcwNTJENDM2Qg')}\n")
    (file,) = inspect(ListedFile(str(tmp_path / "server.log"), "server.log"))
    assert file.statements == (("2025-07-06 15:08:31.763", "MkU3OEVBNTcwNTJENDM2Qg"),)


@pytest.mark.parametrize("server", ["[KafkaServer id=%d]", "[KafkaRaftServer nodeId=%d]"])
def test_a_log_of_several_brokers_is_nobodys(server: str, tmp_path: Path) -> None:
    started = b"[2026-03-11 10:21:07,123] INFO " + server.encode() + b" started (kafka.server.KafkaServer)\n"
    path = tmp_path / "server.log"
    path.write_bytes(started % 4 + LINE * 20_000 + started % 5)
    (item,) = inspect(ListedFile(str(path), "server.log"))
    assert (item.broker_id, item.is_shared) == (None, True)
    path.write_bytes(started % 4 + LINE + started % 4)
    (item,) = inspect(ListedFile(str(path), "server.log"))
    assert (item.broker_id, item.is_shared) == (4, False)
