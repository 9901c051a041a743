"""A capture's logs at any size: every topic of it many times over, in one cluster, at the same instants.

Each record that names a topic stands once for every copy, with that copy's topic names, beside the ones of the other
copies; what names no topic stands once. So the order of the lines and the instants stay true, the cluster's own events
happen once, and what grows is what grows in real clusters: the number of partitions, all elected, moved and told of at
the same moments. What lines count (``for 8 partitions``) stays as it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

_LOGS: Final = ("state-change.log", "controller.log", "server.log")
_LEVELS: Final = ("TRACE", "DEBUG", "INFO")
#: A record's time and level stand in so many bytes.
_HEADER_BYTES: Final = 34
_RECORD: Final = re.compile(rb"(?m)^(?=\[\d{4}-\d\d-\d\d )")


def scale_logs(capture: Path, target: Path, size_bytes: int, topics: Sequence[str], *, level: str = "TRACE") -> int:
    """Write the logs of ``capture`` below ``target`` (``broker-N/logs``) so that they are about ``size_bytes``; return
    how many copies of each of ``topics`` there are. Records below ``level`` (TRACE, DEBUG, INFO) are left out."""
    logs = sorted(path for name in _LOGS for path in capture.glob(f"broker-*/logs/{name}"))
    named = re.compile(rb"(?<![\w.-])(" + b"|".join(re.escape(topic.encode()) for topic in topics) + rb")(?![\w.])")
    left_out = tuple(f"] {lower} ".encode() for lower in _LEVELS[: _LEVELS.index(level)])
    once = {log: list(_records(log.read_bytes(), named, left_out)) for log in logs}
    growing = sum(len(record) for records in once.values() for record, grows in records if grows)
    copies = max(1, size_bytes // growing)
    for log, records in once.items():
        place = target / log.relative_to(capture)
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("wb") as file:
            for record, grows in records:
                if grows:
                    file.writelines(named.sub(rb"\g<1>-%d" % copy, record) for copy in range(copies))
                else:
                    file.write(record)
    for properties in capture.glob("broker-*/*.properties"):
        (target / properties.relative_to(capture)).write_bytes(properties.read_bytes())
    return copies


def _records(log: bytes, named: re.Pattern[bytes], left_out: Sequence[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Each record with its continuation lines, and whether it names a topic."""
    for record in _RECORD.split(log):
        if record and not any(text in record[:_HEADER_BYTES] for text in left_out):
            yield record, named.search(record) is not None
