"""A reassignment that nobody begins, put into the snapshots of a capture: as KAFKA-9478 leaves it behind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from reconstruct.time.instants import to_datetime
from tests.support.captures.text import CaptureText
from tests.support.evidence.lines import Partition
from tests.support.evidence.znodes import rows_of

REQUEST: Final = "/admin/reassign_partitions"
#: How long after the last round the one is read that shows the request still.
LATER_MS: Final = 400_000


@dataclass(frozen=True)
class Request:
    """A partition that is to move to ``target``, from the round ``asked_in`` on."""

    partition: Partition
    target: tuple[int, ...]
    asked_in: str


def requests(text: CaptureText, rounds: int = 3) -> Iterator[Request]:
    """Each partition that the last rounds show all along, asked to move to its replicas the other way round and without
    the last of several: no assignment that it has. In each of the last ``rounds`` rounds in turn."""
    names = [name for name, _ in text.snapshots()][-rounds:]
    for name in names:
        for row in rows_of(text.files[name]):
            path = row["path"].split("/")
            if path[:3] == ["", "brokers", "topics"] and len(path) == 4:
                for number, replicas in sorted(json.loads(row["data"])["partitions"].items()):
                    target = tuple(replicas[:0:-1]) if len(replicas) > 1 else (replicas[0] % 3 + 1,)
                    yield Request((path[3], int(number)), target, name)


def not_begun(text: CaptureText, asked: Request) -> CaptureText:
    """The request in its round and all later ones, one more round that is read much later, and then one more line in
    each state-change log, the last one again."""
    files = dict(text.files)
    names = [name for name, _ in text.snapshots()]
    begun = names.index(asked.asked_in)
    first = rows_of(files[asked.asked_in])
    listed = [{"topic": asked.partition[0], "partition": asked.partition[1], "replicas": list(asked.target)}]
    at, zxid = first[0]["captured_at"], max(row["mzxid"] for row in rows_of(files[names[-1]])) + 1
    row = first[0] | {
        "path": REQUEST,
        "data": json.dumps({"version": 1, "partitions": listed}),
        **dict.fromkeys(("ctime", "mtime"), at),
        **dict.fromkeys(("czxid", "mzxid", "pzxid"), zxid),
        **dict.fromkeys(("version", "cversion", "ephemeralOwner", "numChildren"), 0),
    }
    for name in names[begun:]:
        own = rows_of(files[name])[0]["captured_at"]
        files[name] = (*files[name], json.dumps(row | {"captured_at": own}))  # type: ignore[assignment]
    last = files[names[-1]]
    captured_at = rows_of(text.files[names[-1]])[0]["captured_at"] + LATER_MS
    later = [json.dumps(json.loads(line) | {"captured_at": captured_at}) for line in last]
    files[f"znodes/{captured_at}.jsonl"] = tuple(later)  # type: ignore[assignment]
    for name in text.named("/logs/state-change.log"):
        told = text.files[name][-1]
        instant = to_datetime((captured_at + 10_000) * 1000)
        printed = f"{instant:%Y-%m-%d %H:%M:%S},{instant.microsecond // 1000:03}"
        files[name] = (*text.files[name], f"[{printed}]{told.partition(']')[2]}")  # type: ignore[assignment]
    return CaptureText(files)


def last_round(text: CaptureText) -> str:
    """The name of the last round."""
    return text.snapshots()[-1][0]


def with_rows(text: CaptureText, name: str, path: str, **changed: Any) -> CaptureText:
    """The row of a znode in one round with other values; without the row where there are none."""
    rows = [json.loads(line) for line in text.files[name]]
    kept = [row | changed if row["path"] == path else row for row in rows if changed or row["path"] != path]
    files = dict(text.files)
    files[name] = tuple(map(json.dumps, kept))  # type: ignore[assignment]
    return CaptureText(files)
