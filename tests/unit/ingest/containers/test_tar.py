"""Tar archives: every format's headers, what is refused, and where a cut or damage ends them."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.containers import Peekable, damage_of, tar_archives
from ingest.containers.entries import DEVICE, LINK, NAME_TOO_LONG, OUTSIDE
from tests.unit.ingest.containers.packing import COMPRESS, LINE, TAR_OF, take, tar, whole

FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}
LONG = "/".join(["folder-of-a-long-name"] * 9) + "/" + "x" * 90
TWO = {"a/state-change.log": LINE * 100, "b.log": LINE * 3 + b"no end"}


def given_by(data: bytes) -> list[tuple[str | None, bytes, str | None]]:
    found = []
    for entry in tar_archives.entries(Peekable(io.BytesIO(data))):
        parts = []
        while block := entry.stream.read(700):
            parts.append(block)
        found.append((entry.name, b"".join(parts), entry.problem or damage_of(entry.stream)))
    return found


def header(name: str, kind: bytes, size: int = 0, **values: object) -> bytes:
    entry = tarfile.TarInfo(name)
    entry.type = kind
    entry.size = size
    for key, value in values.items():
        setattr(entry, key, value)
    return entry.tobuf(tarfile.GNU_FORMAT)


def resealed(block: bytearray) -> bytes:
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("packed", [None, *COMPRESS])
def test_every_format_in_every_compression(kind: str, packed: str | None, tmp_path: Path) -> None:
    name = LONG if kind != "ustar" else LONG[-200:].strip("/")
    data = tar({name: LINE * 1000, "ü.log": b"", "./b//c.log": b"x"}, format=FORMATS[kind])
    found = take(COMPRESS[packed](data) if packed else data, tmp_path)
    label = TAR_OF[packed] if packed else "tar"
    assert [(item.member, item.compression, item.data) for item in found] == [
        (name, label, LINE * 1000),
        ("ü.log", label, b""),
        ("b/c.log", label, b"x"),
    ]
    assert {(item.problem, item.damage) for item in found} == {(None, None)}


def test_an_archive_from_before_ustar_is_seen_by_its_checksum(tmp_path: Path) -> None:
    block = bytearray(header("v7.log", b"\0", len(LINE)))
    block[257:] = bytes(255)
    data = resealed(block) + LINE + bytes(512 - len(LINE)) + bytes(1024)
    assert whole(data, tmp_path) == {"v7.log": LINE}


def test_sizes_in_base_256_and_in_pax_headers() -> None:
    block = bytearray(header("a", b"0"))
    block[124:136] = b"\x80" + bytes(9) + len(LINE).to_bytes(2, "big")
    large = resealed(block) + LINE + bytes(512 - len(LINE))
    record = b"11 size=%d\n" % len(LINE)
    pax = header("x", b"x", len(record)) + record + bytes(512 - len(record)) + header("b", b"0", 0)
    data = large + pax + LINE + bytes(512 - len(LINE)) + bytes(1024)
    assert given_by(data) == [("a", LINE, None), ("b", LINE, None)]


def test_entries_that_are_no_files_are_refused_by_name_and_folders_passed_over() -> None:
    data = b"".join(
        [
            header("folder", b"5"),
            header("soft", b"2", linkname="/etc/passwd"),
            header("hard", b"1", linkname="a"),
            header("null", b"3"),
            header("sda", b"4"),
            header("pipe", b"6"),
            header("odd", b"Z"),
            header("rest", b"M"),
            header("volume", b"V"),
            header("after", b"0", 3) + b"yes" + bytes(509),
            bytes(1024),
        ]
    )
    found = {name: problem for name, _, problem in given_by(data)}
    assert list(found) == ["soft", "hard", "null", "sda", "pipe", "odd", "rest", "after"]
    assert {found["soft"], found["hard"]} == {LINK}
    assert {found["null"], found["sda"], found["pipe"]} == {DEVICE}
    assert "unknown type ('Z')" in str(found["odd"])
    assert "another volume" in str(found["rest"])
    assert found["after"] is None


@pytest.mark.parametrize(
    "name", ["../evil", "/abs", "a/../../evil", "..", "..\\evil", "\\abs", "C:\\evil", "c:evil", "a\\..\\..\\b"]
)
def test_names_that_point_outside_are_refused(name: str) -> None:
    for kind in FORMATS.values():
        (_, data, problem), last = given_by(tar({name: LINE, "after": LINE}, format=kind))
        assert (data, problem) == (b"", OUTSIDE)
        assert last == ("after", LINE, None)


def test_names_that_cannot_be_written_down_are_escaped_or_refused() -> None:
    raw = bytearray(header("a?b.log", b"0"))
    raw[1] = 0xFF
    (name, _, problem), (long, _, why) = given_by(resealed(raw) + tar({"n" * 5000: b""}, format=tarfile.PAX_FORMAT))
    assert (name, problem) == ("a\\xffb.log", None)
    assert (len(str(long)), why) == (4096, NAME_TOO_LONG)


@pytest.mark.parametrize("version", ["gnu", "posix --sparse-version=0.0", "posix --sparse-version=0.1", "posix"])
def test_sparse_files_get_their_holes_back(version: str, tmp_path: Path) -> None:
    content = bytearray(3 << 20)
    for at in range(1 << 16, len(content), 1 << 16):
        content[at : at + 5000] = LINE * 50
    (tmp_path / "f").mkdir()
    with open(tmp_path / "f" / "sparse.index", "wb") as file:
        for at in range(1 << 16, len(content), 1 << 16):
            file.seek(at)
            file.write(content[at : at + 4096])
            content[at + 4096 : at + (1 << 16)] = bytes((1 << 16) - 4096)
        file.truncate(len(content))
    (tmp_path / "f" / "hole").touch()
    with open(tmp_path / "f" / "hole", "wb") as file:
        file.truncate(1 << 20)
    (tmp_path / "f" / "last.log").write_bytes(LINE)
    command = f"tar -c -S --hole-detection=raw --sort=name -H {version} -C {tmp_path / 'f'} -f {tmp_path / 't'} ."
    subprocess.run(command.split(), check=True)
    packed = (tmp_path / "t").read_bytes()
    assert len(packed) < 1 << 20
    found = whole(packed, tmp_path)
    assert found == {"sparse.index": bytes(content), "hole": bytes(1 << 20), "last.log": LINE}


def test_sparse_files_whose_map_is_wrong_or_endless_are_refused() -> None:
    def sparse(pieces: list[tuple[int, int]], size: int, real: int) -> bytes:
        block = bytearray(header("s", b"S", size))
        for at, (offset, length) in enumerate(pieces):
            block[386 + at * 24 : 386 + at * 24 + 24] = b"%011o\0%011o\0" % (offset, length)
        block[483:495] = (b"%011o\0" % real) if real < 1 << 33 else b"\x80" + real.to_bytes(11, "big")
        return resealed(block) + bytes(-(-size // 512) * 512)

    after = tar({"after": LINE})
    assert given_by(sparse([(100, 2), (200, 3)], 5, 300) + after)[0] == ("s", bytes(300), None)
    for pieces, size, real in (([(5, 5), (1, 5)], 10, 100), ([(0, 5)], 10, 100), ([(0, 500)], 500, 100)):
        first, second = given_by(sparse(pieces, size, real) + after)
        assert "whose map cannot be read" in str(first[2])
        assert second == ("after", LINE, None)
    endless = given_by(sparse([(0, 5)], 5, 1 << 60) + after)[0]
    assert "bytes of holes, more than 4 GiB: refused" in str(endless[2])


def test_the_times_in_an_incremental_archive_are_no_part_of_a_name(tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "a.log").write_bytes(LINE)
    subprocess.run(f"tar -c -G -C {tmp_path / 'f'} -f {tmp_path / 't'} .".split(), check=True)
    assert whole((tmp_path / "t").read_bytes(), tmp_path) == {"a.log": LINE}


def test_archives_one_after_another_are_read_on(tmp_path: Path) -> None:
    assert whole(tar({"a": LINE}) + tar({"b": LINE}), tmp_path) == {"a": LINE, "b": LINE}


def test_what_follows_the_end_and_is_no_archive_is_named() -> None:
    entry, last = given_by(tar({"a": LINE}) + LINE * 10)
    assert entry == ("a", LINE, None)
    assert last[0] is None
    assert "no entry's header where one should be, at byte 10240" in str(last[2])


def test_an_archive_without_its_end_says_so() -> None:
    data = tar({"a": LINE})[:1024]
    entry, last = given_by(data)
    assert entry == ("a", LINE, None)
    assert last[2] == (
        "the archive is damaged or cut off (its end is missing at byte 1024): its later files are missing"
    )


def test_a_header_that_is_damaged_ends_the_archive_with_a_sentence() -> None:
    data = bytearray(tar(TWO))
    at = data.rindex(b"b.log")
    data[at] ^= 1
    entry, last = given_by(bytes(data))
    assert entry == ("a/state-change.log", TWO["a/state-change.log"], None)
    assert f"at byte {at}" in str(last[2])


def test_extended_headers_that_cannot_be_read_are_damage() -> None:
    for record in (b"9 path\n", b"999 path=x\n", b"x", b"12 size=-100\n", b"30 size=" + b"9" * 21 + b"\n"):
        data = header("x", b"x", len(record)) + record + bytes(512 - len(record)) + tar(TWO)
        assert [name for name, _, _ in given_by(data)] == [None]
    digits = b"1" * (1 << 20)
    for name, data in (("x", b"%d x=%s\n" % (len(digits) + 11, digits)), ("x", digits), ("L", b"n" * (3 << 20))):
        packed = header(name, name.encode(), len(data)) + data + bytes(-len(data) % 512) + tar(TWO)
        assert [(found, "an extended header" in str(problem)) for found, _, problem in given_by(packed)] == [
            (None, True)
        ]
    assert [name for name, _, _ in given_by(header("x", b"L") * 5000 + tar(TWO))] == [None]
    assert "an extended header of 8589934592 bytes" in str(given_by(header("x", b"L", (1 << 33) - 1))[0][2])


def test_damage_of_the_compression_is_stated_with_the_member_it_hits(tmp_path: Path) -> None:
    packed = COMPRESS["gzip"](tar({"a": LINE, "b": bytes(range(256)) * 1000}))
    first, second, last = take(packed[: len(packed) - 300], tmp_path)
    assert (first.data, first.damage) == (LINE, None)
    assert second.damage == "the archive is cut off here (the gzip data is cut off here)"
    assert "(b is not whole (the gzip data is cut off here))" in str(last.problem)
    assert (last.member, last.data) == (None, b"")


def test_damage_behind_the_last_file_is_stated(tmp_path: Path) -> None:
    packed = COMPRESS["gzip"](tar({"a": LINE}))
    first, last = take(packed[:-4], tmp_path)
    assert (first.data, first.damage) == (LINE, None)
    assert last.problem == "the archive is damaged behind its last file (the gzip data is cut off here)"


@given(end=st.integers(512, 10240))
def test_cut_anywhere_it_gives_prefixes_and_says_so(end: int) -> None:
    packed = tar(TWO)
    files_end = sum(512 + -(-len(data) // 512) * 512 for data in TWO.values())
    found = given_by(packed[:end])
    for (name, data, _), (whole_name, content) in zip(found, TWO.items(), strict=False):
        if name is not None:
            assert name == whole_name
            assert content.startswith(data)
    assert any(problem for _, _, problem in found) == (end < files_end + 512)


@given(data=st.data())
def test_any_bytes_give_entries_or_sentences(data: st.DataObject) -> None:
    packed = bytearray(
        tar({"a": LINE, LONG: LINE}, format=data.draw(st.sampled_from((tarfile.GNU_FORMAT, tarfile.PAX_FORMAT))))
    )
    for _ in range(data.draw(st.integers(0, 5))):
        packed[data.draw(st.integers(0, 4000)) % len(packed)] = data.draw(st.integers(0, 255))
    given_by(bytes(packed))
    given_by(data.draw(st.binary(max_size=2000)))


def test_is_tar_asks_for_a_whole_header() -> None:
    assert tar_archives.is_tar(tar(TWO)[:512])
    assert not tar_archives.is_tar(bytes(512))
    assert not tar_archives.is_tar(LINE * 6)
    assert not tar_archives.is_tar(b"")
