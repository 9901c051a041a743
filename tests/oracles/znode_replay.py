"""The znodes that a sequence of transactions leaves behind, as ZooKeeper's own ``DataTree`` applies them.

A snapshot is fuzzy: ZooKeeper goes on writing while it takes one, so that transactions after the one in its name may
be in it or not. Applying them all again gives the same tree either way: what a snapshot holds already is refused (a
create of what exists, a delete of what does not) or overwritten with the same.

Not followed: the counters below ``/zookeeper/quota``, which no transaction carries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ingest.readers.zookeeper.columns import session_owner
from ingest.readers.zookeeper.transactions import Op, Operation

_CONFIG_ACL_VERSION = -1


@dataclass(slots=True)
class Znode:
    """A znode and its stat as the server keeps it.

    ``child_creates`` is the server's ``cversion``: it counts the children ever created. Clients are shown
    :attr:`cversion`, which counts their deletions too.
    """

    data: bytes | None
    czxid: int
    mzxid: int
    pzxid: int
    ctime_ms: int
    mtime_ms: int
    version: int = 0
    child_creates: int = 0
    acl_version: int = 0
    ephemeral_owner: int = 0
    children: set[str] = field(default_factory=set)

    @property
    def cversion(self) -> int:
        return 2 * self.child_creates - len(self.children)


class ZnodeTree:
    """All znodes by path, ``/`` included, the open sessions with their timeouts in ms, and the last transaction."""

    def __init__(self) -> None:
        self.nodes: dict[str, Znode] = {}
        self.sessions: dict[int, int] = {}
        self.zxid = 0
        self._ephemerals: dict[int, dict[str, None]] = {}

    def add(self, path: str, znode: Znode) -> None:
        """Put a znode of a snapshot in its place, after its parent."""
        self.nodes[path] = znode
        if path != "/":
            parent, child = _split(path)
            self.nodes[parent].children.add(child)
        owner = session_owner(znode.ephemeral_owner)
        if owner:
            self._ephemerals.setdefault(owner, {})[path] = None

    def apply(self, operation: Operation) -> None:
        """Apply one operation. What the tree refuses changes nothing but, as in ZooKeeper, the parent's counters."""
        match operation.op:
            case Op.CREATE:
                self._create(operation)
            case Op.DELETE:
                self._delete(operation.path or "", operation.zxid)
            case Op.SET_DATA:
                self._set_data(operation)
            case Op.SET_ACL:
                znode = self.nodes.get(operation.path or "")
                if znode is not None and operation.acl_version is not None:
                    znode.acl_version = operation.acl_version
            case Op.CREATE_SESSION:
                self.sessions[operation.session] = operation.session_timeout_ms or 0
            case Op.CLOSE_SESSION:
                self._close(operation)
            case _:
                pass
        self.zxid = max(self.zxid, operation.zxid)

    def replay(self, operations: Iterable[Operation], after_zxid: int, to_zxid: int | None = None) -> None:
        """Apply the operations after one transaction, up to and with another."""
        for operation in operations:
            if after_zxid < operation.zxid and (to_zxid is None or operation.zxid <= to_zxid):
                self.apply(operation)

    def _create(self, operation: Operation) -> None:
        path = operation.path or ""
        parent_path, child = _split(path)
        parent = self.nodes.get(parent_path)
        if parent is None or not child:
            return
        creates = operation.parent_cversion
        if creates is None or creates == -1:
            creates = parent.child_creates + 1
        if creates > parent.child_creates:
            parent.child_creates, parent.pzxid = creates, operation.zxid
        if path in self.nodes:
            return
        zxid, time_ms = operation.zxid, operation.time_ms
        owner = operation.ephemeral_owner
        self.add(path, Znode(operation.data, zxid, zxid, zxid, time_ms, time_ms, ephemeral_owner=owner))

    def _delete(self, path: str, zxid: int) -> None:
        parent_path, child = _split(path)
        parent = self.nodes.get(parent_path)
        if parent is None or path == "/":
            return
        parent.children.discard(child)
        parent.pzxid = max(parent.pzxid, zxid)
        znode = self.nodes.pop(path, None)
        owner = session_owner(znode.ephemeral_owner) if znode is not None else 0
        if owner in self._ephemerals:
            self._ephemerals[owner].pop(path, None)

    def _set_data(self, operation: Operation) -> None:
        znode = self.nodes.get(operation.path or "")
        if znode is None:
            return
        znode.data, znode.mzxid, znode.mtime_ms = operation.data, operation.zxid, operation.time_ms
        znode.version = operation.version or 0

    def _close(self, operation: Operation) -> None:
        self.sessions.pop(operation.session, None)
        owned = self._ephemerals.pop(operation.session, {})
        for path in dict.fromkeys([*(operation.paths or ()), *owned]):
            self._delete(path, operation.zxid)


def new_tree(*, has_config: bool = True) -> ZnodeTree:
    """The tree of a server that never wrote: ``/zookeeper/config`` is there since 3.5."""
    tree = ZnodeTree()
    for path in ("/", "/zookeeper", "/zookeeper/quota", *(("/zookeeper/config",) if has_config else ())):
        tree.add(path, Znode(b"", 0, 0, 0, 0, 0))
    if has_config:
        tree.nodes["/zookeeper/config"].acl_version = _CONFIG_ACL_VERSION
    return tree


def close_sessions(operations: Iterable[Operation]) -> Iterator[Operation]:
    """The same operations, each closed session followed by the deletions of its ephemeral znodes.

    The deletions carry the transaction of the closing; those that the transaction lists itself come first, the others
    in the order of the znodes' creation. Give the operations of all files in their order: an ephemeral znode created
    in one file may go with its session in the next.
    """
    owners: dict[str, int] = {}
    unlisted: list[Operation] = []
    for operation in operations:
        if unlisted and operation.zxid != unlisted[0].zxid:
            yield from unlisted
            unlisted = []
        yield operation
        if operation.op is Op.CREATE and operation.ephemeral and operation.path is not None:
            owners[operation.path] = operation.session
        elif operation.op is Op.DELETE and operation.path is not None:
            owners.pop(operation.path, None)
        elif operation.op is Op.CLOSE_SESSION:
            listed = operation.paths or ()
            unlisted = [
                operation._replace(op=Op.DELETE, ordinal=ordinal, path=path, paths=None)
                for ordinal, path in enumerate(_unlisted(owners, operation), start=len(listed) + 1)
            ]
            for deletion in unlisted:
                owners.pop(deletion.path or "", None)
    yield from unlisted


def _unlisted(owners: dict[str, int], closing: Operation) -> list[str]:
    listed = set(closing.paths or ())
    return [path for path, owner in owners.items() if owner == closing.session and path not in listed]


def _split(path: str) -> tuple[str, str]:
    parent, _, child = path.rpartition("/")
    return parent or "/", child
