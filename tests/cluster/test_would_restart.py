"""What ``ask would-restart`` says of a broker just before it is killed, against what then happened to real brokers.

Two brokers are killed, one after the other. What became of each partition is what ZooKeeper, or the quorum by way of
the brokers that are left, answered once it had settled.
"""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from jobs.lab.admin import Partition, State
from jobs.lab.machines.releases import BY_NAME
from jobs.lab.play import Played, play
from jobs.lab.stage import Scenario, Stage
from tests.cluster.conftest import require_jars
from tests.cluster.processes import processes_of

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]

VERSIONS: Final = ("3.9.1", "4.1.1")
KILLED: Final = (2, 1)
MIN_ISR: Final = 2
#: By topic, the replicas of each partition, as many for each; ``strict`` wants two in the ISR.
TOPICS: Final = {
    "moved": {0: (2, 1, 3), 1: (2, 3, 1)},
    "spread": {0: (1, 2, 3), 1: (3, 2, 1)},
    "alone": {0: (2,), 1: (3,)},
    "strict": {0: (1, 2), 1: (3, 1)},
}
PARTITIONS: Final = [(topic, number) for topic, assignment in TOPICS.items() for number in assignment]


def kill_two(stage: Stage) -> None:
    """Brokers 2 and 1 are killed under load; before and after each the state of every partition is noted."""
    for topic, assignment in TOPICS.items():
        stage.create(topic, assignment, {"min.insync.replicas": str(MIN_ISR)} if topic == "strict" else None)
    gone: set[int] = set()
    with stage.produce([("alone", 1)]) as load:
        stage.let_run(load)
        for broker in KILLED:
            before = {partition: _state(stage, partition) for partition in PARTITIONS}
            _note(stage, "before", broker, before)
            time.sleep(2)  # what is asked about is surely over before the broker is
            stage.kill(broker)
            gone.add(broker)
            for partition, state in before.items():
                left = [replica for replica in state.isr if replica not in gone]
                if left:
                    stage.wait_for_leader(partition, left)
                    stage.wait_for_isr(partition, left)
                elif state.leader >= 0:
                    stage.wait_for_leader(partition, (-1,))
            _note(stage, "after", broker, {partition: _state(stage, partition) for partition in PARTITIONS})
            stage.let_run(load)


def _state(stage: Stage, partition: Partition) -> State:
    state = stage.admin.state(partition)
    assert state is not None
    return state


def _note(stage: Stage, what: str, broker: int, states: dict[Partition, State]) -> None:
    named = {f"{topic}-{number}": [state.leader, state.isr] for (topic, number), state in states.items()}
    stage.note(what, killed=broker, states=named)


SCENARIO: Final = Scenario("would-restart", "two brokers are killed", kill_two, needs_separate_controllers=True)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_would_have_happened_is_what_happened(spark: Any, version: str, tmp_path: Path) -> None:
    require_jars(BY_NAME[version])
    played = play(SCENARIO, BY_NAME[version], tmp_path / "lab", say=print)
    assert processes_of(tmp_path) == {}
    noted = _noted(played)
    asked = _lake(spark, played, tmp_path)
    effects = set()
    for broker in KILLED:
        at, before = noted["before", broker]
        _, after = noted["after", broker]
        answer = asked.ask("would-restart", broker=broker, at=datetime.fromtimestamp(at + 0.5, UTC).isoformat())
        rows = {f"{row.topic}-{row.partition_id}": row for row in answer.collect() if row.topic in TOPICS}
        told = {name: _told(row) for name, row in rows.items()}
        print(f"{version}: broker {broker}: {told}")
        assert set(rows) == {f"{t}-{n}" for t, n in PARTITIONS if broker in TOPICS[t][n]}
        assert [
            (name, told[name], before[name], after[name]) for name in rows if not _came_true(rows[name], after)
        ] == []
        effects |= {row.effect for row in rows.values()}
    assert effects >= {"offline", "refuses_writes", "new_leader", "fewer_replicas"}


def _told(row: Any) -> tuple[Any, ...]:
    return row.effect, row.leader, row.next_leader, tuple(row.left_in_isr)


def _came_true(row: Any, after: dict[str, tuple[int, set[int]]]) -> bool:
    """Whether what is said of a partition is what became of it."""
    leader, isr = after[f"{row.topic}-{row.partition_id}"]
    if row.effect in ("offline", "none"):
        return leader == (-1 if row.effect == "offline" else row.leader)
    too_few = row.topic == "strict" and len(isr) < MIN_ISR
    is_as_said = {
        "refuses_writes": too_few,
        "new_leader": not too_few and leader != row.leader,
        "fewer_replicas": not too_few and leader == row.leader,
    }[row.effect]
    return is_as_said and isr == set(row.left_in_isr) and row.next_leader in (None, leader) and leader in isr


def _noted(played: Played) -> dict[tuple[str, int], tuple[float, dict[str, tuple[int, set[int]]]]]:
    """What was noted before and after each kill: the time, s, and the leader and ISR of each partition."""
    events = [json.loads(line) for line in (played.truth / "events.jsonl").read_text().splitlines()]
    return {
        (event["what"], event["killed"]): (
            event["ts"],
            {name: (leader, set(isr)) for name, (leader, isr) in event["states"].items()},
        )
        for event in events
        if event["what"] in ("before", "after")
    }


def _lake(spark: Any, played: Played, folder: Path) -> Any:
    from ingest.lake.delta import Lake
    from ingest.run.pipeline import IngestOptions, ingest_paths
    from kafka_state_replay import open_lake
    from reconstruct.pipeline import reconstruct

    def silent(message: str) -> None:
        """No progress."""

    lake = Lake(spark, str(folder / "lake"))
    ingest_paths(lake, [str(played.capture)], IngestOptions(), silent)
    reconstruct(lake, progress=silent)
    return open_lake(lake.root, spark)
