"""Small changes to real inputs: the same seed gives the same ones."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Final

_BYTES: Final = (
    b"\0",
    b"\n",
    b"\r\n",
    b"\xff",
    b"\xc3",
    b" ",
    b"[",
    b"]",
    b"(",
    b'"',
    b"\\",
    b"=",
    b",",
    b"-1",
    b"\x1f",
)
_NUMBERS: Final = (b"0", b"-1", b"2147483648", b"9223372036854775807", b"9223372036854775808", b"9" * 40, b"1e999")
_WORDS: Final = (b"\0" * 4, b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\xff" * 8, b"\x7f" + b"\xff" * 7)


def mutated(seeds: Sequence[bytes], count: int, seed: int = 0) -> Iterator[bytes]:
    """Each of ``seeds`` as it is, and then ``count`` inputs made of them."""
    yield from seeds
    generator = random.Random(seed)
    for _ in range(count):
        data = bytearray(generator.choice(seeds))
        for _ in range(1 + int(generator.expovariate(0.7))):
            _mutate(data, seeds, generator)
        yield bytes(data)


def _mutate(data: bytearray, seeds: Sequence[bytes], generator: random.Random) -> None:
    at = generator.randrange(len(data) + 1)
    to = min(len(data), at + int(generator.expovariate(1 / 40)) + 1)
    kind = generator.randrange(10)
    if kind == 0 and at < len(data):
        data[at] ^= 1 << generator.randrange(8)
    elif kind == 1:
        data[at:at] = generator.choice(_BYTES)
    elif kind == 2:
        del data[at:to]
    elif kind == 3:
        data[at:at] = data[at:to] * generator.randrange(1, 5)
    elif kind == 4:
        del data[at:]
    elif kind == 5:
        word = generator.choice(_WORDS)
        data[at : at + len(word)] = word
    elif kind == 6:
        other = generator.choice(seeds)
        begin = generator.randrange(len(other) + 1)
        data[at:to] = other[begin : begin + generator.randrange(200)]
    elif kind == 7:
        _number(data, at, generator)
    elif kind == 8:
        data[at:to] = generator.randbytes(to - at)
    else:
        lines = bytes(data).split(b"\n")
        first, second = generator.randrange(len(lines)), generator.randrange(len(lines))
        lines[first], lines[second] = lines[second], lines[first]
        data[:] = b"\n".join(lines)


def _number(data: bytearray, at: int, generator: random.Random) -> None:
    """Put another number where the next one stands."""
    begin = next((place for place in range(at, len(data)) if 0x30 <= data[place] <= 0x39), len(data))
    end = next((place for place in range(begin, len(data)) if not 0x30 <= data[place] <= 0x39), len(data))
    data[begin:end] = generator.choice(_NUMBERS)
