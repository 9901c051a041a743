"""An incident of 10,000 partitions with some 1,000 findings, as the raw files that three brokers and ZooKeeper leave.

It is ``unclean-3.9.1-info`` with each topic many times over: two of three brokers die, partitions lose their leader,
those of ``ledger`` elect one uncleanly and lose records, and some of ``safe`` are bent as the tests of rules bend one
partition. What names no topic stands once, as in :mod:`tests.support.captures.scaled`; a line that names several topics
stands once for each number, with the names of that number.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from tests.support.bends import decisions
from tests.support.bends.editing import Edits, Subject
from tests.support.captures.packed import TRUTH, unpack
from tests.support.captures.text import CaptureText
from tests.support.evidence.znodes import rows_of

CAPTURE: Final = "unclean-3.9.1-info"
#: How often each topic is there. They have two, two and one partition.
COPIES: Final = {"ledger": 194, "safe": 3_204, "solo": 3_204}
PARTITIONS: Final = 10_000
#: What is bent in copies of a topic, each kind at its first place.
BENDS: Final = (
    decisions.leader_outside_isr,
    decisions.leader_epoch_fell,
    decisions.leader_epoch_raised_by_isr_change,
    decisions.isr_emptied,
    decisions.isr_outside_assignment,
    decisions.illegal_partition_transition,
    decisions.dead_leader,
)
BENT: Final = "safe"
COPIES_OF_A_BEND: Final = 10
#: The scenario's client asked for offsets once a second, and brokers of 3.9 log each such request at INFO.
_OF_THE_SCENARIO: Final = "] INFO Completed request:"
#: Of what was copied once a second these are kept, by the second since 1970: two rounds before any broker died, while
#: broker 2 was away, while both were, and at the end.
_KEPT: Final = tuple(start + second for start in (1795232190, 1795232209, 1795232221, 1795232252) for second in (0, 1))
_RECORD: Final = re.compile(r"^\[\d{4}-\d\d-\d\d ")
_TOPIC: Final = re.compile(rf"(?<![\w.-])({'|'.join(COPIES)})(?![\w.])")
_ALSO: Final = ("broker-*/meta.properties", "broker-*/checkpoints/*/*", "broker-*/leader-epoch-checkpoint/*")


def write_incident(folder: Path) -> Path:
    """Write the incident's files below ``folder``, and return where."""
    text = _thinned(CaptureText.read(unpack(CAPTURE, folder / "once", without=TRUTH), _ALSO))
    bends, ids = list(_bends(text)), _topic_ids(text)
    target = folder / "incident"
    for name in text.files:
        if "/leader-epoch-checkpoint/" in name:
            for copy in range(_copies(name)):
                _write(target / _named(name, copy, ids), text.files[name])
        elif "/checkpoints/" in name:
            _write(target / name, _checkpoint(text.files[name]))
        else:
            _write(target / name, _records(text, name, bends, ids))
    return target


def _thinned(text: CaptureText) -> CaptureText:
    kept = {}
    for name, lines in text.files.items():
        taken_ms = Path(name).stem
        if not taken_ms.isdigit() or int(taken_ms) // 1000 in _KEPT:
            kept[name] = tuple(line for line in lines if _OF_THE_SCENARIO not in line)
    return CaptureText(kept)


def _bends(text: CaptureText) -> Iterator[Edits]:
    subject = Subject.of(CAPTURE, text)
    for places in BENDS:
        yield next(bend.edits for bend in places(subject) if bend.partition and bend.partition[0] == BENT)


def _topic_ids(text: CaptureText) -> dict[str, str]:
    topics = {f"/brokers/topics/{topic}": topic for topic in COPIES}
    last = rows_of(text.snapshots()[-1][1])
    return {json.loads(row["data"])["topic_id"]: topics[row["path"]] for row in last if row["path"] in topics}


def _records(text: CaptureText, name: str, bends: list[Edits], ids: dict[str, str]) -> Iterator[str]:
    """The lines of a log or a snapshot, each record with those that go on with it as often as there are its topics."""
    lines = text.files[name]
    starts = [at for at, line in enumerate(lines) if not at or name.endswith(".jsonl") or _RECORD.match(line)]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        numbers = range(start + 1, end + 1)
        whole = "\n".join(lines[start:end])
        many = _copies(whole)
        if not many:
            yield whole
        for copy in range(many):
            bent = copy // COPIES_OF_A_BEND
            edits = bends[bent] if bent < len(bends) else {}
            changed = [edits.get((name, number), lines[number - 1]) for number in numbers]
            if any(line is not None for line in changed):
                yield _named("\n".join(line for line in changed if line is not None), copy, ids)


def _checkpoint(lines: tuple[str, ...]) -> Iterable[str]:
    """A checkpoint file: its version, how many rows follow, the rows, each of which names a topic."""
    if len(lines) < 2:
        return lines
    rows = [_TOPIC.sub(rf"\1.{copy}", row) for row in lines[2:] for copy in range(_copies(row))]
    return lines[0], str(len(rows)), *rows


def _copies(text: str) -> int:
    return max((COPIES[topic] for topic in _TOPIC.findall(text)), default=0)


def _named(text: str, copy: int, ids: dict[str, str]) -> str:
    """With the names and ids of one copy of its topics; of a topic that has fewer copies these in turn."""
    for topic_id, topic in ids.items():
        if topic_id in text:
            own = hashlib.md5(f"{topic_id}{copy % COPIES[topic]}".encode(), usedforsecurity=False).digest()
            text = text.replace(topic_id, base64.urlsafe_b64encode(own).decode().rstrip("="))
    return _TOPIC.sub(lambda found: f"{found[1]}.{copy % COPIES[found[1]]}", text)


def _write(place: Path, lines: Iterable[str]) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
