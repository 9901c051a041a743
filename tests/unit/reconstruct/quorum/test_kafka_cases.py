"""What Kafka's own cases of elections expect (QuorumStateTest, CandidateStateTest, ProspectiveStateTest,
ResignedStateTest, FollowerStateTest, KafkaRaftClientTest, KafkaRaftClientPreVoteTest; 3.3 to 4.3), as what is left of
them: the lines that the node logs in each release's words, and what is told of the quorum. Each case has Kafka's name.

Which cases are left out and why is in ``docs/kraft-cases.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from reconstruct.metadata_log.evidence import ClusterLog
from reconstruct.quorum.timeline import QuorumSpan, quorum_timeline
from tests.support.quorum_lines import RELEASES, facts_of_script

OLD, NEW = 3.9, 4.0
LOST = (
    "Did not receive fetch request from the majority of the voters within 3000ms. Current fetched voters are [], and"
    " voters are [1, 2, 3]"
)
STOPPING = "Beginning graceful shutdown"
DOUBT_OLD, DOUBT = "Become candidate due to fetch timeout", "Transitioning to Prospective state due to fetch timeout"


@dataclass(frozen=True)
class Case:
    """``expected``: ``E: election`` where nobody leads yet, ``E: N leads`` with why that ended, ``E: nobody leads``
    after a resignation; ``?`` marks what is inferred. ``since`` and ``until`` are releases."""

    names: str
    script: str
    expected: Sequence[str]
    since: float = RELEASES[0]
    until: float = RELEASES[-1]


def told(spans: Sequence[QuorumSpan]) -> list[str]:
    found = []
    for span in spans:
        value, mark = span.interval.value, "?" if span.interval.inferred_from else ""
        what = {"election_started": "election", "leader_resigned": "nobody leads"}.get(value.began_by)
        reason = span.leadership_end.end_reason
        found.append(f"{value.epoch}: {what or f'{value.leader_id} leads'}{mark}" + (f", {reason}" if reason else ""))
    return found


#: How a node begins, by what its quorum-state says.
BEGINS = (
    Case("testInitializePrimordialEpoch testInitializeAsOnlyVoter", "1 Unattached 0", []),
    Case("testInitializeAsUnattached testInitializeWithCorruptedStore", "1 Unattached 5", []),
    Case("testInitializeAsFollower testInitializeAsFollowerEmptyLog", "1 Follower 5 of 2", ["5: 2 leads?"]),
    Case("testInitializeVotedAndLeaderAreSame", "1 Follower 5 of 2 voted 2", ["5: 2 leads?"], NEW),
    Case("testInitializeVotedAndLeaderAreDifferent", "1 Follower 5 of 2 voted 3", ["5: 2 leads?"], NEW),
    Case("testInitializeAsUnattachedWhenMissingEndpoints", "1 Unattached 5 of 2", ["5: 2 leads?"], NEW),
    Case("testInitializeAsVotedNoLeader testInitializeAsVoted", "1 Voted 5 voted 2", []),
    Case("testInitializeAsResignedCandidate testInitializeAsCandidateFromStateStore", "1 Candidate 5", []),
    Case(
        "testInitializeAsResignedLeader testInitializeAsResignedLeaderFromStateStore",
        "1 Resigned 5\n2 Follower 5 of 1",
        ["5: 1 leads?, process_ended", "5: nobody leads?"],
        since=3.5,
    ),
    Case(
        "testInitializeAsResignedLeader",  # of 3.3 and 3.4 nothing tells a start from a resignation
        "1 Resigned 5\n2 Follower 5 of 1",
        ["5: 1 leads?, superseded", "5: nobody leads?"],
        until=3.3,
    ),
)
UNATTACHED = (
    Case("testUnattachedToUnattached", "1 Unattached 0\n1 Unattached 5", ["5: election"]),
    Case(
        "testUnattachedToUnattachedVotedSameEpoch testUnattachedVotedSameEpoch",
        "1 Unattached 0\n1 Unattached 5\n1 Voted 5 voted 2",
        ["5: election"],
    ),
    Case(
        "testUnattachedToUnattachedVotedHigherEpoch testUnattachedVotedHigherEpoch",
        "1 Unattached 0\n1 Voted 8 voted 2",
        ["8: election"],
        until=OLD,
    ),
    Case(
        "testUnattachedToFollowerSameEpoch testUnattachedAsVoterCanBecomeFollowerAfterFindingLeader",
        "1 Unattached 5\n1 Follower 5 of 2",
        ["5: 2 leads?"],
    ),
    Case("testUnattachedToFollowerHigherEpoch", "1 Unattached 5\n1 Follower 8 of 2", ["8: 2 leads?"]),
    Case("testUnattachedToProspective", "1 Unattached 5\n1 Prospective 5", [], NEW),
    Case("testUnattachedToCandidate", "1 Unattached 5\n1 Candidate 6", ["6: election"], until=OLD),
    Case("testUnattachedVotedToUnattachedHigherEpoch", "1 Voted 5 voted 2\n1 Unattached 6", ["6: election"]),
    Case("testUnattachedVotedToFollowerSameEpoch", "1 Voted 5 voted 2\n1 Follower 5 of 3", ["5: 3 leads?"]),
    Case("testUnattachedVotedToFollowerHigherEpoch", "1 Voted 5 voted 2\n1 Follower 8 of 3", ["8: 3 leads?"]),
    Case("testUnattachedVotedToProspective", "1 Voted 5 voted 2\n1 Prospective 5 voted 2", [], NEW),
    Case("testUnattachedVotedToCandidate", "1 Voted 5 voted 2\n1 Candidate 6", ["6: election"], until=OLD),
    Case("testUnattachedWithLeaderToProspective", "1 Unattached 5 of 2\n1 Prospective 5 of 2", ["5: 2 leads?"], NEW),
    Case(
        "testUnattachedWithLeaderNoEndpointToAndFromProspective"
        " testProspectiveLosesElectionHasLeaderButMissingEndpoint",
        "1 Unattached 5 of 2\n1 Prospective 5 of 2\n1 Unattached 5 of 2\n1 Prospective 5 of 2",
        ["5: 2 leads?"],
        NEW,
    ),
)
FOLLOWER = (
    Case(
        "testFollowerToUnattachedHigherEpoch",
        "1 Follower 5 of 2\n1 Unattached 6",
        ["5: 2 leads?, superseded", "6: election"],
    ),
    Case(
        "testFollowerToUnattachedVotedHigherEpoch testFollowerVotedToUnattachedHigherEpoch",
        "1 Follower 5 of 2\n1 Unattached 6\n1 Voted 6 voted 3",
        ["5: 2 leads?, superseded", "6: election"],
    ),
    Case("testFollowerToFollowerSameEpochAndMoreEndpoints", "1 Follower 5 of 2\n1 Follower 5 of 2", ["5: 2 leads?"]),
    Case(
        "testFollowerToFollowerHigherEpoch testFollowerVotedToFollowerHigherEpoch",
        "1 Follower 5 of 2\n1 Follower 8 of 3",
        ["5: 2 leads?, superseded", "8: 3 leads?"],
    ),
    Case("testFollowerToProspective", "1 Follower 5 of 2\n1 Prospective 5 of 2", ["5: 2 leads?"], NEW),
    Case(
        "testFollowerToCandidate testVoterBecomeCandidateAfterFetchTimeout testFetchTimeoutExpiration",
        f"1 Follower 5 of 2\n1: {DOUBT_OLD}\n1 Candidate 6",
        ["5: 2 leads?, voters_timed_out", "6: election"],
        until=OLD,
    ),
    Case(
        "testVoterBecomeProspectiveAfterFetchTimeout testFetchTimeoutExpiration",
        f"1 Follower 5 of 2\n1: {DOUBT}\n1 Prospective 5 of 2\n1 Candidate 6",
        ["5: 2 leads?, voters_timed_out", "6: election"],
        NEW,
    ),
    Case(
        "testFollowerGracefulShutdown testObserverGracefulShutdown",
        f"1 Follower 5 of 2\n1: {STOPPING}\n3 Unattached 6",
        ["5: 2 leads?"],
    ),
)
PROSPECTIVE = (
    Case(
        "testProspectiveToUnattachedInSameEpoch testProspectiveTransitionsToUnattachedOnElectionFailure",
        "1 Unattached 5\n1 Prospective 5\n1 Unattached 5\n1 Prospective 5",
        [],
        NEW,
    ),
    Case(
        "testProspectiveToUnattachedInHigherEpoch",
        "1 Unattached 5\n1 Prospective 5\n1 Unattached 6",
        ["6: election"],
        NEW,
    ),
    Case(
        "testProspectiveToUnattachedVoted",
        "1 Unattached 5\n1 Prospective 5\n1 Unattached 6\n1 Voted 6 voted 2",
        ["6: election"],
        NEW,
    ),
    Case(
        "testProspectiveToUnattachedWithLeaderInHigherEpoch",
        "1 Unattached 5\n1 Prospective 5\n1 Unattached 8 of 2",
        ["8: 2 leads?"],
        NEW,
    ),
    Case(
        "testProspectiveToFollowerSameEpoch testProspectiveWithoutLeaderTransitionsToFollower"
        " testProspectiveReceivesBeginQuorumRequest",
        "1 Unattached 5\n1 Prospective 5\n1 Follower 5 of 2",
        ["5: 2 leads?"],
        NEW,
    ),
    Case(
        "testProspectiveToFollowerHigherEpoch",
        "1 Unattached 5\n1 Prospective 5\n1 Follower 8 of 2",
        ["8: 2 leads?"],
        NEW,
    ),
    Case(
        "testProspectiveToCandidate testPreVoteNotSupportedByRemote testThreeNodeQuorumVoteGranted",
        "1 Unattached 5\n1 Prospective 5\n1 Candidate 6",
        ["6: election"],
        NEW,
    ),
    Case(
        "testProspectiveVotedToUnattachedInSameEpoch",
        "1 Unattached 5\n1 Prospective 5 voted 2\n1 Voted 5 voted 2",
        [],
        NEW,
    ),
    Case(
        "testProspectiveVotedToAndFromFollowerSameEpoch",
        "1 Unattached 5\n1 Prospective 5 voted 2\n1 Follower 5 of 3 voted 2\n1 Prospective 5 of 3 voted 2",
        ["5: 3 leads?"],
        NEW,
    ),
    Case(
        "testProspectiveVotedToCandidate",
        "1 Unattached 5\n1 Prospective 5 voted 2\n1 Candidate 6",
        ["6: election"],
        NEW,
    ),
    Case(
        "testProspectiveWithLeaderToUnattachedInSameEpoch testProspectiveVotedWithLeaderToUnattachedInSameEpoch",
        "1 Follower 5 of 2\n1 Prospective 5 of 2\n1 Unattached 5 of 2",
        ["5: 2 leads?"],
        NEW,
    ),
    Case(
        "testProspectiveWithLeaderToUnattachedInHigherEpoch",
        "1 Follower 5 of 2\n1 Prospective 5 of 2\n1 Unattached 6",
        ["5: 2 leads?, superseded", "6: election"],
        NEW,
    ),
    Case(
        "testProspectiveWithLeaderToUnattachedWithLeaderInHigherEpoch",
        "1 Follower 5 of 2\n1 Prospective 5 of 2\n1 Unattached 8 of 3",
        ["5: 2 leads?, superseded", "8: 3 leads?"],
        NEW,
    ),
    Case(
        "testProspectiveWithLeaderToFollowerSameEpoch testProspectiveWithLeaderTransitionsToFollower",
        f"1 Follower 5 of 2\n1: {DOUBT}\n1 Prospective 5 of 2\n1 Follower 5 of 2\n2: {STOPPING}\n3 Follower 6 of 1",
        ["5: 2 leads?, shut_down", "6: 1 leads?"],
        NEW,
    ),
    Case(
        "testProspectiveWithLeaderToFollowerHigherEpoch",
        "1 Follower 5 of 2\n1 Prospective 5 of 2\n1 Follower 8 of 3",
        ["5: 2 leads?, superseded", "8: 3 leads?"],
        NEW,
    ),
    Case(
        "testProspectiveWithLeaderToCandidate",
        "1 Follower 5 of 2\n1 Prospective 5 of 2\n1 Candidate 6",
        ["5: 2 leads?, superseded", "6: election"],
        NEW,
    ),
)
CANDIDATE = (
    Case(
        "testCandidateToUnattachedHigherEpoch",
        "1 Unattached 0\n1 Candidate 1\n1 Unattached 5",
        ["1: election", "5: election"],
    ),
    Case(
        "testCandidateToUnattachedVoted",
        "1 Unattached 0\n1 Candidate 1\n1 Voted 5 voted 2",
        ["1: election", "5: election"],
        until=OLD,
    ),
    Case(
        "testCandidateToFollowerSameEpoch testCandidateToFollower testVoteResponseIgnoredAfterBecomingFollower",
        "1 Unattached 0\n1 Candidate 1\n1 Follower 1 of 2",
        ["1: election", "1: 2 leads?"],
    ),
    Case(
        "testCandidateToFollowerHigherEpoch",
        "1 Unattached 0\n1 Candidate 1\n1 Follower 5 of 2",
        ["1: election", "5: 2 leads?"],
    ),
    Case(
        "testCandidateToProspective testCandidateWaitsRestOfElectionTimeoutAfterElectionLoss"
        " testCandidateElectionTimeout testTwoNodeQuorumVoteRejected testThreeNodeQuorumVoteRejected",
        "1 Unattached 0\n1 Prospective 0\n1 Candidate 1\n1 Prospective 1 voted 1\n1 Candidate 2",
        ["1: election", "2: election"],
        NEW,
    ),
    Case(
        "testCandidateToCandidate testRetryElection testTwoNodeQuorumVoteRejected testThreeNodeQuorumVoteRejected",
        "1 Unattached 0\n1 Candidate 1\n1 Candidate 2",
        ["1: election", "2: election"],
        until=OLD,
    ),
    Case(
        "testCandidateToLeader testSingleNodeQuorum testTwoNodeQuorumVoteGranted testThreeNodeQuorumVoteGranted"
        " testInitializeAsUnattachedAndBecomeLeader testInitializeAsCandidateAndBecomeLeader"
        " testInitializeSingleMemberQuorum testInitializeAsOnlyVoterWithEmptyElectionState",
        "1 Unattached 0\n1 Candidate 1\n1 Leader 1",
        ["1: election", "1: 1 leads"],
    ),
    Case(
        "testInitializeAsCandidateAndOnlyVoter testInitializeAsCandidateFromStateStore",
        "1 Candidate 2\n1 Leader 2",
        ["2: 1 leads"],
    ),
)
LEADER = (
    Case(
        "testLeaderToUnattachedHigherEpoch",
        "1 Unattached 0\n1 Candidate 1\n1 Leader 1\n1 Unattached 5",
        ["1: election", "1: 1 leads, superseded", "5: election"],
    ),
    Case(
        "testLeaderToUnattachedVoted",
        "1 Unattached 0\n1 Candidate 1\n1 Leader 1\n1 Voted 5 voted 2",
        ["1: election", "1: 1 leads, superseded", "5: election"],
        until=OLD,
    ),
    Case(
        "testLeaderToFollowerHigherEpoch testLeaderToFollower",
        "1 Unattached 0\n1 Candidate 1\n1 Leader 1\n1 Follower 5 of 2",
        ["1: election", "1: 1 leads, superseded", "5: 2 leads?"],
    ),
    Case(
        "testLeaderToResigned testResignedState testHandleLeaderChangeFiresAfterResignRegistration",
        "1 Unattached 0\n1 Candidate 1\n1 Leader 1\n1 Resigned 1",
        ["1: election", "1: 1 leads, resigned", "1: nobody leads"],
        since=3.5,
    ),
    Case(
        "testLeaderToResigned",  # of 3.3 and 3.4 nothing tells it from a start
        "1 Unattached 0\n1 Candidate 1\n1 Leader 1\n1 Resigned 1",
        ["1: election", "1: 1 leads, superseded", "1: nobody leads?"],
        until=3.3,
    ),
    Case(
        "testLeaderGracefulShutdown testLeaderGracefulShutdownTimeout testGracefulShutdownSingleMemberQuorum",
        f"1 Unattached 0\n1 Candidate 1\n1 Leader 1\n1: {STOPPING}\n1 Resigned 1\n2 Follower 2 of 3",
        ["1: election", "1: 1 leads, shut_down", "1: nobody leads", "2: 3 leads?"],
        since=3.5,
    ),
    Case(
        "testLeaderShouldResignLeadershipIfNotGetFetchRequestFromMajorityVoters testCheckQuorum",
        f"1 Unattached 0\n1 Candidate 1\n1 Leader 1\n1: {LOST}\n1 Resigned 1\n1 Unattached 2",
        ["1: election", "1: 1 leads, majority_lost", "1: nobody leads", "2: election"],
        since=3.9,
    ),
)
RESIGNED = (
    Case(
        "testInitializeAsResignedLeader",
        "1 Unattached 0\n1 Candidate 1\n1 Leader 1\n1 stops\n1 Resigned 1\n2 Follower 2 of 3",
        ["1: election", "1: 1 leads, process_ended", "1: nobody leads?", "2: 3 leads?"],
        since=3.5,
    ),
    Case(
        "testResignedToUnattachedInHigherEpoch testInitializeAsResignedAndUnableToContactQuorum",
        "1 Resigned 2\n1 Unattached 3\n1 Prospective 3\n1 Unattached 3",
        ["2: 1 leads?, process_ended", "2: nobody leads?", "3: election"],
        NEW,
    ),
    Case(
        "testInitializeAsResignedAndBecomeCandidate testInitializeAsLeaderFromStateStoreSingleMemberQuorum"
        " testInitializeAsResignedAndOnlyVoter",
        "1 Resigned 2\n1 Candidate 3\n1 Leader 3",
        ["2: 1 leads?, process_ended", "2: nobody leads?", "3: election", "3: 1 leads"],
        since=3.5,
    ),
    Case(  # KAFKA-18379: a node that had led an epoch follows whoever says that it leads it
        "testResignedToFollowerInSameEpoch",
        "1 Resigned 5\n1 Follower 5 of 2",
        ["5: 1 leads?, process_ended", "5: nobody leads?"],
        NEW,
    ),
    Case(
        "testHandleBeginQuorumEpochAfterUserInitiatedResign",
        "1 Unattached 0\n1 Candidate 1\n1 Leader 1\n1 Resigned 1\n1 Follower 2 of 2",
        ["1: election", "1: 1 leads, resigned", "1: nobody leads", "2: 2 leads?"],
        since=3.5,
    ),
    Case(
        "testElectionTimeoutAfterUserInitiatedResign",
        "1 Unattached 0\n1 Candidate 1\n1 Leader 1\n1 Resigned 1\n1 Candidate 2",
        ["1: election", "1: 1 leads, resigned", "1: nobody leads", "2: election"],
        since=3.5,
        until=OLD,
    ),
    Case(
        "testElectionTimeoutAfterUserInitiatedResign",
        "1 Unattached 0\n1 Candidate 1\n1 Leader 1\n1 Resigned 1\n1 Unattached 2\n1 Prospective 2\n1 Candidate 3",
        ["1: election", "1: 1 leads, resigned", "1: nobody leads", "2: election", "3: election"],
        NEW,
    ),
)
OBSERVER = (
    Case(
        "testObserverUnattachedToFollower testInitializeObserverNoPreviousState",
        "4 Unattached 0\n4 Follower 3 of 1",
        ["3: 1 leads?"],
    ),
    Case(
        "testObserverFollowerToUnattached",
        "4 Follower 3 of 1\n4 Unattached 4",
        ["3: 1 leads?, superseded", "4: election"],
    ),
    Case("testObserverUnattachedToUnattachedVoted testObserverWithIdCanVote", "4 Unattached 5\n4 Voted 5 voted 1", []),
    Case(
        "testObserverLeaderRediscoveryAfterRequestTimeout testObserverLeaderRediscoveryAfterBrokerNotAvailableError",
        "4 Unattached 0\n4 Follower 3 of 1\n4 Follower 3 of 1\n4 Follower 5 of 2",
        ["3: 1 leads?, superseded", "5: 2 leads?"],
    ),
)
CASES = (*BEGINS, *UNATTACHED, *FOLLOWER, *PROSPECTIVE, *CANDIDATE, *LEADER, *RESIGNED, *OBSERVER)


@pytest.mark.parametrize(
    ("case", "release"),
    [
        pytest.param(case, release, id=f"{case.names.split()[0]}-{release}")
        for case in CASES
        for release in RELEASES
        if case.since <= release <= case.until
    ],
)
def test_what_a_node_logs_tells_of_the_quorum(case: Case, release: float) -> None:
    assert told(quorum_timeline(facts_of_script(case.script, release), ClusterLog("c"))) == list(case.expected)
