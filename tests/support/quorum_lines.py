"""What nodes of a quorum log, told in a few words: ``1 Follower 5 of 2`` becomes the line of a release.

One line of the script a second. ``of`` names the leader, ``voted`` the candidate that the node has voted for;
``1 stops`` ends the process; what stands behind a colon is logged as it is. The forms are those of
``EpochState.toString``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from reconstruct.quorum.evidence import QuorumFact
from tests.support.quorum import fact_of
from tests.support.quorum_records import SECOND

#: Releases of which each prints its states in a way of its own.
RELEASES: Final = (3.3, 3.5, 3.9, 4.0, 4.3)
_STATE: Final = re.compile(
    r"(?P<node>\d) (?P<name>[A-Z]\w+) (?P<epoch>\d+)(?: of (?P<leader>\d))?(?: voted (?P<voted>\d))?"
)
_OTHER: Final = re.compile(r"(?P<node>\d)(?: (?P<stops>stops)|: (?P<text>.+))")
#: Lines of no state, by their logger.
_LOGGERS: Final = {"Did not receive": "LeaderState", "Completed": "QuorumState"}


def facts_of_script(script: str, release: float) -> list[QuorumFact]:
    """What the program takes from the lines that nodes of the release would log."""
    found = (
        fact_of(text, logger, round(second * SECOND), f"{node}:{second}")
        for second, node, logger, text in _lines(script, release)
    )
    return [fact for fact in found if fact is not None]


def _lines(script: str, release: float) -> Iterator[tuple[int, int, str, str]]:
    before: dict[int, str] = {}
    for second, line in enumerate(filter(None, map(str.strip, script.splitlines())), 1):
        other, read = _OTHER.fullmatch(line), _STATE.fullmatch(line)
        if other is not None:
            node = int(other["node"])
            if other["stops"]:
                before.pop(node)
                continue
            text = other["text"]
        else:
            assert read is not None, line
            node = int(read["node"])
            state = _printed(release, node, read["name"], int(read["epoch"]), read["leader"], read["voted"])
            origin = before.get(node, "null")
            # a resignation said it since 3.6 only
            is_told = release >= 3.6 or (release == 3.5 and (read["name"] != "Resigned" or origin == "null"))
            text = f"Completed transition to {state}" + (f" from {origin}" if is_told else "")
            before[node] = state
        logger = next((name for begin, name in _LOGGERS.items() if text.startswith(begin)), "KafkaRaftClient")
        speaker = f"[RaftManager {'nodeId' if release < 3.6 else 'id'}={node}] "
        yield second, node, f"org.apache.kafka.raft.{logger}", speaker + text


def _printed(release: float, node: int, name: str, epoch: int, leader: str | None, voted: str | None) -> str:
    is_new = release >= 4
    key = None if voted is None else f"ReplicaKey(id={voted}, directoryId=<undefined>)"
    optional_key = "Optional.empty" if key is None else f"Optional[{key}]"
    optional_leader = "OptionalInt.empty" if leader is None else f"OptionalInt[{leader}]"
    votes = f"EpochElection[voterStates={{{node}=VoterState(state=GRANTED)}}]"
    local = f"ReplicaKey(id={node}, directoryId=HduHWF4V7Orhu5CldM-idw)"
    voters, timeout, mark = "voters=[1, 2, 3]", "electionTimeoutMs=1000", "highWatermark=Optional.empty"
    match name:
        case "Voted" | "Unattached" if is_new:
            fields = [
                f"epoch={epoch}",
                f"leaderId={optional_leader}",
                f"votedKey={optional_key}",
                voters,
                timeout,
                mark,
            ]
            return f"UnattachedState({', '.join(fields)})"
        case "Voted" if release < 3.9:
            return f"Voted(epoch={epoch}, votedId={voted}, {voters}, {timeout})"
        case "Voted" | "Unattached":
            vote = f"votedKey={key or 'null'}, " if release >= 3.9 else ""
            return f"Unattached(epoch={epoch}, {vote}{voters}, {timeout}, {mark})"
        case "Follower":
            named = (
                f"leader={leader}, leaderEndpoints=Endpoints(endpoints={{}})"
                if release >= 3.9
                else f"leaderId={leader}"
            )
            vote = f", votedKey={optional_key}" if is_new else ""
            return f"FollowerState(fetchTimeoutMs=2000, epoch={epoch}, {named}{vote}, {voters}, {mark})"
        case "Prospective":
            assert is_new
            named = f"leaderId={optional_leader}, votedKey={optional_key}"
            return f"ProspectiveState(epoch={epoch}, {named}, epochElection={votes}, {timeout}, {mark})"
        case "Candidate":
            directory = ", localDirectoryId=HduHWF4V7Orhu5CldM-idw" if release >= 3.9 else ""
            retries = ", retries=1" if release < 4.1 else ""
            return f"CandidateState(localId={node}{directory}, epoch={epoch}{retries}, {mark}, {timeout})"
        case "Leader":
            of = f"localVoterNode=VoterNode(voterKey={local}, listeners=Endpoints(endpoints={{}}))"
            of = of if release >= 4.1 else f"localReplicaKey={local}" if release >= 3.9 else f"localId={node}"
            return f"Leader({of}, epoch={epoch}, epochStartOffset=0, {mark}, voterStates={{}})"
        case "Resigned":
            return f"ResignedState(localId={node}, epoch={epoch}, {voters}, {timeout}, preferredSuccessors=[])"
    raise AssertionError(name)
