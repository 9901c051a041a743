"""What a rule is: a promise of Kafka's, what it is judged from, and the functions that judge it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from ingest.lake.tables.bronze import SourceKind
from reconstruct.findings.divergences import DivergenceType
from reconstruct.model.versions import OLDEST, KafkaVersion

#: Judges of one room take the same: what the room judges, and the verdicts that they add to.
Judge = Callable[..., Any]


class EvidenceKind(StrEnum):
    """What rules are judged from: a kind of source, or several (:mod:`reconstruct.coverage.limits`) of which each
    will do."""

    STATE_CHANGE_LOG = SourceKind.STATE_CHANGE_LOG
    CONTROLLER_LOG = SourceKind.CONTROLLER_LOG
    SERVER_LOG = SourceKind.SERVER_LOG
    HIGH_WATERMARK_CHECKPOINT = SourceKind.REPLICATION_OFFSET_CHECKPOINT
    LEADER_EPOCH_CHECKPOINT = SourceKind.LEADER_EPOCH_CHECKPOINT
    #: where logs ended: segments or probes.
    LOG_END = "log_end"
    SERVER_PROPERTIES = SourceKind.SERVER_PROPERTIES
    #: snapshots or transaction logs.
    ZNODES = "znodes"
    ZNODE_TRANSACTION_LOG = SourceKind.ZNODE_TRANSACTION_LOG
    METADATA_LOG = SourceKind.METADATA_LOG


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: its id, what it promises, Kafka's class, KIP or issue that it comes from, and the table it is about.

    ``needs`` is the evidence without which it is left open, in whole or in part; of a rule without any, each source
    that shows states will do. ``since`` is the first release that promises it: what an older one did by design is no
    divergence there. ``reads_trace``: it is judged from lines of state-change.log that INFO hides.
    ``reads_line_order``: from the order of the lines of state-change.log, or from what it does not say.

    ``judges`` are those of one room, which may have several rules each; they are called in the order of the room's
    rules, which is that of its findings.
    """

    rule_id: str
    promise: str
    source: str
    table: str
    needs: tuple[EvidenceKind, ...] = ()
    since: KafkaVersion = OLDEST
    reads_trace: bool = False
    reads_line_order: bool = False
    judges: tuple[Judge, ...] = ()

    @property
    def divergence_types(self) -> tuple[DivergenceType, ...]:
        """The kinds of findings that show it broken."""
        return tuple(kind for kind in DivergenceType if self.rule_id in kind.rules)

    def judged_by(self, *judges: Judge) -> Rule:
        """The rule as another room judges it."""
        return replace(self, judges=judges)


def judge(rules: Iterable[Rule], evidence: Any, *beside: Any) -> None:
    """Call the judges of a room's rules, each once, in the order of the rules, with what the room judges and with the
    verdicts that they add to."""
    for one in dict.fromkeys(judge for rule in rules for judge in rule.judges):
        one(evidence, *beside)
