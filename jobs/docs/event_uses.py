"""Which modules read which event type: found in their code, so that the page cannot say otherwise; and why others are
not read, as the shapes' data says beside what they mean.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final

from ingest.shapes import MEANINGS

_ROOT = Path(__file__).parents[2]
_PACKAGES = ("reconstruct", "dashboards")
#: What a saved question asks of the column event_type.
_ASKED: Final = re.compile(r"\bevent_type (?:=|IN|WHEN)\s*\(?((?:\s*'\w+',?)+)")

#: Why a type is read by no timeline, rule or question, by the word that stands for it under ``not_read``.
REASONS: Final[Mapping[str, str]] = {
    "no_use": "It is known to be of no use to a rule or a question.",
    "of_file": "What it states is taken while files are read, for all records of its file (bronze.ingested_files).",
    "kraft": "It is of a cluster without ZooKeeper, or of a broker that leaves it: what was decided there is read from"
    " the metadata log, and nothing asks for the rest.",
    "announced": "What it announces is logged again, with its outcome, where it happens.",
    "znode": "A znode, or in a cluster without ZooKeeper the metadata log, shows the same, exactly and with its time.",
    "state_change_log": "The states, requests and elections that follow from it are read from state-change.log.",
    "restated": "What a controller holds is known from what it read, decided and sent; its own lists of that would"
    " restate it.",
    "process": "It is about threads, connections, files and counters of one process, of which no rule promises"
    " anything.",
    "client": "It is of a client's request, or of a copy that moves between the directories of one broker, not of a"
    " replica.",
    "asker": "Who asked says that it failed: a follower in its own log (fetch_failed), or a client.",
    "unnamed": "It names none of the partitions that it is about: what comes of it is read of each, when its leader"
    " takes the follower out of the ISR.",
    "cause": "It is the cause of what another record tells, or repeats what that says of an error: the other is read.",
    "epoch_checkpoint": "The leader-epoch-checkpoint shows what it led to, entry by entry, and R36 judges that.",
}


@cache
def event_uses() -> Mapping[str, tuple[str, ...]]:
    """By event type that is read: the rooms (``reconstruct/offsets``) whose modules name it as ``EventType.…``, or
    whose SQL asks for it."""
    names = {name.upper(): name for name in MEANINGS}
    found: dict[str, set[str]] = {}
    for package in _PACKAGES:
        for file in sorted((_ROOT / package).rglob("*.py")):
            room = "/".join(file.relative_to(_ROOT).parts[:2])
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if (
                    isinstance(node, ast.Attribute)
                    and isinstance(node.value, ast.Name)
                    and node.value.id == "EventType"
                ):
                    found.setdefault(names[node.attr], set()).add(room)
        for file in sorted((_ROOT / package).rglob("*.sql")):
            for asked in _ASKED.findall(file.read_text(encoding="utf-8")):
                for name in re.findall(r"\w+", asked):
                    found.setdefault(name, set()).add("/".join(file.relative_to(_ROOT).parts[:2]))
    return {name: tuple(sorted(rooms)) for name, rooms in sorted(found.items())}


@cache
def not_read() -> tuple[tuple[str, str], ...]:
    """Each (event type, reason of :data:`REASONS`) as the shapes' data has it."""
    folder = resources.files("ingest.shapes") / "data"
    texts = [file.read_text(encoding="utf-8") for file in folder.iterdir() if file.name.endswith(".json")]
    declared = [json.loads(text).get("not_read", {}) for text in texts]
    return tuple(sorted((name, why) for reasons in declared for why, names in reasons.items() for name in names))
