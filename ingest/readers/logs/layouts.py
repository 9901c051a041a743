"""How a log's lines are read: its layout and the wrappers around each line, found from a sample of its lines.

``bronze.ingested_files.layout`` holds the names of both, the outermost wrapper first, joined by ``+``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ingest.readers.logs.json_layouts import JSON_LAYOUTS
from ingest.readers.logs.patterns import TEXT_LAYOUTS, Layout
from ingest.readers.logs.wrappers import WRAPPERS, Unwrapped, Wrapper

LAYOUTS: Final[Sequence[Layout]] = (*TEXT_LAYOUTS, *JSON_LAYOUTS)
LAYOUT_BY_NAME: Final[Mapping[str, Layout]] = {layout.name: layout for layout in LAYOUTS}
WRAPPER_BY_NAME: Final[Mapping[str, Wrapper]] = {wrapper.name: wrapper for wrapper in WRAPPERS}

#: No more wrappers than this lie around one another.
_MAX_DEPTH: Final = 3
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_KAFKA_LOGGER: Final = re.compile(
    rb"k(?:afka)?\.|state\.change\.logger$|s\.c\.logger$|o(?:rg)?\.a(?:pache)?\.k(?:afka)?\."
)


@dataclass(frozen=True)
class Reading:
    """How one file's lines are read: its layout and the wrappers around each line, the outermost first."""

    layout: Layout
    wrappers: tuple[Wrapper, ...] = ()

    @property
    def name(self) -> str:
        return "+".join([*(wrapper.name for wrapper in self.wrappers), self.layout.name])

    @property
    def is_plain(self) -> bool:
        """Whether a line of the file is a line of the log as it is."""
        return not self.wrappers and self.layout.rewrite is None

    @property
    def can_split(self) -> bool:
        """Whether a part of the file can begin at a record: nothing cuts lines in pieces."""
        return not any(wrapper.cuts_lines for wrapper in self.wrappers)

    @property
    def names_streams(self) -> bool:
        """Whether the lines may tell which of several processes wrote them."""
        return any(wrapper.names_streams for wrapper in self.wrappers)

    def unwrap(self, line: bytes) -> Unwrapped:
        """The line, without its line feed, as the process wrote it."""
        if not self.wrappers:
            return Unwrapped(line)
        if len(self.wrappers) == 1:
            return self.wrappers[0].unwrap(line) or Unwrapped(line)
        text, more, streams = line, False, []
        for wrapper in self.wrappers:
            found = wrapper.unwrap(text)
            if found is not None:
                text = found.text
                more = more or found.more
                if found.stream is not None:
                    streams.append(found.stream)
        if not streams:
            return Unwrapped(text, more)
        return Unwrapped(text, more, streams[0] if len(streams) == 1 else b" ".join(filter(None, streams)))

    def record(self, text: bytes) -> tuple[list[bytes], re.Match[bytes] | None]:
        """The lines that an unwrapped line stands for, and its header; NULL where no record begins with it."""
        if self.layout.rewrite is not None:
            rewritten = self.layout.rewrite(clean(text))
            if rewritten is not None:
                return rewritten, self.layout.header.match(rewritten[0])
            return text.split(b"\n"), None
        found = self.layout.header.match(text)
        if found is None and text[:1] in (b"\xef", b"\0"):
            text = clean(text)
            found = self.layout.header.match(text)
        return ([text] if b"\n" not in text else text.split(b"\n")), found

    def content(self, line: bytes) -> bytes:
        """The first line of what the process wrote, in the form that the layout's header matches."""
        return self.record(self.unwrap(line).text.rstrip(b"\r\n"))[0][0]

    def begins(self, line: bytes) -> bool:
        """Whether a record begins with this line."""
        return self.record(self.unwrap(line).text)[1] is not None


def clean(line: bytes) -> bytes:
    """A line without what is no text at its start: a byte order mark, the end of a hole of zeros."""
    return line.lstrip(b"\0").removeprefix(_BYTE_ORDER_MARK)


def reading(name: str) -> Reading:
    """The :class:`Reading` that ``bronze.ingested_files.layout`` names."""
    *wrappers, layout = name.split("+")
    return Reading(LAYOUT_BY_NAME[layout], tuple(WRAPPER_BY_NAME[wrapper] for wrapper in wrappers))


def sample(lines: Sequence[bytes], count: int = 400) -> list[bytes]:
    """Lines to find the layout from: the first ones, and three times as many spread over the rest.

    A container prints much before its first record, and the first lines may all be another process's.
    """
    first = count // 4
    more = min(count - first, max(0, len(lines) - first))
    rest = lines[first:]
    return [*lines[:first], *(rest[index * len(rest) // more] for index in range(more))]


def detect(lines: Sequence[bytes]) -> Reading | None:
    """The layout and wrappers that read most of these lines; NULL where none reads any.

    A line whose logger is found counts twice, one of Kafka's own loggers eight times; of equals the reading with
    the fewest wrappers is taken.
    """
    return _detect([clean(line.rstrip(b"\r\n")) for line in lines], ())[1]


def _detect(lines: Sequence[bytes], wrappers: tuple[Wrapper, ...]) -> tuple[int, Reading | None]:
    best: tuple[int, Reading | None] = (0, None)
    for layout in LAYOUTS:
        score = sum(_score(layout, line) for line in lines)
        if score > best[0]:
            best = (score, Reading(layout, wrappers))
    if len(wrappers) == _MAX_DEPTH or best[0] >= 3 * len(lines):
        return best
    for wrapper in WRAPPERS:
        if wrapper in wrappers:
            continue
        unwrapped = [wrapper.unwrap(line) for line in lines]
        if not any(unwrapped):
            continue
        found = _detect([text.split(b"\n")[0] for text in _whole_lines(unwrapped, lines)], (*wrappers, wrapper))
        if found[0] > best[0]:
            best = found
    return best


def _whole_lines(unwrapped: Sequence[Unwrapped | None], lines: Sequence[bytes]) -> Iterator[bytes]:
    """The lines without their wrapper, those that a runtime cut joined again: a layout is seen from a line's end."""
    unfinished: dict[bytes | None, bytes] = {}
    for found, line in zip(unwrapped, lines, strict=True):
        if found is None:
            yield line
            continue
        text = unfinished.pop(found.stream, b"") + found.text
        if found.more:
            unfinished[found.stream] = text
        else:
            yield text
    yield from unfinished.values()


def _score(layout: Layout, line: bytes) -> int:
    if layout.rewrite is not None:
        rewritten = layout.rewrite(line)
        if rewritten is None:
            return 0
        line = rewritten[0]
    found = (layout.vote or layout.header).match(line)
    if found is None:
        return 0
    header = layout.header.match(line)
    logger = layout.logger_of(header, line) if header else None
    if logger is None:
        return 1
    return 8 if _KAFKA_LOGGER.match(logger) else 2


_PRETTY: Final = re.compile(rb"^\s*(?:\[\s*)?\{\s*$")
_MEMBER: Final = re.compile(rb'^\s*"[\w.@\-]+"\s*:')
_AMBIGUOUS_DATE: Final = re.compile(rb"^\W{0,2}(?:[A-Z]{4,5}\W+)?\d\d?[/\-]\d\d?[/\-](?:\d\d|\d{4})[ T]\d\d:\d\d")


def explain(head: bytes) -> str | None:
    """Why a file that looks like a log is none that can be read, and what to do; NULL where it looks like none."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or _is_utf_16(head[:4096]):
        return "text in UTF-16, as Windows redirects output: convert it first, as in iconv -f UTF-16 -t UTF-8"
    lines = [line for line in head[: 64 << 10].split(b"\n") if line.strip()][:200]
    if any(_PRETTY.match(line) for line in lines[:3]) and sum(1 for line in lines if _MEMBER.match(line)) > 1:
        return "JSON spread over several lines: write each object on a line of its own first, as jq -c . does"
    if lines and lines[0].lstrip().startswith((b"[{", b"[ {")) and b'"level"' in lines[0]:
        return "JSON in one array: write each object on a line of its own first, as jq -c '.[]' does"
    if any(line.lstrip().startswith((b"<log4j:event", b"<Event ")) for line in lines[:5]):
        return "a log in XML, which is not read: give one written by a pattern or in JSON"
    if sum(1 for line in lines if _AMBIGUOUS_DATE.match(line)) > len(lines) // 4:
        return "its dates can be read with the day or the month first: give a log that prints the year first"
    return None


def _is_utf_16(head: bytes) -> bool:
    odd, even = head[1::2].count(0), head[::2].count(0)
    return len(head) >= 16 and max(odd, even) > len(head) // 3 and min(odd, even) < len(head) // 50


def split_position(how: Reading, block: bytes, streams: Iterable[bytes] = ()) -> int | None:
    """The first byte in a block of whole and broken lines at which a part of the file may begin; NULL: none.

    At it a record begins, and so does the next line of each of ``streams``, the streams of the file so far: what
    comes before the part and what is in it then have no record in common. The block's first line may be broken.
    """
    if not how.can_split:
        return None
    position = block.find(b"\n") + 1
    found: list[tuple[int, bytes, bool]] = []
    last: bytes | None = None if how.names_streams else b""
    while 0 < position < len(block):
        end = block.find(b"\n", position)
        if end < 0:
            break
        text, _, stream = how.unwrap(block[position:end].rstrip(b"\r"))
        last = last if stream is None else stream
        begins = how.record(text)[1] is not None
        if last is not None:
            found.append((position, last, begins and (stream is not None or not how.names_streams)))
        if begins and not how.names_streams:
            return position
        position = end + 1
    open_streams = {*streams, *(stream for _, stream, _ in found)}
    best: int | None = None
    for start, stream, begins in reversed(found):
        (open_streams.discard if begins else open_streams.add)(stream)
        if begins and not open_streams:
            best = start
    return best
