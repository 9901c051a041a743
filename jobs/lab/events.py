"""What was done to a cluster and when: the truth to test against, never an input."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any


class Events:
    """A file of JSON lines, each with ``ts`` (seconds since the epoch), ``what``, and what belongs to it.

    A line that names a ``broker`` says that something was done to that broker.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._lock = threading.Lock()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()

    def note(self, what: str, **details: Any) -> None:
        """Add a line, as of now."""
        line = json.dumps({"ts": round(time.time(), 3), "what": what, **details})
        with self._lock, self.file.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
