"""What a scenario plays on: a running cluster that is being captured, and steps that several scenarios take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from jobs.lab.admin import Admin, Partition, State
from jobs.lab.load import Load
from jobs.lab.machines.cluster import Cluster
from jobs.lab.machines.releases import Release
from jobs.lab.recording import Recording

#: Three partitions on three brokers, each with another first replica.
ORDERS: Final = {0: (1, 2, 3), 1: (2, 3, 1), 2: (3, 1, 2)}
_RECORDS: Final = 20


@dataclass(frozen=True)
class Scenario:
    """One incident.

    ``shows`` are the types of divergence that its capture must give, on every release; ``explains`` the rules whose
    errors it provokes: the cluster truly broke them. ``keeps_logs``: at the end its partitions' directories are copied.
    ``kraft`` is None where it plays with and without ZooKeeper, else only so; it plays on releases since ``since`` and
    before ``before``. ``needs_separate_controllers``: it ends most of the brokers, and a quorum is to go on. With
    ``spare_controllers`` the quorum's voters are dynamic, and these are none yet. ``directories`` is how many log
    directories each node has. ``migrates``: its cluster begins with ZooKeeper and leaves it.
    """

    name: str
    title: str
    play: Callable[[Stage], None]
    shows: tuple[str, ...] = ()
    explains: frozenset[str] = frozenset()
    broker_ids: Sequence[int] = (1, 2, 3)
    settings: Mapping[str, str] = field(default_factory=dict)
    keeps_logs: bool = False
    kraft: bool | None = None
    since: tuple[int, ...] = ()
    before: tuple[int, ...] | None = None
    needs_separate_controllers: bool = False
    spare_controllers: int = 0
    directories: int = 1
    migrates: bool = False

    def file_name(self, release: Release) -> str:
        """``lost_disk-3.9.1``: the name of its capture's folder."""
        return f"{self.name.replace('-', '_')}-{release.name}"

    def plays_on(self, release: Release) -> bool:
        is_in_time = self.since <= release.number and (self.before is None or release.number < self.before)
        return is_in_time and self.kraft in (None, release.is_kraft)


@dataclass(frozen=True)
class Stage:
    """A cluster that is up and captured; ``say`` tells a person what happens."""

    cluster: Cluster
    recording: Recording
    say: Callable[[str], None] = lambda sentence: None

    @property
    def admin(self) -> Admin:
        return self.cluster.admin

    def create(
        self, topic: str, assignment: Mapping[int, Sequence[int]], config: Mapping[str, str] | None = None
    ) -> list[Partition]:
        """Create a topic and wait until every replica is in its ISR; gives its partitions."""
        self.say(f"creating topic {topic}")
        self.note("create_topic", topic=topic, assignment=_text(assignment), config=dict(config or {}))
        self.admin.create_topic(topic, assignment, config)
        for number, replicas in assignment.items():
            self.wait_for_isr((topic, number), replicas)
        return [(topic, number) for number in sorted(assignment)]

    def produce(self, partitions: Sequence[Partition], acks: int | str = 1) -> Load:
        """A producer to use as a context: it is producing when the context begins."""
        self.say("producing to " + ", ".join(f"{topic}-{number}" for topic, number in partitions))
        return Load(self.cluster, partitions, acks)

    @contextmanager
    def busy(self, assignment: Mapping[int, Sequence[int]] = ORDERS) -> Iterator[tuple[list[Partition], Load]]:
        """The topic ``orders``, produced to: for a while before what is done in the context, and for one after it."""
        orders = self.create("orders", assignment)
        with self.produce(orders) as load:
            self.let_run(load)
            yield orders, load
            self.let_run(load)

    def let_run(self, load: Load | None = None, partitions: Sequence[Partition] | None = None, rounds: int = 3) -> None:
        """Until a while has been captured, and ``load`` has got on with ``partitions`` (default: all of its)."""
        if load is not None:
            load.wait_for_more(_RECORDS, partitions)
        self.recording.wait_for_rounds(rounds)

    def kill(self, broker_id: int) -> None:
        """SIGKILL, until the session has ended."""
        self.cluster.kill(broker_id)
        self.cluster.wait_until_gone(broker_id)
        self.note("session_ended", broker=broker_id)

    def wait_for_leader(self, partition: Partition, among: Sequence[int]) -> State:
        """Until the partition is led by one of these."""
        return self.cluster.wait_for_state(
            partition, f"is led by one of {list(among)}", lambda state: state.leader in among
        )

    def wait_for_isr(self, partition: Partition, isr: Sequence[int]) -> State:
        """Until the ISR is this, in any order."""
        return self.cluster.wait_for_state(partition, f"has the ISR {sorted(isr)}", lambda s: set(s.isr) == set(isr))

    def note(self, what: str, **details: object) -> None:
        """Add to ``events.jsonl``."""
        self.cluster.events.note(what, **details)


def _text(assignment: Mapping[int, Sequence[int]]) -> dict[str, list[int]]:
    return {str(number): list(replicas) for number, replicas in assignment.items()}
