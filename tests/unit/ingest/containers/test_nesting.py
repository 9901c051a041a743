"""Archives inside archives: names, depth, what a bundle of per-broker tarballs gives."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.containers import contents, nesting, zip_archives
from ingest.lake.tables.bronze import COMPRESSIONS
from tests.unit.ingest.containers.packing import COMPRESS, LINE, TAR_OF, gzip_quine, take, tar, whole, zipped


@pytest.mark.parametrize("outer", [tar, zipped])
@pytest.mark.parametrize("packed", COMPRESS)
def test_a_bundle_of_tarballs_of_each_broker(outer, packed: str, tmp_path: Path) -> None:
    brokers = {
        f"bundle/broker-{n}.bin": COMPRESS[packed](
            tar({f"broker-{n}/server.log": LINE * n, "x.gz": COMPRESS["gzip"](LINE)})
        )
        for n in (1, 2)
    }
    found = take(outer({**brokers, "README": b"see inside"}), tmp_path)
    assert [(item.member, item.compression, item.data) for item in found] == [
        ("bundle/broker-1.bin!broker-1/server.log", TAR_OF[packed], LINE),
        ("bundle/broker-1.bin!x.gz", TAR_OF[packed], LINE),
        ("bundle/broker-2.bin!broker-2/server.log", TAR_OF[packed], LINE * 2),
        ("bundle/broker-2.bin!x.gz", TAR_OF[packed], LINE),
        ("README", "tar" if outer is tar else "zip", b"see inside"),
    ]


def test_zips_inside_tars_zips_and_compressed_files(tmp_path: Path) -> None:
    inner = zipped({"a": LINE})
    assert whole(tar({"x": inner}), tmp_path) == {"x!a": LINE}
    assert whole(zipped({"x": inner}), tmp_path) == {"x!a": LINE}
    assert whole(COMPRESS["zstd"](inner), tmp_path) == {"a": LINE}


def test_programs_are_not_opened(tmp_path: Path) -> None:
    program = zipped({"A.class": LINE})
    assert whole(tar({"libs/kafka.jar": program, "logs.zip": program}), tmp_path) == {
        "libs/kafka.jar": program,
        "logs.zip!A.class": LINE,
    }
    jar = tmp_path / "a.JAR"
    jar.write_bytes(program)
    assert [(item.member, item.stream.read(1 << 20)) for item in contents(str(jar))] == [(None, program)]


def test_a_zip_too_large_to_hold_is_read_in_sequence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zip_archives, "SPOOL_BYTES", 1000)
    noise = random.Random(3).randbytes(600_000)
    members = {"a": noise, "b": LINE}
    for streamed in (False, True):
        assert whole(tar({"x": zipped(members, streamed=streamed), "y": LINE}), tmp_path) == {
            "x!a": noise,
            "x!b": LINE,
            "y": LINE,
        }
    first, second, last = take(COMPRESS["gzip"](zipped(members))[:-30], tmp_path)
    assert (first.data, second.data) == (noise, LINE)
    assert "the gzip data is cut off here" in str(last.problem)


def test_three_archives_deep_is_read_and_four_refused(tmp_path: Path) -> None:
    three = tar({"m": zipped({"i": tar({"log": LINE})})})
    assert whole(three, tmp_path) == {"m!i!log": LINE}
    (found,) = take(zipped({"o": three}), tmp_path)
    assert (found.member, found.problem, found.data) == ("o!m!i", nesting.TOO_DEEP, b"")


def test_compressed_three_times_is_read_and_four_times_refused(tmp_path: Path) -> None:
    data = COMPRESS["xz"](COMPRESS["gzip"](COMPRESS["zstd"](LINE)))
    assert [(item.compression, item.data) for item in take(data, tmp_path)] == [("xz", LINE)]
    (found,) = take(COMPRESS["bzip2"](data), tmp_path)
    assert (found.member, found.compression, found.problem) == (None, "bzip2", nesting.TOO_MANY_LAYERS)


@pytest.mark.parametrize("packed", ["tar", "zip", "tar.gz", "gzip", "zip of two"])
def test_an_archive_that_goes_on_in_itself_ends_at_the_depth_that_is_read(packed: str, tmp_path: Path) -> None:
    """As one that holds itself would go on for ever: what is below the third archive is not even looked at."""
    pack = {
        "tar": lambda data: tar({"log": LINE, "self": data}),
        "zip": lambda data: zipped({"log": LINE, "self": data}),
        "tar.gz": lambda data: COMPRESS["gzip"](tar({"log": LINE, "self": data})),
        "gzip": COMPRESS["gzip"],
        "zip of two": lambda data: zipped({"log": LINE, "self": data, "again": data}),
    }[packed]
    data = LINE
    for _ in range(8 if packed == "zip of two" else 40):
        data = pack(data)
    found = take(data, tmp_path)
    problems = [item.problem for item in found if item.problem is not None]
    assert set(problems) == {nesting.TOO_MANY_LAYERS if packed == "gzip" else nesting.TOO_DEEP}
    assert len(problems) == (8 if packed == "zip of two" else 1)
    assert len(found) - len(problems) == {"gzip": 0, "zip of two": 7}.get(packed, 3)


def test_a_file_that_unpacks_to_itself_ends_with_a_row(tmp_path: Path) -> None:
    quine = gzip_quine()
    assert gzip.decompress(quine) == quine
    for data, member in ((quine, None), (tar({"x": quine}), "x"), (zipped({"x": quine}), "x")):
        (found,) = take(data, tmp_path)
        assert (found.member, found.problem, found.data) == (member, nesting.TOO_MANY_LAYERS, b"")


def test_members_of_one_name_stay_apart(tmp_path: Path) -> None:
    data = tar({"a": b"1"})[:1024] + tar({"a": b"2"})[:1024] + tar({"a#2": b"x", "a/": b"y"})
    found = take(data + tar({"a": b"3", "../a": b"", "./a": b"4"}), tmp_path)
    assert [item.member for item in found] == ["a", "a#2", "a#2#2", "a#3", "a#4", "../a", "a#5"]
    assert len({item.member for item in found}) == len(found)


def test_a_damaged_archive_inside_is_named_and_the_rest_read(tmp_path: Path) -> None:
    inner = tar({"log": LINE * 100})
    cut, last, after = take(tar({"x": inner[:5000], "y": LINE}), tmp_path)
    assert (cut.member, cut.data, cut.damage) == ("x!log", (LINE * 100)[:4488], "the archive is cut off here")
    assert (last.member, last.data) == ("x", b"")
    assert "log is not whole" in str(last.problem)
    assert (after.member, after.data, after.problem) == ("y", LINE, None)


@pytest.mark.parametrize(
    ("magic", "what"),
    [
        (b"7z\xbc\xaf\x27\x1c\0\4", "a 7-Zip archive"),
        (b"Rar!\x1a\x07\1\0", "a RAR archive"),
        (b"\4\x22\x4d\x18", "LZ4 data"),
    ],
)
def test_formats_that_are_not_read_are_named(magic: bytes, what: str, tmp_path: Path) -> None:
    (found,) = take(magic + bytes(100), tmp_path)
    assert found.problem == f"{what}, which is not read: unpack it and give the folder"
    assert found.data == b""


def test_what_is_asked_for_late_or_not_at_all_does_not_disturb_the_rest(tmp_path: Path) -> None:
    inner = zipped({"a": LINE * 9, "b": LINE}, streamed=True)
    for data in (
        tar({"x": inner, "y": LINE}),
        COMPRESS["gzip"](tar({"x": inner, "y": LINE})),
        zipped({"x": inner, "y": LINE}),
    ):
        path = tmp_path / "file"
        path.write_bytes(data)
        found = {}
        for content in contents(str(path)):
            if content.member in ("x!b", "y"):
                found[content.member] = content.stream.read(10)
        assert found == {"x!b": LINE[:10], "y": LINE[:10]}


def test_an_offset_is_one_of_a_file_that_is_not_packed(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(LINE * 3)
    found = [(content.member, content.stream.read(1000)) for content in contents(str(tmp_path / "log"), len(LINE))]
    assert found == [(None, LINE * 2)]


_NAMES = st.sampled_from(["a", "b/c", "b/d", "ü", "broker-1/server.log"])
_PACKS = st.one_of(
    st.sampled_from([*COMPRESS]).map(lambda name: ("compress", name)),
    st.tuples(st.just("tar"), _NAMES),
    st.tuples(st.just("zip"), _NAMES),
)


@given(content=st.binary(min_size=1, max_size=3000), packs=st.lists(_PACKS, max_size=4), cut=st.integers(0, 1 << 20))
@settings(max_examples=200)
def test_any_content_in_any_nesting_comes_back(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, packs: list[tuple[str, str]], cut: int
) -> None:
    folder = tmp_path_factory.mktemp("nested")
    content = b"log " + content
    data = content
    member: str | None = None
    for kind, name in packs:
        if kind == "compress":
            data = COMPRESS[name](data)
        else:
            data = (tar if kind == "tar" else zipped)({name: data})
            member = name if member is None else f"{name}!{member}"
    (found,) = take(data, folder)
    archives = sum(kind != "compress" for kind, _ in packs)
    assert found.compression in COMPRESSIONS
    if archives > nesting.MAX_ARCHIVES or found.problem == nesting.TOO_MANY_LAYERS:
        assert found.problem in (nesting.TOO_DEEP, nesting.TOO_MANY_LAYERS)
        return
    assert (found.member, found.data, found.damage, found.problem) == (member, content, None, None)
    if packs:
        for item in take(data[: 512 + cut % (len(data) + 1)], folder):
            assert content.startswith(item.data) or item.member != member
