"""Bugs of Kafka that a finding may be the work of: what each looks like, and which releases have it.

A finding names one only where what it shows is that bug's signature and the cluster's version may have it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from reconstruct.model.versions import OLDEST, KafkaVersion, VersionRange, v


class KnownIssue(NamedTuple):
    """``since`` is the first release that has the bug, ``fixed_in`` the first that has not, None where none has been
    released; findings of ``rules`` show it."""

    since: KafkaVersion
    fixed_in: KafkaVersion | None
    rules: tuple[str, ...]


#: By the number in Kafka's tracker; above each what the bug does, and what it leaves behind.
KNOWN_ISSUES: Final[Mapping[str, KnownIssue]] = {
    # High watermarks are lost when a broker is killed before its replicas could follow: after a kill -9 and a start the
    # checkpoint lacks partitions whose leader was not available, and their high watermark begins at 0.
    "KAFKA-1647": KnownIssue(OLDEST, v(0, 8, 2), ("R30", "R37")),
    # A leader goes on with a stale version of its state and can change its ISR no more: one broker logs 'Cached
    # zkVersion ... not equal to that in zookeeper' for the same version again and again, after its ZooKeeper session
    # was lost.
    "KAFKA-2729": KnownIssue(OLDEST, v(1, 1), ("R24",)),
    # A deposed controller still writes partition states: a state with a lower controller epoch is written after one
    # with a higher.
    "KAFKA-6082": KnownIssue(OLDEST, v(2, 1), ("R12",)),
    # Replicas diverge after two elections in quick succession: lineages disagree below the high watermark after two
    # leader epochs of which one replica saw only one.
    "KAFKA-6361": KnownIssue(v(0, 11), v(2, 0), ("R36",)),
    # Retention deletes segments that hold records above the high watermark: the log start of a leader rises above it.
    "KAFKA-5634": KnownIssue(OLDEST, v(0, 11, 0, 1), ("R31",)),
    # A broker that is gone and back before the controller looks is not noticed: a broker's registration is a new one,
    # and no controller tells of its end or of its start.
    "KAFKA-7235": KnownIssue(OLDEST, v(2, 2), ("R16",)),
    # A replica joins the ISR before it has what the leader's epoch began with: a member of the ISR does not have what
    # the leader showed as committed, after successive elections.
    "KAFKA-7128": KnownIssue(OLDEST, v(2, 1), ("R33",)),
    # A follower that missed a leader epoch, and whose leader is the same after it, cuts nothing: it holds records of
    # the epoch before where the other replicas have the one that it missed.
    "KAFKA-7164": KnownIssue(v(0, 11), v(2, 1), ("R36",)),
    # A new leader without records of its epoch answers that it does not know the epoch: after a clean election a
    # replica cuts its log to its high watermark though both sides know leader epochs, and committed records are gone.
    "KAFKA-7415": KnownIssue(v(0, 11), v(2, 1), ("R35",)),
    # Followers cut their logs to their own high watermark: committed records lost after clean elections, or replicas
    # that keep records of their own.
    "KIP-101": KnownIssue(OLDEST, v(0, 11), ("R33", "R35", "R36")),
    # A leader keeps replicas in the ISR that are assigned no more: the ISR holds a replica that a cancelled or replaced
    # reassignment took away.
    "KAFKA-9672": KnownIssue(v(2, 4), v(3, 0), ("R04",)),
    # A controller stops acting on /admin/reassign_partitions: a reassignment of a partition that is under one already
    # stays in the znode for ever, which is then never deleted and watched no more.
    "KAFKA-9478": KnownIssue(v(2, 4), None, ("R16",)),
    # A follower that empties its log to begin where its leader's does leaves its high watermark where it was: below its
    # log's start.
    "KAFKA-9491": KnownIssue(v(2, 4), v(2, 4, 1), ("R31",)),
    # A leader that is told of its partition again at the same leader epoch begins the epoch anew, where its log ends by
    # then, and forgets what its followers had fetched.
    "KAFKA-13790": KnownIssue(v(2, 8), v(3, 3), ("R36",)),
    # An administrator's tool from before 2.8 writes a topic's znode without its id when it adds partitions; the next
    # controller gives the topic another id, and brokers refuse requests that name it.
    "KAFKA-14190": KnownIssue(v(2, 8), None, ("R21",)),
    # A controller of an older inter-broker protocol writes a topic's znode without its id; the next one gives the topic
    # another, and brokers refuse requests that name it.
    "KAFKA-12835": KnownIssue(v(2, 8), v(2, 8, 1), ("R21",)),
    # A fetch that a follower asked for before it was killed is answered after it came back, and its leader takes it
    # into the ISR by what the process before had: it joins with less than is committed, just after a start.
    "KAFKA-15221": KnownIssue(OLDEST, v(3, 7), ("R38",)),
    # Under min.insync.replicas the high watermark stands still, and a replica joins the ISR that has reached it,
    # however far the log goes on: it leaves again for lag, and so on.
    "KAFKA-19996": KnownIssue(v(3, 7), None, ("R38",)),
}


def any_of(version: VersionRange, *issues: str) -> str | None:
    """Those of several bugs with one signature that the cluster may have, as :func:`known_issue` words each."""
    return ", ".join(filter(None, (known_issue(issue, version) for issue in issues))) or None


def known_issue(issue: str, version: VersionRange) -> str | None:
    """What a finding that shows the signature of ``issue`` names: ``KAFKA-6361 (since 0.11, fixed in 2.0)``; None where
    the cluster cannot have that bug."""
    since, fixed_in, _ = KNOWN_ISSUES[issue]
    if version.high < since or (fixed_in is not None and version.low >= fixed_in):
        return None
    begins = "" if since == OLDEST else f"since {since}, "
    return f"{issue} ({begins}{'not fixed' if fixed_in is None else f'fixed in {fixed_in}'})"
