"""Free ports on loopback that stay free while a broker is down."""

from __future__ import annotations

import random
import socket
from pathlib import Path
from typing import Final

LOOPBACK: Final = "127.0.0.1"
_LOWEST: Final = 10_000
_EPHEMERAL: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_ports(count: int) -> list[int]:
    """So many different ports that nobody listens on.

    They lie below those that the system gives to outgoing connections: a client that tries to reach a dead broker
    would else be given the broker's own port one day, and be connected to itself.
    """
    found: list[int] = []
    for port in random.sample(range(_LOWEST, _first_ephemeral()), k=2_000):
        if len(found) == count:
            break
        if _is_free(port):
            found.append(port)
    if len(found) < count:
        raise OSError(f"no {count} free ports between {_LOWEST} and {_first_ephemeral()} on {LOOPBACK}")
    return found


def _first_ephemeral() -> int:
    try:
        first = int(_EPHEMERAL.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        first = 32_768
    return first if first > _LOWEST + 4_000 else 32_768


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trial:
        try:
            trial.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
