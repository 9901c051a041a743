"""Ids: what makes a file and a record the same one again.

Ids are hashes of what the evidence says, of nothing else: neither names, nor paths, nor the order of files,
nor how much a log has grown enter them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Final

#: Stands for the kind of every log: a log's kind is seen from its records, and may change as it grows.
LOG_IDENTITY: Final = "log"
_DIGEST_BYTES: Final = 16


def digest(*parts: str | bytes | int | None) -> str:
    """32 hexadecimal digits that differ where any part, or the number of parts, differs."""
    state = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for part in parts:
        if part is None:
            state.update(b"-;")
            continue
        data = part if isinstance(part, bytes) else str(part).encode()
        state.update(b"%d:" % len(data))
        state.update(data)
    return state.hexdigest()


def log_file_id(cluster_id: str, broker_id: int | None, first_line: bytes) -> str:
    """A log is known by its cluster, its broker and the first line of its first record."""
    return digest(cluster_id, broker_id, LOG_IDENTITY, first_line.rstrip(b"\r\n"))


def forked_log_file_id(file_id: str, content_hash: str) -> str:
    """A log that starts like another and then differs is known by its content as well."""
    return digest(file_id, "fork", content_hash)


def copied_file_id(
    cluster_id: str,
    broker_id: int | None,
    kind: str,
    captured_at_ms: int | None,
    partition: str | None,
    content_hash: str,
) -> str:
    """A copy of a file that does not grow is known by whose it is, the instant of the copy and its content."""
    return digest(cluster_id, broker_id, kind, captured_at_ms, partition, content_hash)


def record_ids(file_id: str) -> Callable[[int, bytes], str]:
    """The function (byte offset, bytes) -> record id for one file."""
    start = hashlib.blake2b(file_id.encode(), digest_size=_DIGEST_BYTES)

    def record_id(offset: int, data: bytes) -> str:
        state = start.copy()
        state.update(b"@%d:" % offset)
        state.update(data)
        return state.hexdigest()

    return record_id
