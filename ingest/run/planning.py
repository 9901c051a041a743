"""What is new: each file of a run compared with what the lake holds and with the other files of the run.

A log is known by the first line of its first record, however far it has grown; so two files with one id are
two states of one log, unless one is no beginning of the other: then the shorter is a *fork*, of which only the
records that are not there yet are taken. Everything else is known by its content.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from ingest.files.attribution import Attributed
from ingest.readers.identity import forked_log_file_id

FileKey = tuple[str, str]  # cluster_id, file_id
PrefixHashes = Mapping[tuple[str, "str | None", int], str]


class Action(Enum):
    """What is done with a file."""

    NEW = "new"
    GROWN = "grown"
    FORK = "fork"
    KNOWN = "known"


@dataclass(frozen=True)
class StoredFile:
    """A row of ``bronze.ingested_files``. ``length`` are the bytes that ``content_hash`` is of."""

    cluster_id: str
    file_id: str
    broker_id: int | None
    kind: str
    source_file: str
    status: str
    length: int
    content_hash: str | None

    @property
    def key(self) -> FileKey:
        return (self.cluster_id, self.file_id)


@dataclass(frozen=True)
class Planned:
    """A file and what is done with it; ``base_id`` is the id its record ids are made of."""

    owner: Attributed
    action: Action
    base_id: str

    @property
    def key(self) -> FileKey:
        return (self.owner.cluster_id, self.owner.file_id)


def is_growing(owner: Attributed) -> bool:
    """Whether a file is one that grows, and is read."""
    return owner.file.is_growing and owner.file.is_read


def file_ids(owners: Iterable[Attributed]) -> list[FileKey]:
    """Every id under which the lake may know one of these files."""
    keys: dict[FileKey, None] = {}
    for owner in owners:
        keys[owner.cluster_id, owner.file_id] = None
        if is_growing(owner):
            keys[owner.cluster_id, _fork_id(owner)] = None
    return sorted(keys)


def needed_prefixes(
    owners: Sequence[Attributed], stored: Mapping[FileKey, StoredFile]
) -> dict[tuple[str, str | None], list[int]]:
    """The lengths, by (location, member), at which contents have to be hashed before :func:`plan` can decide."""
    wanted: dict[tuple[str, str | None], list[int]] = {}
    for key, group in _grown_groups(owners).items():
        lengths = {owner.file.ingestible_bytes for owner in group}
        if key in stored:
            lengths.add(stored[key].length)
        for owner in group:
            shorter = sorted(length for length in lengths if length < owner.file.ingestible_bytes)
            if shorter:
                wanted[owner.file.location, owner.file.member] = shorter
    return wanted


def plan(owners: Sequence[Attributed], stored: Mapping[FileKey, StoredFile], hashes: PrefixHashes) -> list[Planned]:
    """Decide for every file; copies of one content come out as known, under the name that sorts first."""
    planned: list[Planned] = []
    planned_keys: set[FileKey] = set()
    for owner in sorted((o for o in owners if not is_growing(o)), key=_order):
        key = (owner.cluster_id, owner.file_id)
        action = Action.KNOWN if key in stored or key in planned_keys else Action.NEW
        planned_keys.add(key)
        planned.append(Planned(owner, action, owner.file_id))
    copies = {id(owner) for group in _grown_groups(owners).values() for owner in group}
    for key, group in _grown_groups(owners).items():
        planned.extend(_plan_log(group, stored, stored.get(key), hashes))
    planned.extend(
        Planned(owner, Action.KNOWN, owner.file_id) for owner in owners if is_growing(owner) and id(owner) not in copies
    )
    return planned


def _plan_log(
    group: Sequence[Attributed], stored: Mapping[FileKey, StoredFile], same: StoredFile | None, hashes: PrefixHashes
) -> Iterable[Planned]:
    longest: Attributed | None = None
    for owner in group:
        file = owner.file
        base = owner.file_id
        length, content_hash = file.ingestible_bytes, file.ingestible_hash
        is_stored = same is not None and (length, content_hash) == (same.length, same.content_hash)
        if is_stored or (longest is not None and _begins(longest, length, content_hash, hashes)):
            yield Planned(owner, Action.KNOWN, base)
        elif longest is None and same is None:
            longest = owner
            yield Planned(owner, Action.NEW, base)
        elif longest is None and same and _begins(owner, same.length, same.content_hash, hashes):
            longest = owner
            yield Planned(owner, Action.GROWN, base)
        else:
            fork = replace(owner, file_id=_fork_id(owner))
            is_known = (fork.cluster_id, fork.file_id) in stored
            yield Planned(fork, Action.KNOWN if is_known else Action.FORK, base)


def _begins(owner: Attributed, length: int, content_hash: str | None, hashes: PrefixHashes) -> bool:
    """Whether the file begins with the content of that length and hash."""
    return content_hash is not None and hashes.get((owner.file.location, owner.file.member, length)) == content_hash


def _grown_groups(owners: Sequence[Attributed]) -> dict[FileKey, list[Attributed]]:
    """The distinct contents of each log, the longest first."""
    groups: dict[FileKey, dict[str, Attributed]] = {}
    for owner in sorted((o for o in owners if is_growing(o)), key=_order):
        groups.setdefault((owner.cluster_id, owner.file_id), {}).setdefault(owner.file.ingestible_hash, owner)
    return {
        key: sorted(contents.values(), key=lambda o: (-o.file.ingestible_bytes, o.file.ingestible_hash))
        for key, contents in groups.items()
    }


def _fork_id(owner: Attributed) -> str:
    return forked_log_file_id(owner.file_id, owner.file.ingestible_hash)


def _order(owner: Attributed) -> tuple[str, str]:
    return (owner.file.source_file, owner.file.location)
