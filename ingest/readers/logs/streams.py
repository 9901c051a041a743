"""The processes that wrote one file, and which broker each is: gathered in the pass that inspects the file."""

from __future__ import annotations

from collections import Counter
from typing import Final

from ingest.readers.logs.layouts import Reading, split_position
from ingest.readers.logs.wrappers import CHANNEL
from ingest.readers.logs.writers import own_broker_id

#: So many records of a stream that say an id are enough to know it.
_ENOUGH: Final = 1000
#: No more streams than this are assigned to brokers.
_MAX_STREAMS: Final = 10_000


class StreamFacts:
    """What the lines of a file with several streams say; ``take`` is given the file's blocks in order."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._buffer = b""
        self._votes: dict[bytes, Counter[int]] = {}

    @property
    def streams(self) -> frozenset[bytes]:
        """The streams seen so far, channels apart, as :func:`ingest.readers.logs.layouts.split_position` wants them."""
        return frozenset(self._votes)

    @property
    def process_count(self) -> int:
        """How many processes wrote the file, as far as was read."""
        return len({stream.split(CHANNEL)[0] for stream in self._votes})

    def take(self, block: bytes) -> None:
        if not self._reading.names_streams:
            return
        end = block.rfind(b"\n") + 1
        if not end:
            # A line this long says nothing here: its beginning is enough.
            self._buffer = (self._buffer + block)[: 1 << 16]
            return
        for line in (self._buffer + block[:end]).split(b"\n"):
            self._line(line)
        self._buffer = block[end:]

    def split(self, block: bytes) -> int | None:
        """The first byte of the next block, before it is taken, at which a part of the file may begin."""
        return split_position(self._reading, block, self.streams)

    def result(self) -> dict[str, int | None]:
        """Which broker each process is: NULL where none of its records says, or where they contradict each other.

        Empty where the file's lines name no process.
        """
        if self._buffer:
            self._line(self._buffer)
            self._buffer = b""
        votes: dict[str, Counter[int]] = {}
        for stream, counted in self._votes.items():
            name = stream.split(CHANNEL)[0].decode("utf-8", "replace")
            votes.setdefault(name, Counter()).update(counted)
        if set(votes) <= {""}:
            return {}
        return {name: _agreed(counted) for name, counted in sorted(votes.items())}

    def _line(self, line: bytes) -> None:
        text, _, stream = self._reading.unwrap(line.rstrip(b"\r"))
        if stream is None:
            return
        votes = self._votes.get(stream)
        if votes is None:
            if len(self._votes) >= _MAX_STREAMS:
                return
            votes = self._votes[stream] = Counter()
        if votes.total() < _ENOUGH:
            content, header = self._reading.record(text)
            if header is not None:
                own = own_broker_id(content[0][header.end() :])
                if own is not None:
                    votes[own] += 1


def _agreed(votes: Counter[int]) -> int | None:
    """The id that nine of ten records say: a few may speak of another broker in the same words."""
    if not votes:
        return None
    broker_id, count = votes.most_common(1)[0]
    return broker_id if count * 10 >= votes.total() * 9 else None
