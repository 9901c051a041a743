"""Zip archives: by their directory, without it in sequence, what is refused, and where damage ends them."""

from __future__ import annotations

import io
import random
import stat
import struct
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.containers import damage_of, zip_archives, zip_directory
from ingest.containers.entries import DEVICE, LINK, OUTSIDE, Entry
from ingest.containers.streams import Peekable
from ingest.containers.zip_entries import in_sequence
from tests.unit.ingest.containers.packing import COMPRESS, LINE, ZIP_METHODS, take, whole, zipped

TWO = {"a/state-change.log": LINE * 1000, "b.log": LINE * 3 + b"no end"}
NOISE = random.Random(2).randbytes(5000)


def read(entries: object) -> list[tuple[str | None, bytes, str | None]]:
    found = []
    for entry in entries:  # type: ignore[attr-defined]
        assert isinstance(entry, Entry)
        parts = []
        while block := entry.stream.read(700):
            parts.append(block)
        found.append((entry.name, b"".join(parts), entry.problem or damage_of(entry.stream)))
    return found


def given_by(data: bytes) -> list[tuple[str | None, bytes, str | None]]:
    return read(zip_archives.entries(io.BytesIO(data)))


def in_order(data: bytes) -> list[tuple[str | None, bytes, str | None]]:
    return read(in_sequence(Peekable(io.BytesIO(data)), None))


def expected(members: dict[str, bytes]) -> list[tuple[str | None, bytes, str | None]]:
    return [(name, data, None) for name, data in members.items()]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("method", ZIP_METHODS)
def test_every_method_by_the_directory(method: int, streamed: bool, tmp_path: Path) -> None:
    members = {**TWO, "empty": b"", "folder/": b"", "noise": NOISE}
    found = take(zipped(members, method, streamed=streamed), tmp_path)
    del members["folder/"]
    assert [(item.member, item.compression, item.data) for item in found] == [
        (name, "zip", data) for name, data in members.items()
    ]
    assert {(item.problem, item.damage) for item in found} == {(None, None)}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("method", ZIP_METHODS)
def test_every_method_in_sequence(method: int, streamed: bool) -> None:
    data = zipped({**TWO, "folder/": b"", "noise": NOISE}, method, streamed=streamed)
    if streamed and method == zipfile.ZIP_STORED:
        refusal, last = in_order(data)
        assert "stored without its size" in str(refusal[2])
        assert "the length of a/state-change.log is not stated" in str(last[2])
    else:
        assert in_order(data) == expected({**TWO, "noise": NOISE})


def test_zstd_in_a_zip() -> None:
    data = bytearray(zipped({"a": COMPRESS["zstd"](LINE * 50)}, zipfile.ZIP_STORED))
    central = data.index(b"PK\x01\x02")
    for at in (0, central + 2):
        struct.pack_into("<H", data, at + 8, 93)
    crc = zipfile.crc32(LINE * 50)  # type: ignore[attr-defined]
    for at in (14, central + 16):
        struct.pack_into("<L", data, at, crc)
    for at in (22, central + 24):
        struct.pack_into("<L", data, at, len(LINE * 50))
    assert given_by(bytes(data)) == [("a", LINE * 50, None)]
    assert in_order(bytes(data)) == [("a", LINE * 50, None)]
    data[data.index(b"\x28\xb5\x2f\xfd")] ^= 1
    for found in (given_by(bytes(data)), in_order(bytes(data))):
        assert "no frame begins here" in str(found[0][2])


def test_zip64_sizes_and_offsets() -> None:
    held = io.BytesIO()
    with (
        zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("large.log", "w", force_zip64=True) as entry,
    ):
        entry.write(LINE * 100)
    data = held.getvalue()
    assert given_by(data) == in_order(data) == [("large.log", LINE * 100, None)]
    # A directory whose end is stated in 64 bits only.
    end = data.rindex(b"PK\x05\x06")
    count, size, start = struct.unpack_from("<HLL", data, end + 10)
    wide = b"PK\x06\x06" + struct.pack("<QHHLLQQQQ", 44, 45, 45, 0, 0, count, count, size, start)
    locator = b"PK\x06\x07" + struct.pack("<LQL", 0, end, 1)
    short = b"PK\x05\x06" + struct.pack("<4H2LH", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    assert given_by(data[:end] + wide + locator + short) == [("large.log", LINE * 100, None)]


def test_what_precedes_and_follows_the_archive_does_not_matter() -> None:
    held = io.BytesIO(b"PK\x03\x04 not really")
    held.seek(0, 2)
    with zipfile.ZipFile(held, "a") as archive:
        archive.comment = b"packed PK\x05\x06 by hand"
        archive.writestr("a", LINE)
    assert given_by(held.getvalue()) == [("a", LINE, None)]
    assert given_by(held.getvalue() + b"\0" * 100) == [("a", LINE, None)]


def with_attributes(mode: int) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        entry = zipfile.ZipInfo("it")
        entry.create_system = 3
        entry.external_attr = mode << 16
        archive.writestr(entry, b"/etc/passwd")
        archive.writestr("after", LINE)
    return held.getvalue()


def test_links_and_devices_are_refused_and_files_after_them_read() -> None:
    for mode, problem in (
        (stat.S_IFLNK, LINK),
        (stat.S_IFCHR, DEVICE),
        (stat.S_IFIFO, DEVICE),
        (stat.S_IFSOCK, DEVICE),
    ):
        assert given_by(with_attributes(mode | 0o644)) == [("it", b"", problem), ("after", LINE, None)]
    assert given_by(with_attributes(stat.S_IFREG | 0o644))[0] == ("it", b"/etc/passwd", None)


@pytest.mark.parametrize("name", ["../evil", "/abs", "a/../../b", "..\\evil", "\\abs", "C:\\evil", "D:/evil"])
def test_names_that_point_outside_are_refused(name: str) -> None:
    data = zipped({name: b"x", "after": LINE})
    assert (
        given_by(data) == in_order(data) == [(name.replace("a/../../b", "../b"), b"", OUTSIDE), ("after", LINE, None)]
    )


def test_names_of_other_systems() -> None:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for system in (0, 3):
            entry = zipfile.ZipInfo("x")
            entry.filename = f"broker-{system}\\server.log"
            entry.create_system = system
            archive.writestr(entry, LINE)
    dos, unix = given_by(held.getvalue())
    assert (dos[0], unix[0]) == ("broker-0/server.log", "broker-3\\server.log")
    latin = zipped({"q?q.log": LINE}).replace(b"q?q", b"q\x81q")
    assert given_by(latin)[0][0] == "qüq.log"
    assert given_by(zipped({"ü.log": LINE}))[0][0] == "ü.log"


@pytest.mark.parametrize(
    ("method", "flags", "sentence"),
    [
        (8, 1, "an encrypted entry"),
        (99, 1, "an encrypted entry"),
        (9, 0, "not supported (9, Deflate64): unpack it and give the folder"),
        (14, 0, "not supported (14, LZMA)"),
        (77, 0, "not supported (77, unknown)"),
    ],
)
def test_entries_that_cannot_be_read_are_named(method: int, flags: int, sentence: str) -> None:
    data = bytearray(zipped({"it": LINE, "after": LINE}))
    for at in (0, data.index(b"PK\x01\x02") + 2):
        struct.pack_into("<2H", data, at + 6, flags, method)
    for found in (given_by(bytes(data)), in_order(bytes(data))):
        assert found[0][:2] == ("it", b"")
        assert sentence in str(found[0][2])
        assert found[1] == ("after", LINE, None)


def test_content_that_does_not_fit_its_checksum_or_size_says_so() -> None:
    data = zipped({"a": NOISE, "b": LINE}, zipfile.ZIP_STORED)
    broken = bytearray(data)
    broken[2000] ^= 1
    for found in (given_by(bytes(broken)), in_order(bytes(broken))):
        assert found[0][2] == "the zip entry is damaged somewhere: its checksum does not fit"
        assert found[1] == ("b", LINE, None)
    shorter = bytearray(data)
    struct.pack_into("<L", shorter, data.index(b"PK\x01\x02") + 24, 10)
    assert given_by(bytes(shorter))[0][2] == "the zip entry ends after 5000 bytes, but 10 are stated"


def test_without_its_directory_what_is_whole_is_given_and_the_rest_named() -> None:
    for streamed in (False, True):
        data = zipped(TWO, streamed=streamed)
        *entries, last = given_by(data[: data.index(b"PK\x01\x02")])
        assert entries == expected(TWO)
        assert last == (
            None,
            b"",
            "the zip archive is damaged or cut off (the directory at its end is missing or damaged):"
            " later files may be missing",
        )


@pytest.mark.parametrize("streamed", [False, True])
@given(data=st.data())
def test_cut_anywhere_it_gives_prefixes_and_says_so(streamed: bool, data: st.DataObject) -> None:
    members = {"a": LINE * 30, "b": NOISE, "c": LINE}
    packed = zipped(members, data.draw(st.sampled_from(ZIP_METHODS)), streamed=streamed)
    *entries, last = given_by(packed[: data.draw(st.integers(4, len(packed) - 1))])
    assert last[2] is not None
    for name, content, _ in entries:
        assert name is not None
        assert members[name].startswith(content)


@given(data=st.data())
def test_any_bytes_give_entries_or_sentences(data: st.DataObject) -> None:
    packed = bytearray(zipped({"a": LINE, "b": NOISE[:300]}, streamed=data.draw(st.booleans())))
    for _ in range(data.draw(st.integers(0, 5))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    given_by(bytes(packed))
    in_order(bytes(packed))
    given_by(data.draw(st.binary(max_size=300)))


def test_a_directory_that_lies_is_damage_and_no_work_without_end() -> None:
    data = zipped({"a": LINE, "b": LINE})
    central, end = data.index(b"PK\x01\x02"), data.index(b"PK\x05\x06")
    first = data[central : data.index(b"PK\x01\x02", central + 1)]
    size = end - central
    twice = data[:end] + first + data[end:]
    twice = twice.replace(
        struct.pack("<L", size) + struct.pack("<L", central), struct.pack("<2L", size + len(first), central)
    )
    found = given_by(twice)
    assert [problem for _, _, problem in found] == [
        "the zip archive is damaged: this entry's bytes are also another's",
        None,
        "the zip archive is damaged: this entry's bytes are also another's",
    ]
    away = bytearray(data)
    struct.pack_into("<L", away, central + 42, 5)
    assert given_by(bytes(away))[0][2] == "the zip archive is damaged: this entry is not where its directory says"
    broken = bytearray(data)
    broken[data.index(b"PK\x01\x02", central + 1)] = 0
    *entries, last = given_by(bytes(broken))
    assert entries == expected({"a": LINE, "b": LINE})
    assert "(its directory cannot be read: Bad magic number for central directory)" in str(last[2])
    for at in (central + 32, end + 16):  # a comment that hides the second entry, and a directory beyond its end
        hiding = bytearray(data)
        struct.pack_into("<H", hiding, at, 60000)
        *entries, last = given_by(bytes(hiding))
        assert entries == expected({"a": LINE, "b": LINE})
        assert "(its directory is not what its end says)" in str(last[2])


def test_what_zipfile_refuses_is_read_in_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    no_utf8 = zipped({"aü.log": LINE, "after": LINE}).replace("ü".encode(), b"\xff\xfe")
    newer = bytearray(zipped({"a": LINE}))
    newer[newer.index(b"PK\x01\x02") + 6] = 99
    for data, names in ((no_utf8, ["a\\xff\\xfe.log", "after"]), (bytes(newer), ["a"])):
        *entries, last = given_by(data)
        assert entries == [(name, LINE, None) for name in names]
        assert "(its directory cannot be read: " in str(last[2])
    monkeypatch.setattr(zip_directory, "MAX_DIRECTORY_BYTES", 1 << 17)
    many = {f"{number}.log": LINE for number in range(3000)}
    *entries, last = given_by(zipped(many))
    assert entries == expected(many)


def test_one_part_of_several_is_named() -> None:
    data = bytearray(zipped({"a": LINE}))
    struct.pack_into("<2H", data, data.index(b"PK\x05\x06") + 4, 2, 0)
    assert "it is one part of several: join them first" in str(given_by(bytes(data))[-1][2])


def test_an_empty_archive_holds_nothing(tmp_path: Path) -> None:
    assert whole(zipped({}), tmp_path) == {}
