"""Bugs of Kafka that a finding may be the work of: what each looks like, and which releases have it.

A finding names one only where what it shows is that bug's signature and the cluster's version may have it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from reconstruct.model.versions import NEWEST, OLDEST, KafkaVersion, VersionRange, v


@dataclass(frozen=True, slots=True)
class KnownIssue:
    """A bug: ``since`` is the first release that has it, ``fixed_in`` the first that has not (None: none yet).

    ``signature`` says what is left behind by it, in words; ``rules`` are the rules whose findings show it.
    """

    issue: str
    title: str
    since: KafkaVersion
    fixed_in: KafkaVersion | None
    signature: str
    rules: tuple[str, ...]

    def may_be_in(self, version: VersionRange) -> bool:
        """Whether a cluster of that version range may have the bug."""
        return version.high >= self.since and (self.fixed_in is None or version.low < self.fixed_in)

    def named(self, version: VersionRange) -> str | None:
        """``KAFKA-6082 (up to 2.0)`` for a finding's ``known_issue``; None where the cluster cannot have it."""
        if not self.may_be_in(version):
            return None
        begins = "" if self.since == OLDEST else f"since {self.since}"
        ends = "" if self.fixed_in is None else f"fixed in {self.fixed_in}"
        return f"{self.issue} ({', '.join(part for part in (begins, ends) if part) or f'up to {NEWEST}'})"


_ISSUES: Final = (
    KnownIssue(
        "KAFKA-1647",
        "high watermarks are lost when a broker is killed before its replicas could follow",
        OLDEST,
        v(0, 8, 2),
        "after a kill -9 and a start the checkpoint lacks partitions whose leader was not available, and their high"
        " watermark begins at 0",
        ("R30", "R37"),
    ),
    KnownIssue(
        "KAFKA-2729",
        "a leader goes on with a stale version of its state and can change its ISR no more",
        OLDEST,
        v(1, 1),
        "one broker logs 'Cached zkVersion ... not equal to that in zookeeper' for the same version again and again,"
        " after its ZooKeeper session was lost",
        ("R24",),
    ),
    KnownIssue(
        "KAFKA-6082",
        "a deposed controller still writes partition states",
        OLDEST,
        v(2, 1),
        "a state with a lower controller epoch is written after one with a higher",
        ("R12",),
    ),
    KnownIssue(
        "KAFKA-6361",
        "replicas diverge after two elections in quick succession",
        v(0, 11),
        v(2, 0),
        "lineages disagree below the high watermark after two leader epochs of which one replica saw only one",
        ("R36",),
    ),
    KnownIssue(
        "KAFKA-7235",
        "a broker that is gone and back before the controller looks is not noticed",
        OLDEST,
        v(2, 2),
        "a broker's registration is a new one, and no controller tells of its end or of its start",
        ("R16",),
    ),
    KnownIssue(
        "KAFKA-7128",
        "a replica joins the ISR before it has what the leader's epoch began with",
        OLDEST,
        v(2, 1),
        "a member of the ISR does not have what the leader showed as committed, after successive elections",
        ("R33",),
    ),
    KnownIssue(
        "KAFKA-7415",
        "a new leader without records of its epoch answers that it does not know the epoch",
        v(0, 11),
        v(2, 1),
        "after a clean election a replica cuts its log to its high watermark though both sides know leader epochs, and"
        " committed records are gone",
        ("R35",),
    ),
    KnownIssue(
        "KIP-101",
        "followers cut their logs to their own high watermark",
        OLDEST,
        v(0, 11),
        "committed records lost after clean elections, or replicas that keep records of their own",
        ("R33", "R35", "R36"),
    ),
    KnownIssue(
        "KAFKA-9672",
        "a leader keeps replicas in the ISR that are assigned no more",
        v(2, 4),
        v(3, 0),
        "the ISR holds a replica that a cancelled or replaced reassignment took away",
        ("R04",),
    ),
)

#: The bugs that findings name, by their number in Kafka's tracker.
KNOWN_ISSUES: Final[Mapping[str, KnownIssue]] = {issue.issue: issue for issue in _ISSUES}


def known_issue(issue: str, version: VersionRange) -> str | None:
    """What a finding that shows the signature of ``issue`` names; None where the cluster cannot have that bug."""
    return KNOWN_ISSUES[issue].named(version)
