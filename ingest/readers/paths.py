"""What a path says about a file, where its content cannot: pure functions over path segments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ingest.lake.tables.bronze import OFFSET_CHECKPOINT_KINDS, SourceKind

#: A checkpoint's file name, and the kind it is.
CHECKPOINT_NAMES: Final = {
    kind.replace("_", "-"): kind for kind in (*OFFSET_CHECKPOINT_KINDS, SourceKind.LEADER_EPOCH_CHECKPOINT)
}

#: What is added to a member's name that its archive has given before.
_AGAIN: Final = re.compile(r"#\d+\Z")
_BROKER: Final = re.compile(r"^broker[-_]?(\d{1,10})$")
_MILLISECONDS: Final = re.compile(r"^(\d{12,14})(?:\.jsonl)?(?:\.gz)?$")
_PARTITION: Final = re.compile(r"^(?P<topic>[A-Za-z0-9._\-]{1,249})-(?P<partition>\d+)$")
_RENAMED: Final = re.compile(
    r"^(?P<topic>[A-Za-z0-9._\-]+)-(?P<partition>\d+)\.(?:[0-9a-f]{32}|\d+)-(?:delete|future|stray)(?:\.\d+)?$"
)
_SEGMENT_FILE: Final = re.compile(
    r"^(?:\d{20}\.(?:log|index|timeindex|txnindex|snapshot)(?:\.\w+)?|partition\.metadata|\.kafka_cleanshutdown|\.lock"
    r"|[0-9a-f\-_A-Za-z]*\.checkpoint(?:\.part)?)$"
)
_INT32_END: Final = 1 << 31
_ROTATED: Final = re.compile(
    r"\.log[.\-](?:\d+|\d{4}-\d\d-\d\d(?:-\d\d)?|\d{8}-\d{6})(?:\.\w+)?$|\.\d{4}-\d\d-\d\d-\d\d$"
)


def segments(location: str, member: str | None = None) -> tuple[str, ...]:
    """The names along a path, from the root; a member's follow those of its archive, and of archives in it."""
    parts = [part for part in location.split("/") if part]
    if member:
        parts += [part for part in re.split("[/!]", _AGAIN.sub("", member)) if part]
    return tuple(parts)


def broker_id(name: str) -> int | None:
    """The broker that a folder named ``broker-N`` belongs to."""
    found = _BROKER.match(name)
    return int(found.group(1)) if found is not None and int(found.group(1)) < _INT32_END else None


def captured_at_ms(names: Sequence[str]) -> int | None:
    """The instant of the copy, epoch milliseconds: ``.../FILE/MS`` or ``znodes/MS.jsonl``."""
    found = _MILLISECONDS.match(names[-1]) if names else None
    return int(found.group(1)) if found else None


def checkpoint_kind(names: Sequence[str]) -> str | None:
    """The kind of the checkpoint that a path names; NULL where it names none.

    The name is the file's, also with ``.gz``; or its folder's, in ``FILE/MS`` and, for the leader epoch
    checkpoint, in ``leader-epoch-checkpoint/TOPIC-PARTITION``.
    """
    for name in reversed(names[-3:]):
        kind = CHECKPOINT_NAMES.get(name.removesuffix(".gz"))
        if kind is not None:
            return kind
    return None


def partition_directory(names: Sequence[str]) -> str | None:
    """The name of the partition's directory that a ``leader-epoch-checkpoint`` comes from."""
    position = max(
        (i for i, name in enumerate(names) if name.removesuffix(".gz") == "leader-epoch-checkpoint"), default=-1
    )
    if position < 0:
        return None
    for name in (*names[position + 1 : position + 2], *names[max(position - 1, 0) : position]):
        if topic_partition(name.removesuffix(".gz")) is not None:
            return name.removesuffix(".gz")
    return None


def parent_partition_directory(names: Sequence[str]) -> str | None:
    """The name of the partition's directory that a file lies in; NULL where it lies in none."""
    return names[-2] if len(names) > 1 and topic_partition(names[-2]) is not None else None


def topic_partition(directory: str | None) -> tuple[str, int] | None:
    """Topic and partition of a partition directory: ``TOPIC-PARTITION``, with a suffix once it was renamed
    for deletion or a move. The partition is what follows the last hyphen: topics may contain ``-``, ``.``, ``_``."""
    found = _RENAMED.match(directory or "") or _PARTITION.match(directory or "")
    if found is None or int(found.group("partition")) >= _INT32_END:
        return None
    return (found.group("topic"), int(found.group("partition")))


def is_znode_snapshot(names: Sequence[str]) -> bool:
    """Whether the path is that of a snapshot of ours: ``znodes/MS.jsonl``."""
    return len(names) > 1 and names[-2] == "znodes" and captured_at_ms(names) is not None


def is_partition_file(name: str) -> bool:
    """Whether a name is one that Kafka gives to the files of a partition's or a log directory."""
    return _SEGMENT_FILE.match(name) is not None


def is_rotated(name: str) -> bool:
    """Whether a log's name is one that it gets when it is rotated: nothing follows its last line."""
    return _ROTATED.search(name) is not None
