"""A cursor over jute, ZooKeeper's serialisation: big-endian integers, buffers and strings behind their length."""

from __future__ import annotations

import struct
from typing import Any, Final

#: No value is longer: ZooKeeper's own limit (jute.maxbuffer) is 1 MiB by default, and a length that lies must not
#: make anybody wait for its bytes.
MAX_VALUE_BYTES: Final = (8 << 20) + (64 << 10)

_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")


class JuteError(ValueError):
    """The bytes are not what they announce; the message says what is wrong, in words that follow a colon."""


class ShortError(JuteError):
    """The bytes end inside a value."""


class Cursor:
    """Reads one value after another; ``at`` is the offset of the next one.

    Each method raises :class:`ShortError` where the bytes end inside the value.
    """

    __slots__ = ("_data", "at")

    def __init__(self, data: bytes, at: int = 0) -> None:
        self._data = data
        self.at = at

    @property
    def left(self) -> int:
        """Bytes not read yet."""
        return len(self._data) - self.at

    def integer(self) -> int:
        value: int = self.struct(_INT)[0]
        return value

    def long(self) -> int:
        value: int = self.struct(_LONG)[0]
        return value

    def boolean(self) -> bool:
        return self._take(1) != b"\0"

    def struct(self, form: struct.Struct) -> tuple[Any, ...]:
        """The values of a fixed form."""
        at = self.at
        end = at + form.size
        if end > len(self._data):
            raise ShortError(f"{form.size} bytes are needed, {self.left} are left")
        self.at = end
        return form.unpack_from(self._data, at)

    def buffer(self) -> bytes | None:
        """NULL where the writer had none. :class:`JuteError` for a length that no value has."""
        length = self.integer()
        if length == -1:
            return None
        if not 0 <= length <= MAX_VALUE_BYTES:
            raise JuteError(f"a value announces {length} bytes")
        return self._take(length)

    def string(self) -> str | None:
        """Text; bytes that are no UTF-8 become U+FFFD, as in ZooKeeper itself."""
        data = self.buffer()
        return None if data is None else data.decode("utf-8", "replace")

    def count(self) -> int:
        """How many elements a list has; a missing list has none."""
        return max(self.integer(), 0)

    def skip_acls(self) -> None:
        """Past a list of permissions: each a number, a scheme and an id."""
        for _ in range(self.count()):
            self.integer()
            self.buffer()
            self.buffer()

    def _take(self, length: int) -> bytes:
        at = self.at
        end = at + length
        if end > len(self._data):
            raise ShortError(f"{length} bytes are announced, {self.left} are left")
        self.at = end
        return self._data[at:end]
