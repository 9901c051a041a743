"""Where this program keeps what it may lose: downloaded jars, Spark's log files, the shell's history."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

CACHE_VARIABLE: Final = "KAFKA_STATE_REPLAY_CACHE"


def cache_dir() -> Path:
    """The cache folder, not made yet.

    ``KAFKA_STATE_REPLAY_CACHE`` where it is set; ``.cache`` of the checkout when run from one; else
    ``kafka-state-replay`` in the user's cache folder (``XDG_CACHE_HOME`` or ``~/.cache``).
    """
    given = os.environ.get(CACHE_VARIABLE)
    if given:
        return Path(given).expanduser().absolute()
    checkout = Path(__file__).resolve().parents[2]
    if (checkout / "pyproject.toml").is_file() and (checkout / "Makefile").is_file():
        return checkout / ".cache"
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().absolute() / "kafka-state-replay"
