"""How often a cluster was created again in the same folders: controller epochs fall, its id is another."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from reconstruct.time.line_order import FAR_BACK_US

#: ``/controller_epoch`` of a new cluster after its first election.
FIRST_EPOCH: Final = 1
#: The name of a file behind its folder, or behind the archive that holds it.
_NAME: Final = re.compile(r"[^/!]*$")


@dataclass(frozen=True, slots=True)
class GenerationFact:
    """An election of a controller (its epoch), a line of a controller in its epoch, a statement of the cluster's id, or
    the start of a process; ``at`` in microseconds, ``broker_id`` NULL where nothing says by whom.

    ``is_act``: a line that a controller logged in its epoch, and no election. ``log_file`` is the line's log, NULL for
    a znode. ``is_set_back``: no line; the times of that log jump back by more than its threads overtake each other.
    """

    at: int
    evidence_id: str
    controller_epoch: int | None = None
    stated_cluster_id: str | None = None
    broker_id: int | None = None
    is_act: bool = False
    log_file: str | None = None
    is_set_back: bool = False

    @property
    def log_folder(self) -> str | None:
        """Where the line's log lies: the logs of one folder are of one clock, however many brokers wrote them."""
        return None if self.log_file is None else _NAME.sub("", self.log_file)


class GenerationStart(NamedTuple):
    """When a cluster began again, at the latest, and the record that says so."""

    at: int
    evidence_id: str


class _Folder:
    """What the logs of one folder have shown of one generation; instants in µs."""

    def __init__(self) -> None:
        self._rises: dict[int | None, list[tuple[int, int]]] = {}  # by broker, and of all: highest epochs, since when
        self._last: dict[tuple[int, int], int] = {}  # by broker and epoch, its last line
        self._started: dict[int | None, int] = {}  # by broker
        self._times: list[int] = []

    def another_cluster_since(self, at: int, broker_id: int, epoch: int, *, is_act: bool) -> int | None:
        """Since when the logs are of another cluster if no one cluster has this line of a controller after those before
        it, or None: ``/controller_epoch`` only rises.

        A controller that was deposed goes on in its epoch until it hears so, but none begins with a lower one, nor with
        one that another broker had; none goes back to an epoch of its own, and none that starts again or is elected
        again has the same. What lies less than a minute apart may be of a clock that was set back.
        """
        last = self._last.get((broker_id, epoch))
        if epoch < self._highest(broker_id) or (epoch == self._highest(broker_id) and not is_act):
            is_another = at - self._since(broker_id, epoch if not is_act else epoch + 1) > FAR_BACK_US
        elif last is not None:
            is_another = self._started.get(broker_id, last) > last + FAR_BACK_US
        else:
            is_another = epoch <= self._highest(None) and at - self._since(None, epoch) > FAR_BACK_US
        if not is_another:
            return None
        until = max(seen for (_, of_epoch), seen in self._last.items() if of_epoch >= epoch)
        # to stop a cluster and to make another takes longer than what either logs meanwhile
        after = [until, *(time for time in self._times if time > until), at]
        return max(pairwise(after), key=lambda gap: gap[1] - gap[0])[1]

    def goes_on(self, other: _Folder, broker_id: int, epoch: int) -> bool:
        """Whether a line of a controller is of this cluster and not of ``other``, whose lines came since: two clusters
        whose brokers were started from one folder run side by side.

        It is of a broker that was a controller here alone, in the last epoch of here or the next one, and in none that
        follows the last one of there.
        """
        highest = self._highest(None)
        is_next = epoch == highest + 1 or (epoch == highest and (broker_id, epoch) in self._last)
        is_here, is_there = broker_id in self._rises, broker_id in other._rises
        return is_next and is_here and not is_there and epoch != other._highest(None) + 1

    def _highest(self, broker_id: int | None) -> int:
        """The highest epoch of a broker, or of all."""
        return self._rises[broker_id][-1][0] if broker_id in self._rises else 0

    def _since(self, broker_id: int | None, epoch: int) -> int:
        """Since when an epoch of a broker, or of any, is as high."""
        return next(since for highest, since in self._rises[broker_id] if highest >= epoch)

    def take(self, at: int, broker_id: int | None, epoch: int | None) -> None:
        """A line of a controller in its epoch, or without one of a start, that is of this generation."""
        self._times.append(at)
        if epoch is None:
            self._started[broker_id] = at
        elif broker_id is not None:
            self._last[broker_id, epoch] = at
            for whose in (broker_id, None):
                if epoch > self._highest(whose):
                    self._rises.setdefault(whose, []).append((epoch, at))


def generation_starts(facts: Iterable[GenerationFact]) -> list[GenerationStart]:
    """The starts of all generations but the first, in order.

    A cluster began again where its first epoch is elected after a higher one, where the logs of one folder show a
    controller with an epoch that one cluster cannot have there, where it states an id that it never had, or where a
    broker states another than it did before; one recreation may show several ways, and by several brokers. So it did,
    too, where the logs of one folder go on with the cluster before it: two of them take turns there.
    """
    starts: list[GenerationStart] = []
    highest = 0
    current: str | None = None  # the id that this generation stated
    known: set[str] = set()
    said: dict[int, str] = {}  # by broker, the id that it stated last
    folders: dict[str | None, _Folder] = {}
    left: dict[str | None, _Folder] = {}  # of the generation before
    every = list(facts)
    set_back = {fact.log_folder for fact in every if fact.is_set_back}
    for fact in sorted((f for f in every if not f.is_set_back), key=lambda f: (f.at, f.evidence_id)):
        epoch, begins_at = fact.controller_epoch, fact.at
        folder = None if fact.log_folder in set_back else fact.log_folder
        begins_again = epoch == FIRST_EPOCH and highest > FIRST_EPOCH and not fact.is_act
        if folder in folders and epoch is not None and fact.broker_id is not None:
            since = folders[folder].another_cluster_since(fact.at, fact.broker_id, epoch, is_act=fact.is_act)
            if since is None and folder in left and left[folder].goes_on(folders[folder], fact.broker_id, epoch):
                since = fact.at
            begins_again, begins_at = begins_again or since is not None, fact.at if since is None else since
        if begins_again:
            current = None
        stated = fact.stated_cluster_id
        if stated is not None:
            before = None if fact.broker_id is None else said.get(fact.broker_id)
            is_another = stated != before if before is not None else stated not in known
            known.add(stated)
            if fact.broker_id is not None:
                said[fact.broker_id] = stated
            if is_another and stated != current:
                begins_again = begins_again or current is not None
                current = stated
        if begins_again:
            after = starts[-1].at + 1 if starts else begins_at
            starts.append(GenerationStart(max(begins_at, after), fact.evidence_id))
            highest, left, folders = 0, folders, {}
        if folder is not None and stated is None:
            folders.setdefault(folder, _Folder()).take(fact.at, fact.broker_id, epoch)
        highest = max(highest, 0 if fact.is_act else epoch or 0)
    return starts
