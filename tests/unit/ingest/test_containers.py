"""Compressed files and archives: read as streams, nothing outside, damage named."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from pathlib import Path

import pytest

from ingest import storage
from ingest.containers import contents, damage_of
from ingest.inspection import inspect
from ingest.storage import Found, StorageError, list_files

LINE = b"[2026-03-11 10:21:07,123] INFO [Controller id=4] Ready (kafka.controller.KafkaController)\n"


def read_all(path: Path) -> list[tuple[str | None, str, bytes | str, str | None]]:
    found = []
    for content in contents(str(path)):
        if content.problem:
            found.append((content.member, content.compression, content.problem, None))
            continue
        data = b""
        while block := content.stream.read(1000):
            data += block
        found.append((content.member, content.compression, data, damage_of(content.stream)))
    return found


def test_gzip_is_seen_by_content_and_may_have_several_members(tmp_path: Path) -> None:
    path = tmp_path / "misnamed.log"
    path.write_bytes(gzip.compress(LINE * 100) + gzip.compress(b"more") + b"\0" * 10)
    assert read_all(path) == [(None, "gzip", LINE * 100 + b"more", None)]


def test_a_gzip_that_is_cut_off_gives_what_is_there(tmp_path: Path) -> None:
    data = os.urandom(50_000)
    path = tmp_path / "cut.gz"
    path.write_bytes(gzip.compress(data)[:30_000])
    ((_, _, read, damage),) = read_all(path)
    assert isinstance(read, bytes)
    assert 20_000 < len(read) < 30_000
    assert data.startswith(read)
    assert damage == "the gzip data is cut off here"


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_members_of_archives_are_files_and_bad_entries_are_refused(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "bundle.bin"
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, data in (("a/x.log", LINE), ("../evil", b"x"), ("/abs", b"x"), ("b.gz", gzip.compress(LINE))):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
        link = tarfile.TarInfo("link")
        link.type = tarfile.SYMTYPE
        link.linkname = "/etc/passwd"
        archive.addfile(link)
    packed = "tar" if mode == "w" else "tar.gz"
    found = {member: (compression, data) for member, compression, data, _ in read_all(path)}
    assert found["a/x.log"] == (packed, LINE)
    assert found["b.gz"] == (packed, LINE)
    for name in ("../evil", "/abs"):
        assert "points outside" in str(found[name][1])
    assert "links are not followed" in str(found["link"][1])


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
    found = list(inspect(Found(str(path), "cut.tgz")))
    assert [item.source_file for item in found][:2] == ["cut.tgz!a.log", "cut.tgz!b.log"]
    assert found[0].size_bytes == 100_000
    assert found[1].damage is not None or "cut off" in str(found[-1].reason)


def test_links_are_not_followed_out_of_the_tree(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.log").write_bytes(LINE)
    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "sub" / "real.log").write_bytes(LINE)
    (tree / "inside.log").symlink_to(tree / "sub" / "real.log")
    (tree / "file.log").symlink_to(outside / "secret.log")
    (tree / "folder").symlink_to(outside)
    (tree / "gone").symlink_to(outside / "nothing")
    found = {file.source_file: file.problem for file in list_files(str(tree))}
    assert found["sub/real.log"] is None
    assert set(found) == {"sub/real.log", "file.log", "folder", "gone"}
    assert "leads out of the folder" in str(found["file.log"])


def test_paths_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="does not exist"):
        list_files(str(tmp_path / "nothing"))
    assert storage.locate("file:///a/b/../c") == "/a/c"
    assert storage.locate("hdfs://nn:8020/logs/") == "hdfs://nn:8020/logs"


def test_a_file_that_cannot_be_opened_is_rejected_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(location: str, offset: int = 0) -> storage.ByteStream:
        raise PermissionError(13, "Permission denied", location)

    monkeypatch.setattr(storage, "open_stream", denied)
    (item,) = inspect(Found("/c/server.log", "server.log"))
    assert item.status == "rejected"
    assert item.reason == "the file cannot be read (Permission denied): check its permissions and its disk"


def test_splits_are_at_records_and_know_their_line(tmp_path: Path) -> None:
    path = tmp_path / "big.log"
    record = LINE + b"\tat a.B.c(B.scala:1)\n"
    path.write_bytes(record * 50_000)
    (item,) = inspect(Found(str(path), "big.log"), split_bytes=1 << 20)
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
        (item,) = inspect(Found(str(tmp_path / name), name))
        assert item.ingestible_bytes == ingestible
    (tmp_path / "x.log.gz").write_bytes(gzip.compress(LINE + b"[2026"))
    (item,) = inspect(Found(str(tmp_path / "x.log.gz"), "x.log.gz"))
    assert (item.ingestible_bytes, item.compression) == (len(LINE) + 5, "gzip")
