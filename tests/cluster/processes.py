"""Which processes were started below a folder: looked up, never touched."""

from __future__ import annotations

import os
from pathlib import Path


def processes_of(folder: Path) -> dict[int, str]:
    """The command of each other running process that names the folder, by its id; zombies name nothing."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it has ended meanwhile
        if str(folder) in command and int(entry.name) != os.getpid():
            found[int(entry.name)] = command
    return found
