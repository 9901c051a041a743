"""How ZooKeeper's values become columns, and what its paths say of Kafka."""

from __future__ import annotations

import re
from typing import Final

#: The times that a timestamp column and Python's datetime both hold: the years 1 to 9999, in epoch milliseconds.
_FIRST_MS: Final = -62_135_596_800_000
_LAST_MS: Final = 253_402_300_799_999

#: The owner that stands in a container's stat: containers are no session's.
CONTAINER_OWNER: Final = -(1 << 63)
_TTL_MARK: Final = 0xFF << 56
_TTL_MASK: Final = (1 << 40) - 1

_KAFKA_PATH: Final = re.compile(r"(.*?)/brokers/(?:ids|topics)(?:/.*)?", re.DOTALL)


def text(data: bytes | None) -> str | None:
    """A znode's data as text, NULL where there are none; what is no UTF-8 becomes U+FFFD."""
    return data.decode("utf-8", "replace") if data else None


def micros(milliseconds: int) -> int | None:
    """Epoch milliseconds as microseconds; NULL for what no calendar has."""
    return milliseconds * 1000 if _FIRST_MS <= milliseconds <= _LAST_MS else None


def below_chroot(path: str | None, chroot: str) -> str | None:
    """The path below Kafka's chroot, ``/`` for the chroot itself; NULL for a path outside of it."""
    if path is None:
        return None
    if chroot and path != chroot and not path.startswith(chroot + "/"):
        return None
    return path[len(chroot) :] or "/"


def chroot_of(path: str) -> str | None:
    """Kafka's chroot, as the path of a broker's or a topic's znode, or of their parents, shows it; else NULL."""
    found = _KAFKA_PATH.fullmatch(path)
    return found.group(1) if found else None


def ttl_owner(ttl_ms: int) -> int:
    """The owner that stands in the stat of a znode with this time to live."""
    owner = _TTL_MARK | (ttl_ms & _TTL_MASK)
    return owner - (1 << 64)


def session_owner(owner: int) -> int:
    """The session in a stat's ``ephemeralOwner``; 0 for containers and for znodes with a time to live.

    A time to live is marked by 0xff and two zero bytes. Server 255's sessions begin with 0xff as well, but then come
    bits of the time of their creation.
    """
    unsigned = owner & ((1 << 64) - 1)
    return 0 if owner == CONTAINER_OWNER or unsigned >> 40 == _TTL_MARK >> 40 else owner
