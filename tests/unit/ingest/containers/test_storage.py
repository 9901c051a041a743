"""Files, wherever they lie: what is listed, what is refused, how it is opened."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyarrow import fs

from ingest.containers import contents, storage
from ingest.containers.storage import StorageError, list_files
from tests.unit.ingest.containers.packing import LINE, zipped


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


def test_pipes_and_sockets_are_told_and_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "server.log")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        found = {file.source_file: file.problem for file in list_files(str(tmp_path))}
    assert found == dict.fromkeys(("server.log", "s"), "a device, pipe or socket: not opened")


def test_a_device_or_a_pipe_that_is_given_itself_is_not_opened(tmp_path: Path) -> None:
    """What comes out of it may have no end."""
    os.mkfifo(tmp_path / "server.log")
    for path in ("/dev/zero", str(tmp_path / "server.log")):
        (found,) = list_files(path)
        assert (found.location, found.problem) == (path, "a device, pipe or socket: not opened")
    (tmp_path / "endless.log").symlink_to("/dev/zero")
    assert "leads out of the folder" in str(
        {f.source_file: f.problem for f in list_files(str(tmp_path))}["endless.log"]
    )


def test_a_loop_of_links_ends(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "self").symlink_to(tmp_path / "self")
    (tmp_path / "a.log").write_bytes(LINE)
    assert {file.source_file for file in list_files(str(tmp_path))} >= {"a.log"}
    assert len(list_files(str(tmp_path))) <= 3


def test_paths_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="does not exist"):
        list_files(str(tmp_path / "nothing"))
    assert storage.locate("file:///a/b/../c") == "/a/c"
    assert storage.locate("hdfs://nn:8020/logs/") == "hdfs://nn:8020/logs"
    assert {storage.locate(f"{name}://bucket/logs") for name in ("s3", "s3a", "S3n")} == {"s3://bucket/logs"}


def test_names_that_are_no_utf8_are_listed_with_escapes_and_can_be_read(tmp_path: Path) -> None:
    raw = os.fsencode(tmp_path) + b"/b\xff.log"
    with open(raw, "wb") as file:
        file.write(LINE)
    (found,) = list_files(str(tmp_path))
    assert found.source_file == "b\\xff.log"
    assert [content.stream.read(1000) for content in contents(found.location)] == [LINE]


@pytest.mark.parametrize("name", ["a\nb.log", "a\rb.log", "\x1b[31mred.log", "\u202eback.log", "tab\t.log"])
def test_names_with_control_characters_are_kept_as_they_are_and_can_be_read(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(LINE)
    (found,) = list_files(str(tmp_path))
    assert found.source_file == name
    assert [content.stream.read(1000) for content in contents(found.location)] == [LINE]


def test_a_zip_on_a_remote_file_system_is_sought_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bundle").write_bytes(zipped({"a": LINE, "b": LINE * 2}, streamed=True))
    local = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    systems = SimpleNamespace(from_uri=lambda uri: (local, uri.rsplit("/", 1)[-1]))
    monkeypatch.setattr(storage, "fs", SimpleNamespace(FileSystem=systems))
    found = {content.member: content.stream.read(1000) for content in contents("hdfs://namenode/bundle")}
    assert found == {"a": LINE, "b": LINE * 2}
