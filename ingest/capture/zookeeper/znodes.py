"""Which znodes are read and how, and the line of each in a snapshot. Pure functions of paths, data and stats."""

from __future__ import annotations

import json
import re
from typing import Any, Final, NamedTuple, Protocol

from ingest.readers.secrets import HIDDEN, masked_znode

#: Credentials lie below these: their stat is read, their data never is.
_SECRET: Final = re.compile(r"/(?:config/users|delegation_token/tokens)/")
#: Offsets of consumers of 0.8 and 0.9 lie below: many, ever changing, and no business of the controller's.
_PRUNED: Final = re.compile(r"/consumers/")
#: Znodes without children, so that nobody need watch for any.
_LEAF: Final = re.compile(
    r"/brokers/topics/[^/]+/partitions/\d+/state$|/brokers/ids/\d+$|/config/(?:topics|brokers|clients|users)/[^/]+$"
    r"|/isr_change_notification/[^/]+$|/log_dir_event_notification/[^/]+$|/config/changes/[^/]+$"
    r"|/(?:controller|controller_epoch|cluster/id|brokers/seqid|latest_producer_id_block)$"
)
#: A change below these begins a round at once: the controller, brokers, topics and their partitions, admin requests.
_URGENT: Final = re.compile(r"/(?:controller|controller_epoch|brokers/ids|brokers/topics|admin)(?:/|$)")


class Stat(Protocol):
    """A znode's stat, as ZooKeeper's clients name its fields."""

    czxid: int
    mzxid: int
    pzxid: int
    ctime: int
    mtime: int
    version: int
    cversion: int
    ephemeralOwner: int
    numChildren: int


class ChrootPath(NamedTuple):
    """``hosts`` for a client, and Kafka's chroot: ``""`` where it has none."""

    hosts: str
    chroot: str


def split_chroot(zookeeper: str) -> ChrootPath:
    """``HOST:PORT[,HOST:PORT...][/chroot]`` in its parts, as ``zookeeper.connect`` is read."""
    hosts, slash, chroot = zookeeper.partition("/")
    path = "/".join(name for name in chroot.split("/") if name)
    return ChrootPath(hosts.strip(), f"/{path}" if slash and path else "")


def is_read(path: str, chroot: str) -> bool:
    """Whether the znode belongs into a snapshot: not ZooKeeper's own, and no consumer's offsets."""
    own = path[len(chroot) :]
    return not (own == "/zookeeper" and not chroot) and _PRUNED.match(own) is None


def has_secret_data(path: str, chroot: str) -> bool:
    """Whether the znode's data are credentials: they are not asked for."""
    return _SECRET.match(path[len(chroot) :]) is not None


def is_leaf(path: str, chroot: str) -> bool:
    return _LEAF.match(path[len(chroot) :]) is not None


def is_urgent(path: str, chroot: str) -> bool:
    return _URGENT.match(path[len(chroot) :]) is not None


def child(parent: str, name: str) -> str:
    return f"/{name}" if parent in ("", "/") else f"{parent}/{name}"


def line_tail(path: str, data: bytes | None, stat: Stat) -> bytes:
    """A snapshot's line behind ``{"captured_at":MS,``; data that are secret are hidden, as the ingest does it."""
    text = None if not data else data.decode("utf-8", "backslashreplace")
    return _tail(path, masked_znode(path, text), stat)


def hidden_line_tail(path: str, stat: Stat) -> bytes:
    """The same of a znode whose data were not read."""
    return _tail(path, HIDDEN, stat)


def snapshot_lines(captured_at_ms: int, tails: list[bytes]) -> bytes:
    """The whole snapshot of a round; ``tails`` in the order of their paths."""
    head = b'{"captured_at":%d,' % captured_at_ms
    return head + head.join(tails) if tails else b""


def _tail(path: str, data: str | None, stat: Stat) -> bytes:
    fields: dict[str, Any] = {
        "path": path,
        "data": data,
        "czxid": stat.czxid,
        "mzxid": stat.mzxid,
        "pzxid": stat.pzxid,
        "ctime": stat.ctime,
        "mtime": stat.mtime,
        "version": stat.version,
        "cversion": stat.cversion,
        "ephemeralOwner": stat.ephemeralOwner,
        "numChildren": stat.numChildren,
    }
    return json.dumps(fields, separators=(",", ":")).encode()[1:] + b"\n"
