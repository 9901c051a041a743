"""The values of metadata records and of the quorum's control records, by Kafka's own schemas.

``record_types.json`` has the fields of every type of 4.3.1 (``metadata/src/main/resources/common/metadata``, and the
control records of ``clients``), which are those of 3.3 and of all between: since then fields were only added. All are
flexible. Their decoding is that of kafka-python's requests, which is no public interface of it: pinned, and called here
alone.
"""

from __future__ import annotations

import base64
import io
import json
import struct
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, Final, NamedTuple
from uuid import UUID

from kafka.protocol.schemas import StructField

from ingest.readers.secrets import HIDDEN, masked_value

_CONFIG: Final = "ConfigRecord"
#: The first byte of a metadata record's value: the version of what precedes its fields.
_FRAME_VERSION: Final = 1
#: A type has at most this many bytes as a number; a longer one is none.
_MOST_NUMBER_BYTES: Final = 5
_MOST_NUMBER: Final = (1 << 15) - 1
#: The id of zeros as Kafka prints it: of a directory the one that migrates (``DirectoryId.MIGRATING``).
NO_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"


class Decoded(NamedTuple):
    """A record: the name of its type as Kafka's schemas have it, its version, its fields by Kafka's names.

    ``fields`` is None where ``problem`` says why they cannot be read. A type that is not known is named by its number.
    """

    record_type: str
    version: int | None
    fields: Mapping[str, Any] | None
    problem: str | None = None


class _Type(NamedTuple):
    name: str
    newest: int
    #: None of a type without fields, which the library does not take.
    struct: StructField | None


@cache
def _types(of: str) -> Mapping[int, _Type]:
    declared = json.loads(resources.files(__package__).joinpath("record_types.json").read_text("utf-8"))[of]
    return {
        int(number): _Type(
            one["name"],
            int(one["validVersions"].rpartition("-")[2]),
            StructField({**one, "type": "data"}) if one["fields"] else None,
        )
        for number, one in declared.items()
    }


def metadata_record(value: bytes | None) -> Decoded:
    """A record of the metadata itself: frame version, type and version, numbers of variable length, then the fields."""
    data = _Bytes(value or b"")
    try:
        frame, number, version = data.number(), data.number(), data.number()
    except _CutOff as error:
        return Decoded("unreadable", None, None, str(error))
    if frame != _FRAME_VERSION:
        return Decoded("unreadable", None, None, f"its frame is of version {frame}: only {_FRAME_VERSION} is known")
    return _fields(_types("metadata").get(number), f"type {number}", version, data)


def control_record(key: bytes | None, value: bytes | None) -> Decoded:
    """A record of the quorum's own: its type stands in its key, its version in both."""
    if key is None or len(key) < 4:
        return Decoded("unreadable", None, None, "a control record without its type")
    _, number = struct.unpack_from(">hh", key)
    data = _Bytes(value or b"")
    known = _types("control").get(number)
    # what all control records begin with is their version, also as a field
    version = int.from_bytes((value or b"")[:2], "big")
    return _fields(known, f"control type {number}", version, data)


def _fields(known: _Type | None, otherwise: str, version: int, data: _Bytes) -> Decoded:
    if known is None:
        return Decoded(otherwise, version, None, "a type of record that Kafka 3.3 to 4.3 do not have")
    if version > known.newest:
        return Decoded(known.name, version, None, f"version {version} of it: those up to {known.newest} are known")
    try:
        fields = known.struct.decode(data, version=version, compact=True, tagged=True) if known.struct else {}
    except (_CutOff, ValueError, TypeError, struct.error, IndexError, OverflowError) as error:
        return Decoded(known.name, version, None, f"its fields cannot be read: {error}")
    shown = {_kafka_name(name): _plain(one) for name, one in fields.items()}
    if known.name == _CONFIG and isinstance(shown.get("value"), str):
        shown["value"] = masked_value(str(shown.get("name")), shown["value"])
    return Decoded(known.name, version, shown)


def _plain(value: Any) -> Any:
    """As JSON has it; bytes are keys and salts of users' passwords, and nothing else."""
    if isinstance(value, Mapping):
        return {_kafka_name(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        # of all lists only those of ids have what the library takes for none: the id of zeros
        return [NO_ID if one is None else _plain(one) for one in value]
    if isinstance(value, UUID):
        return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode()
    return HIDDEN if isinstance(value, bytes | bytearray | memoryview) else value


@cache
def _kafka_name(name: str) -> str:
    """``topic_id`` as Kafka's own JSON has it: ``topicId``."""
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


class _CutOff(Exception):
    """The bytes end before the record does."""


class _Bytes(io.BytesIO):
    """A record's bytes: who asks for more than there are is told so."""

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        if size is not None and size > len(data):
            raise _CutOff(f"it ends {size - len(data)} bytes early")
        return data

    def number(self) -> int:
        """An unsigned number of variable length, which is a type or a version: Kafka takes none that is no short."""
        found = 0
        for place in range(_MOST_NUMBER_BYTES):
            (byte,) = self.read(1)
            found |= (byte & 0x7F) << 7 * place
            if found > _MOST_NUMBER:
                raise _CutOff("a number that is larger than any type or version")
            if byte < 0x80:
                return found
        raise _CutOff("a number that does not end")
