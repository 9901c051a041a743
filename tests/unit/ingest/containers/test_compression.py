"""Compressed files: seen by their bytes, members joined, and where they break all that was whole is given."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import zlib
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from ingest.containers.compression import CODECS, GZIP, Decompressed
from tests.unit.ingest.containers.packing import COMPRESS, LINE, Taken, take

NAMES = sorted(COMPRESS)
CODEC = {codec.name: codec for codec in CODECS}
NOISE = random.Random(1).randbytes(300_000)


def unpacked(name: str, data: bytes, size: int = 4096) -> tuple[bytes, str | None]:
    stream = Decompressed(io.BytesIO(data), CODEC[name])
    parts = []
    while block := stream.read(size):
        parts.append(block)
    assert stream.read(1) == b""
    return b"".join(parts), stream.damage


@pytest.mark.parametrize("name", NAMES)
def test_a_compressed_file_is_seen_by_its_bytes_and_not_by_its_name(name: str, tmp_path: Path) -> None:
    assert take(COMPRESS[name](LINE * 1000), tmp_path) == [Taken(None, name, LINE * 1000, None, None)]


@pytest.mark.parametrize("name", NAMES)
def test_members_one_after_another_are_one_file_and_zeros_behind_them_are_nothing(name: str) -> None:
    one, two = COMPRESS[name](LINE), COMPRESS[name](b"two")
    assert unpacked(name, one + two + COMPRESS[name](b"") + one + b"\0" * 1024) == (LINE + b"two" + LINE, None)


@pytest.mark.parametrize("name", NAMES)
def test_what_follows_and_is_not_compressed_is_damage(name: str) -> None:
    data, damage = unpacked(name, COMPRESS[name](LINE) + b"not compressed at all")
    assert (data, damage) == (LINE, f"bytes that are not {name} follow here")


@pytest.mark.parametrize("name", NAMES)
def test_a_second_member_that_is_cut_off_in_its_magic_is_cut_off(name: str) -> None:
    data, damage = unpacked(name, COMPRESS[name](LINE) + CODEC[name].magic[:2])
    assert (data, damage) == (LINE, f"the {name} data is cut off here")


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_is_cut_off_gives_what_is_there(name: str) -> None:
    packed = COMPRESS[name](NOISE)
    data, damage = unpacked(name, packed[:200_000])
    assert damage == f"the {name} data is cut off here"
    # bzip2 packs 900 kB blocks: nothing of one can be read before it is whole.
    assert NOISE.startswith(data)
    assert len(data) > (0 if name == "bzip2" else 60_000) - 1


@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_byte_ends_the_file_there(name: str) -> None:
    good = COMPRESS[name](LINE)
    packed = bytearray(COMPRESS[name](NOISE))
    packed[len(packed) // 2] ^= 0x40
    data, damage = unpacked(name, good + packed)
    assert damage is not None
    assert damage.startswith(f"the {name} data is damaged here (")
    assert data.startswith(LINE)


@pytest.mark.parametrize("size", [1, 700, 1 << 20])
def test_of_a_damaged_gzip_every_byte_before_the_damage_is_given(size: int) -> None:
    packed = bytearray(gzip.compress(LINE * 20_000))
    packed[-6] ^= 1
    data, damage = unpacked("gzip", bytes(packed), size)
    assert data == LINE * 20_000
    assert damage == ("the gzip data is damaged here (Error -3 while decompressing data: incorrect data check)")


def test_flushed_and_empty_deflate_blocks_and_levels_of_pigz() -> None:
    """pigz writes blocks on their own, with empty stored blocks between them."""
    pack = zlib.compressobj(6, zlib.DEFLATED, 31)
    packed = b"".join(pack.compress(LINE * 10) + pack.flush(zlib.Z_FULL_FLUSH) for _ in range(20)) + pack.flush()
    assert unpacked("gzip", packed) == (LINE * 200, None)
    assert Decompressed(io.BytesIO(packed), GZIP).read(5) == LINE[:5]


def test_zstd_frames_to_skip_and_frames_of_every_kind() -> None:
    skipped = b"\x50\x2a\x4d\x18" + (100_000).to_bytes(4, "little") + b"x" * 100_000
    plain = zstandard.ZstdCompressor(write_checksum=False, write_content_size=False).compress(LINE)
    long = zstandard.ZstdCompressor(level=19).compress(LINE * 50_000)
    stored = zstandard.ZstdCompressor(level=1).compress(NOISE)
    flushing = zstandard.ZstdCompressor().compressobj()
    flushed = flushing.compress(LINE) + flushing.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK) + flushing.flush()
    data, damage = unpacked("zstd", skipped + plain + long + skipped + stored + flushed + skipped)
    assert damage is None
    assert data == LINE + LINE * 50_000 + NOISE + LINE


def test_zstd_that_needs_too_much_memory_or_a_dictionary_is_refused() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=28, write_content_size=False)
    compressing = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    large = compressing.compress(LINE) + compressing.flush()
    assert "needs a window of 256 MiB, and 128 MiB is the limit: decompress it first" in str(unpacked("zstd", large)[1])
    samples = [LINE + str(number).encode() for number in range(1000)]
    dictionary = zstandard.train_dictionary(2000, samples)
    packed = zstandard.ZstdCompressor(dict_data=dictionary).compress(LINE)
    assert unpacked("zstd", packed) == (
        b"",
        "the zstd data is damaged here (it needs a dictionary: decompress it first)",
    )


def test_a_zstd_checksum_that_does_not_fit_is_damage_after_all_has_been_given() -> None:
    packed = bytearray(COMPRESS["zstd"](LINE * 5))
    packed[-1] ^= 1
    data, damage = unpacked("zstd", bytes(packed))
    assert data == LINE * 5
    assert "damaged here" in str(damage)


def test_xz_that_needs_too_much_memory_is_refused() -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 28}]
    data, damage = unpacked("xz", lzma.compress(LINE, filters=filters))
    assert (data, damage) == (b"", "the xz data is damaged here (Memory usage limit exceeded)")


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_cut_anywhere_it_gives_a_prefix_and_never_raises(name: str, data: st.DataObject) -> None:
    content = data.draw(st.binary(max_size=200)) * data.draw(st.integers(0, 50))
    packed = COMPRESS[name](content)
    end = data.draw(st.integers(0, len(packed)))
    given_, damage = unpacked(name, packed[:end], data.draw(st.integers(1, 5000)))
    assert content.startswith(given_)
    assert (damage is None) == (end == len(packed))


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_damaged_anywhere_it_never_raises(name: str, data: st.DataObject) -> None:
    packed = bytearray(COMPRESS[name](data.draw(st.binary(max_size=200)) * 20))
    for _ in range(data.draw(st.integers(1, 3))):
        packed[data.draw(st.integers(0, len(packed) - 1))] ^= data.draw(st.integers(1, 255))
    unpacked(name, bytes(packed))


def test_bzip2_of_any_level_is_seen() -> None:
    for level in (1, 9):
        assert CODEC["bzip2"].begins(bz2.compress(LINE, level)[:10])
    assert CODEC["bzip2"].begins(bz2.compress(b"")[:10])
    assert not CODEC["bzip2"].begins(b"BZh9 is no")
