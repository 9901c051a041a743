"""What a node's snapshot says against what the records before its end made: Kafka's nodes once held wrong images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final, NamedTuple

from reconstruct.model.metadata_log.values import Image, Subject

#: What a snapshot of an older metadata version leaves out: compared where both have it.
_NOT_ALWAYS_WRITTEN: Final = frozenset({"directories", "log_dirs", "metadata_version"})


class Difference(NamedTuple):
    """One field of one subject; ``field`` is None where one side lacks the subject, which is then None."""

    subject: Subject
    field: str | None
    replayed: Any
    shown: Any


def differences(replayed: Image, shown: Image) -> list[Difference]:
    """In the order of subjects and fields; none where the snapshot is what the records made."""
    found: list[Difference] = []
    for subject in sorted({*replayed, *shown}):
        ours, theirs = replayed.get(subject), shown.get(subject)
        if ours is None or theirs is None or type(ours) is not type(theirs):
            found.append(Difference(subject, None, ours, theirs))
        elif ours != theirs:
            found += _fields(subject, asdict(ours), asdict(theirs))
    return found


def _fields(subject: Subject, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[Difference]:
    return [
        Difference(subject, name, ours[name], theirs[name])
        for name in ours
        if ours[name] != theirs[name] and not (name in _NOT_ALWAYS_WRITTEN and (not ours[name] or not theirs[name]))
    ]
