"""The questions that the evidence answers, and what is open without each kind of evidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reconstruct.findings.rule import EvidenceKind

#: The questions that missing evidence leaves open, by their number.
QUESTIONS: Final[Mapping[int, str]] = {
    2: "which writes with acks=all could not succeed",
    3: "who shrank each ISR, and how far behind the follower was",
    4: "whose ISRs flap",
    5: "which elections were unclean, and what each lost",
    6: "whether a high watermark went back and records were cut off",
    7: "which replicas disagree below the high watermark",
    8: "how long a change of controller took",
    9: "whether a deposed controller still sent or wrote",
    10: "which leaders were stuck on a stale znode version",
    11: "how late each broker learned each change",
    12: "which requests were ignored, and whether rightly",
    13: "whether a broker's cache holds what was never decided",
    14: "which reassignments are stuck, and on which replica",
    15: "which deletions are stuck, and why",
    16: "which topics were created again",
    18: "how each broker stopped and came back",
    19: "whether a broker led with a short log",
    20: "which leaders a controlled shutdown left behind",
    21: "what a hard restart would cut off",
    22: "where each replica's log ended, and which records are at risk",
    23: "which disks or log directories failed",
}
#: Without a kind of evidence: why something is not known, and the questions that are left open.
UNKNOWN_WITHOUT: Final[Mapping[EvidenceKind, tuple[str, tuple[int, ...]]]] = {
    EvidenceKind.STATE_CHANGE_LOG: (
        "what was received there about leaders and ISRs, and what a controller there decided and sent, is not known",
        (9, 11, 12, 13, 15),
    ),
    EvidenceKind.CONTROLLER_LOG: (
        "when a controller was there, and why it acted, is known only from other sources",
        (8, 14, 15, 18, 20),
    ),
    EvidenceKind.SERVER_LOG: (
        "why ISRs changed there, what was cut off, and where logs ended at a start is not known",
        (3, 4, 6, 10, 18, 19, 23),
    ),
    EvidenceKind.HIGH_WATERMARK_CHECKPOINT: (
        "the high watermarks that a start there would begin with are not known",
        (6, 21),
    ),
    EvidenceKind.LEADER_EPOCH_CHECKPOINT: (
        "from which offset on each leader's records are held there is not known",
        (7,),
    ),
    EvidenceKind.LOG_END: (
        "where logs ended there is known only as far as lines of logs and checkpoints limit it",
        (22,),
    ),
    EvidenceKind.SERVER_PROPERTIES: (
        "whether unclean elections were allowed, the lag limits and min.insync.replicas are not known",
        (2, 5),
    ),
    EvidenceKind.ZNODES: ("what was decided is known only as far as logs tell it", (9, 16)),
    EvidenceKind.ZNODE_TRANSACTION_LOG: (
        "of several writes between two snapshots only the last is seen, and who wrote is not told",
        (9,),
    ),
}
