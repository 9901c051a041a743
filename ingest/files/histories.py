"""Which metadata logs that state one cluster's id are of one cluster.

Some are not: where a Compose file was copied with the id of its example, where a node was formatted alone with the id
of a quorum, where a folder was formatted again. Logs of one history have marks in common
(:mod:`ingest.files.metadata_marks`), however far each has come, whether its head was deleted or its end differs; files
of one folder are of one history unless they contradict each other. Each history is a cluster of its own, named by the
id and its first mark. Other files go with the log whose folder is nearest, or whose node they are of; where several
remain, a file is a cluster of its own, as where several ids are possible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ingest.files.attribution import (
    UNKNOWN_CLUSTER,
    Attributed,
    ClusterSource,
    Folder,
    common_folder,
    file_id,
    own_digest,
)
from ingest.files.metadata_marks import offset_of
from ingest.readers.identity import digest

_NAME_DIGITS: Final = 8
_TAKEN_FOR_ONE: Final = (
    "metadata logs that have no record in common were taken for one cluster when they came into this lake, and stay it:"
    " begin a new lake, and each is a cluster of its own"
)


@dataclass
class _History:
    """``folders`` are the log directories that its files lie in, ``shown`` the same for people."""

    marks: set[str] = field(default_factory=set)
    folders: set[Folder] = field(default_factory=set)
    shown: set[str] = field(default_factory=set)
    nodes: set[int] = field(default_factory=set)
    places: dict[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, owner: Attributed) -> _History:
        """Of one file of a metadata log; its log directory is above ``__cluster_metadata-0``."""
        file = owner.file
        found = cls(folders={file.names[:-2]}, shown={"/".join(file.source_file.split("/")[:-2]) or "."})
        found.nodes.update(() if owner.broker_id is None else [owner.broker_id])
        found._note(file.marks)
        return found

    def take(self, other: _History) -> None:
        self.folders |= other.folders
        self.shown |= other.shown
        self.nodes |= other.nodes
        self._note(other.marks)

    def _note(self, marks: Iterable[str]) -> None:
        self.marks.update(marks)
        self.places.update({at: mark for mark in marks for at in [offset_of(mark)] if at is not None})

    def contradicts(self, other: _History) -> bool:
        """Whether at one offset each has another batch."""
        return any(self.places[at] != other.places[at] for at in self.places.keys() & other.places.keys())

    @property
    def first_mark(self) -> str:
        return min(self.marks, key=lambda mark: (offset_of(mark) is None, offset_of(mark) or 0, mark))


def part_histories(
    owners: Sequence[Attributed], known: Mapping[str, frozenset[str]]
) -> tuple[list[Attributed], list[str]]:
    """The files, those of a cluster with several histories each with the cluster that its history is; and warnings.

    ``known`` has by cluster, of those of the lake with a metadata log, which marks of these files it has.
    """
    parted: list[Attributed] = list(owners)
    warnings = []
    root = common_folder([owner.file.names[:-1] for owner in owners])
    for cluster_id in sorted({owner.cluster_id for owner in owners if owner.file.marks}):
        histories = _histories([owner for owner in owners if owner.cluster_id == cluster_id and owner.file.marks])
        named: dict[str, _History] = {}
        for history in histories:
            name = _name(history, cluster_id, len(histories), known)
            named.setdefault(name, _History()).take(history)
        if len(named) < len(histories):
            warnings.append(f"{cluster_id}: {_TAKEN_FOR_ONE}")
        if named.keys() != {cluster_id}:
            placing = _Placing(cluster_id, named, root)
            parted = [placing.placed(owner) if owner.cluster_id == cluster_id else owner for owner in parted]
            warnings.append(_warning(cluster_id, named))
    return parted, warnings


def _histories(owners: Sequence[Attributed]) -> list[_History]:
    """In the order of their first marks."""
    found: list[_History] = []
    for owner in sorted(owners, key=lambda one: (one.file.location, one.file.member or "")):
        found = _joined(found, _History.of(owner), lambda one, other: not one.marks.isdisjoint(other.marks))
    alone: list[_History] = []
    for history in sorted(found, key=lambda one: one.first_mark):
        alone = _joined(
            alone, history, lambda one, other: bool(one.folders & other.folders) and not one.contradicts(other)
        )
    return sorted(alone, key=lambda one: one.first_mark)


def _joined(found: list[_History], new: _History, is_same: Callable[[_History, _History], bool]) -> list[_History]:
    """With one more history, which is one with those that it is the same as."""
    apart = []
    for history in found:
        if is_same(history, new):
            new.take(history)
        else:
            apart.append(history)
    return [*apart, new]


def _name(history: _History, cluster_id: str, count: int, known: Mapping[str, frozenset[str]]) -> str:
    """The cluster of the lake that the history goes on with; else a new one."""
    of_id = [name for name in sorted(known) if name == cluster_id or name.startswith(f"{cluster_id}-")]
    same = [name for name in of_id if not known[name].isdisjoint(history.marks)]
    if same:
        return same[0]
    if count == 1 and cluster_id not in known:
        return cluster_id
    return f"{cluster_id}-{digest(history.first_mark)[:_NAME_DIGITS]}"


class _Placing:
    """Where the files of one cluster's id go. ``histories`` are by the names of their clusters."""

    def __init__(self, cluster_id: str, histories: Mapping[str, _History], root: Folder) -> None:
        self._cluster_id = cluster_id
        self._histories = histories
        self._root = root
        self._below: dict[Folder, set[str]] = {}
        for name, history in histories.items():
            for folder in history.folders:
                for length in range(len(folder) + 1):
                    self._below.setdefault(folder[:length], set()).add(name)

    def placed(self, owner: Attributed) -> Attributed:
        possible = self._possible(owner)
        if len(possible) == 1:
            return _moved(owner, possible.pop(), owner.cluster_source)
        is_read = owner.file.is_read
        own = f"{self._cluster_id}-{own_digest(owner.file, self._root)[:16]}" if is_read else UNKNOWN_CLUSTER
        return _moved(owner, own, ClusterSource.AMBIGUOUS)

    def _possible(self, owner: Attributed) -> set[str]:
        if owner.file.marks:
            return {name for name, one in self._histories.items() if not one.marks.isdisjoint(owner.file.marks)}
        folder = owner.file.names[:-1]
        near = next(
            found for length in range(len(folder), -1, -1) for found in [self._below.get(folder[:length])] if found
        )
        of_node = {name for name in near if owner.broker_id in self._histories[name].nodes}
        return of_node if len(near) > 1 and len(of_node) == 1 else set(near)


def _moved(owner: Attributed, cluster_id: str, source: ClusterSource) -> Attributed:
    return replace(
        owner,
        cluster_id=cluster_id,
        file_id=file_id(owner.file, cluster_id, owner.broker_id),
        cluster_source=source,
    )


def _warning(cluster_id: str, histories: Mapping[str, _History]) -> str:
    listed = "; ".join(f"{name} ({', '.join(sorted(one.shown))})" for name, one in histories.items())
    return (
        f"metadata logs that have no record in common state the cluster id {cluster_id}: each is taken for a cluster of"
        f" its own, and files that may be of several each by itself: {listed}"
    )
