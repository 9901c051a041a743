"""Segments, indexes and rolls bent at random places, each so that R40 or R41 is broken there for certain.

    python -m tests.support.bends.segments FOLDER [PLACES]

FOLDER is a capture with partitions' directories below ``broker-N/data``. Places are closed segments, and rolls that
follow another one of the same log with nothing between.
"""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Final

from tests.support.captures.text import CaptureText
from tests.support.evidence.segments import judged_segments, segment_evidence

SEED: Final = 20261123
_ROLLED: Final = re.compile(r"partition=(\S+-\d+), .*Rolled new log segment at offset (\d+) in")
_OFFSET_ENTRY: Final = struct.Struct(">ii")
_TIME_ENTRY: Final = struct.Struct(">qi")
#: Of a batch of format 2: its first offset, the length of the rest, its largest timestamp.
_BATCH: Final = struct.Struct(">qi23xq")


@dataclass(frozen=True)
class SegmentBend:
    """Other contents of files of data, or other lines; and the kind of finding that must be new."""

    kind: str
    expected: str
    files: Mapping[str, bytes | None] = field(default_factory=dict)
    lines: Mapping[tuple[str, int], str | None] = field(default_factory=dict)


def _closed(capture: Path) -> Iterator[Path]:
    """Every segment that another one follows, with two batches at least in its index."""
    for directory in sorted(capture.glob("broker-*/data/*")):
        for segment in sorted(directory.glob("*.log"))[:-1]:
            if _entries(segment.with_suffix(".index"), _OFFSET_ENTRY) >= 2:
                yield segment


def _entries(index: Path, entry: struct.Struct) -> int:
    return len(index.read_bytes().rstrip(b"\0")) // entry.size if index.exists() else 0


def _bent(capture: Path, kind: str, expected: str, path: Path, content: bytes | None) -> SegmentBend:
    return SegmentBend(kind, expected, {str(path.relative_to(capture)): content})


def _index_beyond(capture: Path) -> Iterator[SegmentBend]:
    for segment in _closed(capture):
        index = segment.with_suffix(".index")
        content = index.read_bytes()
        offset, _ = _OFFSET_ENTRY.unpack_from(content, len(content) - _OFFSET_ENTRY.size)
        entry = _OFFSET_ENTRY.pack(offset, segment.stat().st_size + 70)
        kind = "an index's last position is behind its segment"
        yield _bent(capture, kind, "index_differs_from_segment", index, content[: -_OFFSET_ENTRY.size] + entry)


def _index_of_later_offset(capture: Path) -> Iterator[SegmentBend]:
    for segment in _closed(capture):
        index = segment.with_suffix(".index")
        content = index.read_bytes()
        offset, position = _OFFSET_ENTRY.unpack_from(content, len(content) - _OFFSET_ENTRY.size)
        entry = _OFFSET_ENTRY.pack(offset + 100_000, position)
        kind = "an index's last offset is behind its segment"
        yield _bent(capture, kind, "index_differs_from_segment", index, content[: -_OFFSET_ENTRY.size] + entry)


def _index_falls(capture: Path) -> Iterator[SegmentBend]:
    for segment in _closed(capture):
        index = segment.with_suffix(".index")
        content, size = index.read_bytes(), _OFFSET_ENTRY.size
        kind = "two entries of an index change places"
        swapped = content[size : 2 * size] + content[:size] + content[2 * size :]
        yield _bent(capture, kind, "index_differs_from_segment", index, swapped)


def _time_index_of_later_offset(capture: Path) -> Iterator[SegmentBend]:
    for segment in _closed(capture):
        index = segment.with_suffix(".timeindex")
        if not index.exists() or not _entries(index, _TIME_ENTRY):
            continue
        content = index.read_bytes()
        time, offset = _TIME_ENTRY.unpack_from(content, len(content) - _TIME_ENTRY.size)
        entry = _TIME_ENTRY.pack(time, offset + 100_000)
        kind = "a time index's last offset is behind its segment"
        yield _bent(capture, kind, "index_differs_from_segment", index, content[: -_TIME_ENTRY.size] + entry)


def _indexed(capture: Path) -> Iterator[Path]:
    """Every segment with two entries at least in its index, the one that is written to as well."""
    for segment in sorted(capture.glob("broker-*/data/*/*.log")):
        if _entries(segment.with_suffix(".index"), _OFFSET_ENTRY) >= 2:
            yield segment


def _batches(segment: Path) -> list[tuple[int, int, int]]:
    """Position, first offset and largest timestamp of each batch of format 2."""
    content, found, position = segment.read_bytes(), [], 0
    while position + _BATCH.size <= len(content):
        first, length, timestamp = _BATCH.unpack_from(content, position)
        found.append((position, first, timestamp))
        position += 12 + length
    return found


def _kind_of(name: str, segment: Path) -> str:
    is_last = segment == max(segment.parent.glob("*.log"))
    return f"{name}, of {'the last' if is_last else 'a closed'} segment"


def _with_entry(index: Path, entry: struct.Struct, number: int, *values: int) -> bytes:
    content, at = index.read_bytes(), number * entry.size
    return content[:at] + entry.pack(*values) + content[at + entry.size :]


def _entry_between_batches(capture: Path) -> Iterator[SegmentBend]:
    for segment in _indexed(capture):
        index, begins = segment.with_suffix(".index"), {position for position, *_ in _batches(segment)}
        for number in range(_entries(index, _OFFSET_ENTRY)):
            offset, position = _OFFSET_ENTRY.unpack_from(index.read_bytes(), number * _OFFSET_ENTRY.size)
            if position + 13 not in begins and position + 13 < segment.stat().st_size:
                bent = _with_entry(index, _OFFSET_ENTRY, number, offset, position + 13)
                kind = _kind_of("an index entry points between two batches", segment)
                yield _bent(capture, kind, "index_differs_from_segment", index, bent)


def _entry_at_later_batch(capture: Path) -> Iterator[SegmentBend]:
    for segment in _indexed(capture):
        index, base = segment.with_suffix(".index"), int(segment.stem)
        firsts = {position: first for position, first, _ in _batches(segment)}
        entries = [
            _OFFSET_ENTRY.unpack_from(index.read_bytes(), number * _OFFSET_ENTRY.size)
            for number in range(_entries(index, _OFFSET_ENTRY))
        ]
        for number, ((before, _), (_, position)) in enumerate(pairwise(entries), 1):
            if base + before + 1 < firsts[position]:
                bent = _with_entry(index, _OFFSET_ENTRY, number, before + 1, position)
                kind = _kind_of("an index entry points behind its offset's batch", segment)
                yield _bent(capture, kind, "index_differs_from_segment", index, bent)


def _entry_of_later_time(capture: Path) -> Iterator[SegmentBend]:
    """Later than all records up to the first batch behind its offset, and earlier than the next entry's."""
    for segment in _indexed(capture):
        index, base, batches = segment.with_suffix(".timeindex"), int(segment.stem), _batches(segment)
        count = _entries(index, _TIME_ENTRY) if index.exists() else 0
        entries = [_TIME_ENTRY.unpack_from(index.read_bytes(), n * _TIME_ENTRY.size) for n in range(count)]
        for number, ((_, offset), (following, _)) in enumerate(pairwise(entries)):
            if max(time for _, first, time in batches if first <= base + offset) < following - 1:
                bent = _with_entry(index, _TIME_ENTRY, number, following - 1, offset)
                kind = _kind_of("a time index entry is later than its records", segment)
                yield _bent(capture, kind, "index_differs_from_segment", index, bent)


def _byte_flipped(capture: Path) -> Iterator[SegmentBend]:
    for segment in _closed(capture):
        content = bytearray(segment.read_bytes())
        content[-3] ^= 0xFF
        yield _bent(capture, "a byte of a closed segment is another", "segment_damaged", segment, bytes(content))


def _cut_short(capture: Path) -> Iterator[SegmentBend]:
    for segment in _closed(capture):
        kind = "a closed segment lacks its last bytes"
        yield _bent(capture, kind, "segment_damaged", segment, segment.read_bytes()[:-5])


def _based_lower(path: Path, by: int) -> bytes:
    """A file of a segment that begins so much lower: offsets in indexes are relative to its base."""
    content = path.read_bytes()
    if path.suffix == ".index":
        return b"".join(_OFFSET_ENTRY.pack(offset + by, at) for offset, at in _OFFSET_ENTRY.iter_unpack(content))
    if path.suffix == ".timeindex":
        return b"".join(_TIME_ENTRY.pack(time, offset + by) for time, offset in _TIME_ENTRY.iter_unpack(content))
    return content


def _begins_below(capture: Path) -> Iterator[SegmentBend]:
    for segment in _closed(capture):
        following = min(other for other in segment.parent.glob("*.log") if other > segment)
        files: dict[str, bytes | None] = {}
        for suffix in (".log", ".index", ".timeindex"):
            old = following.with_suffix(suffix)
            if old.exists():
                files[str(old.relative_to(capture))] = None
                new = old.with_name(f"{int(old.stem) - 3:020}{suffix}")
                files[str(new.relative_to(capture))] = _based_lower(old, 3)
        yield SegmentBend("a segment begins below the end of the one before", "segments_overlap", files)


def _rolled_below(capture: Path) -> Iterator[SegmentBend]:
    text = CaptureText.read(capture)
    for name in text.named("/server.log"):
        last: dict[str, int] = {}
        for number, line in enumerate(text.files[name], 1):
            rolled = _ROLLED.search(line)
            if rolled is None:
                if "Logs loading" in line or "Loading logs" in line or "ReplicaFetcherManager" in line:
                    last.clear()
                continue
            before = last.get(rolled[1])
            if before is not None and before > 5:
                other = line.replace(f"at offset {rolled[2]} in", f"at offset {before - 5} in")
                yield SegmentBend("a roll below the one before", "segment_rolled_below", lines={(name, number): other})
            last[rolled[1]] = int(rolled[2])


KINDS: Final[tuple[Callable[[Path], Iterator[SegmentBend]], ...]] = (
    _index_beyond,
    _index_of_later_offset,
    _index_falls,
    _time_index_of_later_offset,
    _entry_between_batches,
    _entry_at_later_batch,
    _entry_of_later_time,
    _byte_flipped,
    _cut_short,
    _begins_below,
    _rolled_below,
)


def chosen(capture: Path, places: int) -> list[SegmentBend]:
    """Up to so many bends of each kind, at random places; the same for the same capture."""
    result = []
    for kind in KINDS:
        possible = list(kind(capture))
        result += Random(f"{SEED} {kind.__name__}").sample(possible, min(places, len(possible)))
    return result


def is_found(capture: Path, bend: SegmentBend) -> tuple[bool, int]:
    """Whether the expected kind is found, and how many findings of other kinds there are."""
    text = CaptureText.read(capture).edited(bend.lines)
    verdicts = judged_segments(segment_evidence(capture, edits=bend.files, text=text))
    kinds = [finding.divergence_type for one in verdicts.values() for finding in one.findings]
    return bend.expected in kinds, sum(kind != bend.expected for kind in kinds)


def main(arguments: list[str]) -> int:
    capture, places = Path(arguments[0]), int(arguments[1]) if len(arguments) > 1 else 5
    missed = 0
    by_kind: dict[str, list[tuple[bool, int]]] = {}
    for bend in chosen(capture, places):
        by_kind.setdefault(bend.kind, []).append(is_found(capture, bend))
    for kind, results in by_kind.items():
        hits = sum(hit for hit, _ in results)
        missed += len(results) - hits
        print(f"{kind:55}{hits:4} of {len(results):4}, other findings: {sum(others for _, others in results)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
