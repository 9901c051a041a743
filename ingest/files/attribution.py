"""Whose is each file: the cluster and the broker, found from all files of a run together.

Pure functions over :class:`~ingest.files.inspected.Inspected`. A file's own evidence comes first; without any it
takes that of its nearest folder whose files have some. Folders are looked at lexically up to the common
ancestor of everything found, so that ``cap/broker-1`` and ``cap/znodes`` given as two paths belong together.

A folder may hold files of several clusters: a broker whose ZooKeeper was wiped and whose logs went on in the same
place. There a log belongs to the cluster that was stated last before it begins. Where several remain possible a file
is a cluster of its own, so that nothing is judged from it together with files that may be of another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from ingest.files.inspected import Inspected
from ingest.files.znode_facts import CLUSTER_BIRTH, CLUSTER_ZNODE
from ingest.lake.tables.bronze import READ_PARTITION_FILE_KINDS, SourceKind
from ingest.readers import paths
from ingest.readers.identity import copied_file_id, digest, log_file_id
from ingest.readers.log_dirs.names import file_name

UNKNOWN_CLUSTER: Final = "unknown"
#: Files of a capture that tell of all brokers in turn: what lies beside them does not say whose they are.
_OF_ALL_BROKERS: Final = (SourceKind.CLUSTER_DESCRIPTION, SourceKind.CAPTURE_GAP)

#: A broker states its cluster's id when it starts, after its first lines.
_START: Final = timedelta(minutes=1)

_Evidence = tuple[int, str, str]  # rank, instant as text, id
Folder = tuple[str, ...]


class ClusterSource(StrEnum):
    """What says which cluster a file is of, the surest first."""

    GIVEN = "given"  # --cluster
    STATED = "stated"  # the file itself
    FOLDER = "folder"  # the only cluster that the files of its folder state
    TIME = "time"  # the cluster that its folder's logs state for that time
    LAKE = "lake"  # the only cluster of the lake
    NOTHING = "nothing"  # no file says; all that say nothing are taken for one
    AMBIGUOUS = "ambiguous"  # several are possible: a file that is read is a cluster of its own, others are of none


@dataclass(frozen=True)
class Attributed:
    """A file with its owner and its identity."""

    file: Inspected
    cluster_id: str
    broker_id: int | None
    file_id: str
    cluster_source: ClusterSource = ClusterSource.STATED

    @property
    def is_ambiguous(self) -> bool:
        """Whether several clusters are possible: the file is a cluster of its own, or is not read and of none."""
        return self.cluster_source is ClusterSource.AMBIGUOUS


def attribute(
    files: Sequence[Inspected],
    *,
    cluster_id: str | None,
    brokers: Mapping[str, int],
    known_cluster: str | None,
) -> tuple[list[Attributed], list[str]]:
    """Every file with its cluster, broker and id; and warnings about evidence that does not agree.

    ``brokers`` maps locations to broker ids (the longest prefix of a file's location counts);
    ``known_cluster`` is taken where nothing at all says which cluster a file is of.
    """
    tree = _Tree(files)
    warnings: dict[str, None] = {}
    attributed = []
    for file in files:
        if cluster_id is not None:
            cluster, source = cluster_id, ClusterSource.GIVEN
        else:
            cluster, source = tree.cluster(file, warnings) or (
                (known_cluster, ClusterSource.LAKE) if known_cluster else (UNKNOWN_CLUSTER, ClusterSource.NOTHING)
            )
        broker = _given_broker(file, brokers)
        if broker is None and not file.kind.startswith("znode") and not file.streams:
            broker = tree.broker(file)
        attributed.append(Attributed(file, cluster, broker, file_id(file, cluster, broker), source))
    return attributed, sorted(warnings)


def round_ends(files: Sequence[Attributed]) -> dict[tuple[str, int | None], list[int]]:
    """The instants of the capture's rounds, epoch ms, ascending, by (cluster, broker): those of the broker's
    checkpoints and those of the cluster's znode snapshots."""
    own: dict[tuple[str, int | None], set[int]] = {}
    shared: dict[str, set[int]] = {}
    for file in files:
        instant = file.file.captured_at_ms
        if instant is None:
            continue
        if file.file.kind == SourceKind.ZNODE_SNAPSHOT:
            shared.setdefault(file.cluster_id, set()).add(instant)
        elif file.file.kind.endswith("_checkpoint"):
            own.setdefault((file.cluster_id, file.broker_id), set()).add(instant)
    return {key: sorted(instants | shared.get(key[0], set())) for key, instants in own.items()}


def file_id(file: Inspected, cluster_id: str, broker_id: int | None) -> str:
    """The identity of a file of that owner: of its content, however far it has grown."""
    if file.is_growing and file.is_read and file.first_line is not None:
        return log_file_id(cluster_id, broker_id, file.first_line.encode())
    place = file.directory
    if file.kind in READ_PARTITION_FILE_KINDS:  # files of one directory may be equal, as empty ones are
        place = f"{file.directory}/{file_name(file.source_file)}"
    return copied_file_id(cluster_id, broker_id, file.kind, file.captured_at_ms, place, file.content_hash)


def own_digest(file: Inspected, root: Folder) -> str:
    """What tells a log of lines from all others, however far it has grown; of other files, those of a folder below
    ``root`` from all others."""
    if file.first_line is not None and file.kind != SourceKind.METADATA_LOG:
        return file.first_line
    folder = file.names[len(root) : -1]
    if folder and paths.topic_partition(folder[-1]) is not None:
        folder = folder[:-1]  # of the broker's log directory
    return digest(*folder)


def _given_broker(file: Inspected, brokers: Mapping[str, int]) -> int | None:
    where = f"{file.location}/{file.member}" if file.member else file.location
    fitting = [path for path in brokers if where == path or where.startswith(path.rstrip("/") + "/")]
    return brokers[max(fitting, key=len)] if fitting else None


class _Tree:
    """Evidence gathered per folder, archives being folders of their members."""

    def __init__(self, files: Sequence[Inspected]) -> None:
        self._files = [(file, file.names[:-1]) for file in files]
        self._root = common_folder([folder for _, folder in self._files])
        self._stated: dict[str, str] = {}
        for file in files:
            if file.birth_id is not None and file.cluster_id is not None and file.cluster_rank < CLUSTER_BIRTH:
                self._state(file.birth_id, file.cluster_id)
        self._clusters = self._gather()
        self._resolve_births()
        self._clusters = self._gather()
        self._statements: dict[Folder, list[tuple[str, str]]] = {}
        for file, folder in self._files:
            self._statements.setdefault(folder, []).extend(s for s in file.statements if s[0])
        for statements in self._statements.values():
            statements.sort()
        self._brokers: dict[Folder, set[int]] = {}
        self._shared: set[Folder] = set()
        for file, folder in self._files:
            if file.is_shared:
                self._shared.add(folder)
            # a file of probes is about a broker, and lies where the client ran
            if file.broker_id is not None and file.kind != SourceKind.OFFSET_PROBE:
                for name in _upwards(folder, self._root):
                    self._brokers.setdefault(name, set()).add(file.broker_id)

    def cluster(self, file: Inspected, warnings: dict[str, None]) -> tuple[str, ClusterSource] | None:
        """The cluster of a file, and what says so; None where no file says anything."""
        if file.cluster_id is not None:
            return self._evidence(file)[2], ClusterSource.STATED
        for name in _upwards(file.names[:-1], self._root):
            found = self._clusters.get(name)
            if not found:
                continue
            clusters = sorted({cluster for _, _, cluster in found})
            if len(clusters) == 1:
                return clusters[0], ClusterSource.FOLDER
            if not file.is_read:  # nothing is judged from it
                return UNKNOWN_CLUSTER, ClusterSource.AMBIGUOUS
            possible = self._possible(file, name)
            if len(possible) == 1:
                return possible.pop(), ClusterSource.TIME
            warnings[
                f"/{'/'.join(name)} holds files of several clusters ({', '.join(clusters)}): those that do not say"
                " which, and may be of several, are each looked at by themselves; give each cluster's folder by"
                " itself, with --cluster"
            ] = None
            return f"{UNKNOWN_CLUSTER}-{own_digest(file, self._root)[:16]}", ClusterSource.AMBIGUOUS
        return None

    def _possible(self, file: Inspected, name: Folder) -> set[str]:
        """The clusters of a folder that a file may be of: for a log those that each folder's logs stated last before it
        begins and until it ends, and those that are stated without a time."""
        everyone = {cluster for _, _, cluster in self._clusters[name]}
        if file.first_at is None or file.last_at is None:
            return everyone
        begins, ends = _after_start(file.first_at), _after_start(file.last_at)
        possible, timed = set[str](), set[str]()
        for folder, statements in self._statements.items():
            if folder[: len(name)] == name:
                timed.update(cluster for _, cluster in statements)
                before = [cluster for at, cluster in statements if at <= begins]
                possible.update(before[-1:], (cluster for at, cluster in statements if begins < at <= ends))
        return (possible or everyone) | (everyone - timed)

    def broker(self, file: Inspected) -> int | None:
        if file.names[:-1] in self._shared and (file.kind == SourceKind.SERVER_LOG or file.broker_id is None):
            return None
        if file.broker_id is not None:
            return file.broker_id
        if file.kind in _OF_ALL_BROKERS:
            return _named_by_path(file)
        for name in _upwards(file.names[:-1], self._root):
            found = self._brokers.get(name, set())
            if len(found) == 1:
                return next(iter(found))
            named = paths.broker_id(name[-1]) if name else None
            if named is not None or found:
                return named
        return _named_by_path(file)

    def _evidence(self, file: Inspected) -> _Evidence:
        assert file.cluster_id is not None
        stated = self._stated.get(file.cluster_id) if file.cluster_rank == CLUSTER_BIRTH else None
        return (
            (CLUSTER_ZNODE, file.cluster_at, stated)
            if stated
            else (file.cluster_rank, file.cluster_at, file.cluster_id)
        )

    def _gather(self) -> dict[Folder, set[_Evidence]]:
        gathered: dict[Folder, set[_Evidence]] = {}
        for file, folder in self._files:
            if file.cluster_id is not None:
                for name in _upwards(folder, self._root):
                    gathered.setdefault(name, set()).add(self._evidence(file))
        return gathered

    def _resolve_births(self) -> None:
        """A snapshot from before ``/cluster/id`` was written, or whose version writes none: the capture that its
        folder lies in may state the id, if it holds one cluster only."""
        already = frozenset(self._stated)
        for file, folder in self._files:
            if file.cluster_rank != CLUSTER_BIRTH or file.cluster_id is None or file.cluster_id in already:
                continue
            for name in (folder, folder[:-1]):
                found = self._clusters.get(name, set()) if len(name) >= len(self._root) else set()
                births = {cluster for rank, _, cluster in found if rank == CLUSTER_BIRTH}
                stated = {cluster for rank, _, cluster in found if rank < CLUSTER_BIRTH}
                if len(stated) == 1 and births <= {file.cluster_id}:
                    self._state(file.cluster_id, next(iter(stated)))
                    break

    def _state(self, birth_id: str, cluster_id: str) -> None:
        self._stated[birth_id] = min(self._stated.get(birth_id, cluster_id), cluster_id)


def _after_start(at: str) -> str:
    """The time by which a broker whose log says ``at`` has stated its cluster."""
    try:
        return str(datetime.fromisoformat(at[:19]) + _START)
    except ValueError:  # digits that are no date
        return at


def _named_by_path(file: Inspected) -> int | None:
    """The broker of the nearest folder named ``broker-N``."""
    named = (paths.broker_id(name) for name in reversed(file.names[:-1]))
    return next((broker for broker in named if broker is not None), None)


def common_folder(folders: Sequence[Folder]) -> Folder:
    """The folder that all of them lie in."""
    if not folders:
        return ()
    low, high = min(folders), max(folders)
    length = 0
    while length < min(len(low), len(high)) and low[length] == high[length]:
        length += 1
    return low[:length]


def _upwards(folder: Folder, root: Folder) -> list[Folder]:
    """The folder and those above it, the nearest first, down to ``root``."""
    return [folder[:length] for length in range(len(folder), len(root) - 1, -1)]
