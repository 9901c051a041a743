"""A KRaft cluster of which only logs are given: every state that a line prints, none beside, and in time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest

from tests.support.captures.packed import extract
from tests.support.captures.text import CaptureText
from tests.support.evidence.partitions import plain_capture
from tests.support.kraft_logs import compared, misread
from tests.support.lakes.kraft import LIFECYCLE, Recorded


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return Recorded(extract(LIFECYCLE, tmp_path_factory.mktemp("lifecycle")))


def logs(recorded: Recorded, is_given: Callable[[str, str], bool]) -> CaptureText:
    """The lines that are given, of these files' names."""
    files = CaptureText.read(recorded.folder).files
    return CaptureText(
        {
            name: tuple(line for line in lines if is_given(name, line))
            for name, lines in files.items()
            if "/logs/" in name
        }
    )


def number_of_states(text: CaptureText) -> int:
    return sum(len(case.decided) for case in plain_capture(text, znodes=False).fold().values())


def test_all_lines_tell_every_state(recorded: Recorded) -> None:
    text = logs(recorded, lambda name, line: True)
    assert misread(text, recorded) == []
    once = [key for key in recorded.states if key[0] != "payments"]
    states = {(key[0], key[2], compared(state)) for key in once for _, state in recorded.states[key]}
    found = {
        (topic, number, compared(span.value))
        for (topic, number), case in plain_capture(text, znodes=False).fold().items()
        if topic != "payments"
        for span in case.decided
    }
    assert found == states


@pytest.mark.parametrize(
    ("given", "least"),
    [
        pytest.param(lambda name, line: "DEBUG" not in line, 30, id="as Kafka logs by default"),
        pytest.param(lambda name, line: "broker-10" not in name, 30, id="of brokers, not of controllers"),
        pytest.param(lambda name, line: "broker-10" in name, 30, id="of controllers"),
        pytest.param(lambda name, line: "broker-1/" in name, 10, id="of one broker"),
    ],
)
def test_fewer_lines_tell_what_they_print(given: Callable[[str, str], bool], least: int, recorded: Recorded) -> None:
    text = logs(recorded, given)
    assert misread(text, recorded) == []
    assert number_of_states(text) >= least


#: What a controller of 4.1.1 and one of 4.2.0 logged: a partition that was moved to brokers that had none of it, where
#: the end of that, its ISR and its leader are one record; and one whose last replica in sync was given up.
MOVED = (
    "isr: [2, 3], leader: 2",
    "replicas: [2, 3] -> [1, 2, 3], removingReplicas: [] -> [2, 3], addingReplicas: [] -> [1]",
    "replicas: [1, 2, 3] -> [1], isr: [2, 3] -> [1], removingReplicas: [2, 3] -> [], addingReplicas: [1] -> [],"
    " leader: 2 -> 1, leaderEpoch: 0 -> 1",
    "replicas: [1] -> [2, 1], removingReplicas: [] -> [1], addingReplicas: [] -> [2]",
    "replicas: [2, 1] -> [2], isr: [1] -> [2], removingReplicas: [1] -> [], addingReplicas: [2] -> [], leader: 1 -> 2,"
    " leaderEpoch: 1 -> 2",
)
GIVEN_UP = (
    "isr: [1, 2], leader: 1",
    "isr: [1, 2] -> [1]",
    "isr: [1] -> [], leader: 1 -> -1, leaderEpoch: 0 -> 1, elr: [] -> [1], lastKnownElr: [] -> [1]",
    "isr: [] -> [2], leader: -1 -> 2, leaderRecoveryState: RECOVERED -> RECOVERING, leaderEpoch: 1 -> 2,"
    " elr: [1] -> []",
)


def lines_of(changes: Sequence[str]) -> Iterator[str]:
    """The first of them is how the partition was created."""
    speaker, of = "[QuorumController id=101]", "orders-1 with topic ID sV1yCXYmSOuG_X-WQNXEhw"
    for number, change in enumerate(changes):
        what = f"partition change for {of}: {change}, partitionEpoch: {number - 1} -> {number}"
        if number == 0:
            isr, leader = change.removeprefix("isr: ").split(", leader: ")
            what = (
                f"Replayed PartitionRecord for new partition {of} and PartitionRegistration(replicas={isr}, isr={isr},"
                f" removingReplicas=[], addingReplicas=[], elr=[], lastKnownElr=[], leader={leader},"
                " leaderRecoveryState=RECOVERED, leaderEpoch=0, partitionEpoch=0)."
            )
        elif "RECOVERING" in change:
            what = f"UNCLEAN {what}"
        name = "org.apache.kafka.controller.ReplicationControlManager"
        yield f"[2026-11-26 04:57:{30 + number},000] INFO {speaker} {what} ({name})"


@pytest.mark.parametrize(("changes", "unclean"), [(MOVED, [None, None]), (GIVEN_UP, [True])], ids=["moved", "given up"])
def test_an_election_is_unclean_where_the_controller_says_so(
    changes: Sequence[str], unclean: list[bool | None]
) -> None:
    """By its lines alone a leader from outside of the ISR before may have been added by a reassignment (R08)."""
    plain = plain_capture(CaptureText({"broker-101/logs/controller.log": tuple(lines_of(changes))}), znodes=False)
    (case,) = plain.fold().values()
    assert [one.is_unclean for one in case.elections if one.observed_leader >= 0][1:] == unclean
    accused = [(finding.rule_id, finding.severity) for _, finding in plain.findings() if finding.severity != "info"]
    assert accused == [("R08", "warning")] * unclean.count(True)
