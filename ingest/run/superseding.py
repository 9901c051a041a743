"""Files that the lake knows from before they could say what they are: what a run replaces.

A file's identity is made of its cluster, its broker and how it begins. While it is being written, or while only a
part of its folder is there, less of that is known: a log that has no line yet, or none that names its broker; a file
of no known kind whose first record is still to come. Once more is known the file is another to the lake, and what
stands under its earlier id is an earlier state of it. Such rows are taken out, so that a folder ingested as it grows
gives what it gives at once. An earlier state has the file's name, or the id that it had when less was known, and its
bytes begin the file's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ingest.files.attribution import UNKNOWN_CLUSTER, Attributed
from ingest.readers.identity import log_file_id
from ingest.run.planning import Action, FileKey, Planned, PrefixHashes, StoredFile, is_growing


def earlier_ids(owners: Sequence[Attributed]) -> dict[FileKey, list[FileKey]]:
    """The ids that files which grow have had if their cluster or their broker was not known, by their ids now."""
    births = {owner.file.birth_id for owner in owners if owner.file.birth_id is not None}
    found: dict[FileKey, list[FileKey]] = {}
    for owner in owners:
        line = owner.file.first_line
        if not is_growing(owner) or line is None:
            continue
        now = (owner.cluster_id, owner.file_id)
        clusters = {owner.cluster_id, UNKNOWN_CLUSTER, *births}
        keys = {(c, log_file_id(c, broker, line.encode())) for c in clusters for broker in {owner.broker_id, None}}
        found[now] = sorted(keys - {now})
    return found


def prefixes(planned: Sequence[Planned], stored: Iterable[StoredFile]) -> dict[tuple[str, str | None], list[int]]:
    """The lengths, by (location, member), at which contents have to be hashed before :func:`superseded` can decide."""
    wanted: dict[tuple[str, str | None], set[int]] = {}
    for owner, row in _pairs(planned, stored):
        if 0 < row.length < owner.file.size_bytes:
            wanted.setdefault((owner.file.location, owner.file.member), set()).add(row.length)
    return {key: sorted(lengths) for key, lengths in wanted.items()}


def superseded(planned: Sequence[Planned], stored: Iterable[StoredFile], hashes: PrefixHashes) -> list[StoredFile]:
    """The rows that are earlier states of files of this run, each once."""
    found = {row.key: row for owner, row in _pairs(planned, stored) if _begins(owner, row, hashes)}
    return [found[key] for key in sorted(found)]


def _pairs(planned: Sequence[Planned], stored: Iterable[StoredFile]) -> list[tuple[Attributed, StoredFile]]:
    """Each file that is new with the rows that may be earlier states of it."""
    present = {entry.key for entry in planned}
    by_name: dict[str, list[StoredFile]] = {}
    by_key: dict[FileKey, StoredFile] = {}
    for row in stored:
        if row.key not in present:
            by_name.setdefault(row.source_file, []).append(row)
            by_key[row.key] = row
    new = [entry.owner for entry in planned if entry.action is Action.NEW]
    earlier = earlier_ids([entry.owner for entry in planned])
    pairs: dict[tuple[FileKey, FileKey], tuple[Attributed, StoredFile]] = {}
    for owner in new:
        now = (owner.cluster_id, owner.file_id)
        renamed = [by_key[key] for key in earlier.get(now, ()) if key in by_key]
        for row in (*by_name.get(owner.file.source_file, ()), *renamed):
            if _may_be(owner, row):
                pairs[now, row.key] = (owner, row)
    return list(pairs.values())


def _may_be(owner: Attributed, row: StoredFile) -> bool:
    is_cluster_new = row.cluster_id != owner.cluster_id
    is_broker_new = row.broker_id != owner.broker_id
    if (is_cluster_new and not row.cluster_id.startswith(UNKNOWN_CLUSTER)) or (
        is_broker_new and None not in (row.broker_id, owner.broker_id)
    ):
        return False
    file = owner.file
    is_whole = row.length == file.size_bytes
    return (
        row.status != "ingested"
        or file.is_growing
        # a name with an instant is that of one copy
        or (row.kind == file.kind and file.captured_at_ms is not None)
        or (row.kind == file.kind and is_whole and (is_cluster_new or is_broker_new))
    )


def _begins(owner: Attributed, row: StoredFile, hashes: PrefixHashes) -> bool:
    file = owner.file
    if row.length == 0:
        return True
    if row.length == file.size_bytes:
        return row.content_hash == file.content_hash
    return row.content_hash is not None and hashes.get((file.location, file.member, row.length)) == row.content_hash
