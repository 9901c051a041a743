"""What the lines of a quorum's nodes say of it, in plain Python: as Spark gathers it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ingest.shapes import match
from reconstruct.quorum.evidence import QuorumFact, QuorumFactKind
from tests import ROOT

#: Three controllers, of which two were killed: the third lost its majority, and led again when one of them was back.
OUTAGE: Final = ROOT / "tests" / "data" / "kraft-4.3.1-quorum-outage"
_LINE: Final = re.compile(r"\[(?P<time>[^\]]+)\] \w+ (?P<message>.*) \((?P<logger>[\w.$]+)\)$")
_KINDS: Final[Mapping[tuple[str, str | None], QuorumFactKind]] = {
    ("quorum_state_changed", "completed"): QuorumFactKind.STATE,
    ("raft_client_shutdown", "beginning"): QuorumFactKind.STOPPING,
    ("quorum_majority_lost", None): QuorumFactKind.MAJORITY_LOST,
    ("quorum_high_watermark", None): QuorumFactKind.HIGH_WATERMARK,
    ("quorum_election", None): QuorumFactKind.DOUBTED,
}


def facts_of(folder: Path) -> list[QuorumFact]:
    """Of the ``server.log`` of each node; the evidence is ``NODE:LINE``."""
    return [fact for log in sorted(folder.glob("broker-*/logs/server.log")) for fact in _facts(log)]


def _facts(log: Path) -> Iterator[QuorumFact]:
    node = log.parent.parent.name.rpartition("-")[2]
    for number, text in enumerate(log.read_text().splitlines(), 1):
        line = _LINE.match(text)
        assert line is not None, text
        at = datetime.strptime(line["time"], "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=UTC)
        fact = fact_of(line["message"], line["logger"], round(at.timestamp() * 1_000_000), f"{node}:{number}")
        if fact is not None:
            yield fact


def fact_of(message: str, logger: str, at: int, evidence_id: str) -> QuorumFact | None:
    """What one line of a node's ``server.log`` says of the quorum; each line is known."""
    found = match("server_log", logger, message)
    assert found is not None, message
    fields = found.fields
    kind = _KINDS.get((found.event_type, fields.get("step")))
    if kind is None or (kind is QuorumFactKind.DOUBTED and fields.get("reason") != "fetch_timeout"):
        return None
    voters = fields.get("quorum_voters")
    return QuorumFact(
        kind,
        at,
        evidence_id,
        "node_log",
        int(fields["broker_id"]),
        _number(fields, "quorum_epoch"),
        _number(fields, "quorum_leader"),
        None if voters is None else tuple(map(int, voters.split(","))),
        None,
        _number(fields, "metadata_high_watermark") or _number(fields, "metadata_offset"),
        fields.get("quorum_state"),
        fields.get("is_first_state") == "true",
        _number(fields, "previous_quorum_epoch"),
    )


def _number(fields: Mapping[str, str], name: str) -> int | None:
    return int(fields[name]) if name in fields else None
