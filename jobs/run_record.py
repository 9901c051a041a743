"""What a run did, as JSON for a scheduler: ``--json FILE``."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

#: Packages whose versions a run is told by.
_PACKAGES = ("kafka-state-replay", "pyspark", "delta-spark", "great-expectations", "pyarrow")


def write_record(
    path: str,
    *,
    command: str,
    lake: str,
    started_at: datetime,
    stages: Sequence[tuple[str, float]],
    exit_code: int,
    problems: Sequence[str],
    facts: Mapping[str, Any],
) -> None:
    """Write one JSON object, whole or not at all; raises ``OSError``.

    Its members: ``command``, ``lake``, ``started_at`` and ``ended_at`` (ISO 8601, UTC), ``exit_code``, ``problems``
    (the sentences of standard error), ``stages`` (each with ``name`` and ``seconds``, in order), ``versions`` (of
    Python and of packages), and by step what it did: ``ingest``, ``reconstruct``, ``check``, where the command has it.
    """
    record = {
        "command": command,
        "lake": lake,
        "started_at": started_at.isoformat(),
        "ended_at": datetime.now(UTC).isoformat(),
        "exit_code": exit_code,
        "problems": list(problems),
        "stages": [{"name": name, "seconds": round(seconds, 3)} for name, seconds in stages],
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in _PACKAGES}},
        **facts,
    }
    unfinished = f"{path}.unfinished"
    with open(unfinished, "w", encoding="utf-8") as file:
        json.dump(record, file, indent=1, default=str)
        file.write("\n")
    os.replace(unfinished, path)


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
