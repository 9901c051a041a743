"""What unpacks to too much ends where the limit is, and says so; what stands around it is read."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from ingest.containers import limits, storage
from ingest.containers.storage import HOLE, list_files
from ingest.files.inspection import inspect
from ingest.run import reading
from tests.unit.ingest.containers.packing import COMPRESS, LINE, Taken, take, tar, whole, zipped

LIMIT = 1 << 20
BOMB = bytes(4 * LIMIT)


@pytest.fixture(autouse=True)
def _small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FREE_BYTES", LIMIT)
    monkeypatch.setattr(limits, "MAX_RATIO", 2)


def said(found: list[Taken]) -> dict[str | None, str | None]:
    return {item.member: item.problem or item.damage for item in found}


@pytest.mark.parametrize("packed", COMPRESS)
def test_what_comes_before_the_limit_is_read(packed: str, tmp_path: Path) -> None:
    (found,) = take(COMPRESS[packed](LINE + BOMB), tmp_path)
    assert found.data == (LINE + BOMB)[:LIMIT]
    assert found.damage == limits.TOO_MUCH


@pytest.mark.parametrize("packed", COMPRESS)
def test_a_large_file_may_unpack_to_as_many_times_its_size(packed: str, tmp_path: Path) -> None:
    noise = os.urandom(LIMIT)
    assert whole(COMPRESS[packed](noise + bytes(LIMIT // 2)), tmp_path) == {None: noise + bytes(LIMIT // 2)}


@pytest.mark.parametrize("packed", COMPRESS)
def test_files_around_one_that_unpacks_to_too_much_are_read(packed: str, tmp_path: Path) -> None:
    found = take(tar({"a": LINE, "bomb": COMPRESS[packed](BOMB), "b": LINE}), tmp_path)
    assert said(found) == {"a": None, "bomb": limits.TOO_MUCH, "b": None}
    assert [len(item.data) for item in found] == [len(LINE), LIMIT, len(LINE)]


@pytest.mark.parametrize("packed", COMPRESS)
def test_files_before_a_limit_of_the_archive_are_read(packed: str, tmp_path: Path) -> None:
    found = take(COMPRESS[packed](tar({"a": LINE, "bomb": BOMB, "b": LINE})), tmp_path)
    assert [item.member for item in found] == ["a", "bomb", None]
    assert found[0].data == LINE
    assert limits.TOO_MUCH in (found[1].damage or "")
    assert limits.TOO_MUCH in (found[2].problem or "")


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_a_zip_with_an_entry_that_unpacks_to_too_much(method: int, streamed: bool, tmp_path: Path) -> None:
    data = zipped({"a": LINE, "bomb": BOMB, "b": LINE}, method, streamed=streamed)
    for zip_of, name in ((data, None), (tar({"x": data}), "x"), (data[:-30], None)):
        found = take(zip_of, tmp_path)
        inner = f"{name}!" if name else ""
        assert [(item.member, len(item.data)) for item in found] == [
            (f"{inner}a", len(LINE)),
            (f"{inner}bomb", LIMIT - len(LINE)),
            (name, 0),
        ]
        assert found[1].damage == found[2].problem == limits.TOO_MUCH


def test_many_files_that_unpack_to_too_much_together(tmp_path: Path) -> None:
    piece = COMPRESS["gzip"](bytes(LIMIT // 2))
    found = take(tar(dict.fromkeys("abcd", piece) | {"e": LINE}), tmp_path)
    assert said(found) == {"a": None, "b": None, "c": limits.TOO_MUCH, "d": limits.TOO_MUCH, "e": None}


def test_the_members_that_are_read_end_the_pass_over_an_archive(tmp_path: Path) -> None:
    """What follows the last of them may be without end."""
    path = tmp_path / "file"
    path.write_bytes(tar({"a": LINE, "b": LINE * 2, "bomb": COMPRESS["gzip"](BOMB)}))
    wanted = [SimpleNamespace(location=str(path), member=name, offset=1) for name in ("b", "a")]
    passed = ((item.member, stream.read(1000)) for item, stream in reading._open(wanted))
    assert list(passed) == [("a", LINE[1:]), ("b", (LINE * 2)[1:])]


def test_bombs_in_bombs(tmp_path: Path) -> None:
    """What comes out of the outer layer is bounded, and out of the inner one."""
    gzip, xz = COMPRESS["gzip"], COMPRESS["xz"]
    (found,) = take(gzip(xz(BOMB)), tmp_path)
    assert (len(found.data), found.damage) == (LIMIT, limits.TOO_MUCH)
    (found,) = take(gzip(gzip(bytes(200 * LIMIT))), tmp_path)
    assert len(found.data) == LIMIT


def test_the_members_of_an_archive_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_MEMBERS", 3)
    for outer, inner in ((tar, zipped), (zipped, tar)):
        found = take(outer({"a": LINE, "b": inner({"c": LINE, "d": LINE, "e": LINE}), "f": LINE}), tmp_path)
        assert said(found) == {"a": None, "b!c": None, "b": limits.TOO_MANY, None: limits.TOO_MANY}


def test_the_names_of_an_archive_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_NAMES_CHARACTERS", 250)
    found = take(tar({letter * 90: LINE for letter in "abc"}), tmp_path)
    assert said(found) == {"a" * 90: None, "b" * 90: None, None: limits.TOO_MANY}


def test_each_limit_has_a_row_with_its_sentence(tmp_path: Path) -> None:
    (tmp_path / "server.log.gz").write_bytes(COMPRESS["gzip"](LINE * (3 * LIMIT // len(LINE))))
    (found,) = list_files(str(tmp_path))
    (log,) = inspect(found)
    assert (log.status, log.size_bytes, log.damage) == ("ingested", LIMIT, limits.TOO_MUCH)


def test_a_file_that_is_nothing_but_a_hole_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "FREE_BYTES", LIMIT)
    for name, size in (("hole", 1 << 40), ("small", LIMIT), ("full", 0)):
        with open(tmp_path / name, "wb") as file:
            file.write(os.urandom(2 * LIMIT) if name == "full" else LINE)
            file.truncate(max(size, file.tell()))
    found = {file.source_file: file for file in list_files(str(tmp_path))}
    assert {name: file.problem for name, file in found.items()} == {"hole": HOLE, "small": None, "full": None}
    assert [file.problem for file in list_files(str(tmp_path / "hole"))] == [HOLE]
    (row,) = inspect(found["hole"])
    assert (row.status, row.reason) == ("rejected", HOLE)
