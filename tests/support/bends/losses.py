"""Captures of which something is lost, and what they are then accused of: it must be nothing.

    python -m tests.support.bends.losses FOLDER_OF_CAPTURES [TRIES] [FIRST_TRY]

Lost are 1 to 1,000 neighbouring lines of one log, a log, all of a broker, what it wrote before or after an instant,
snapshots of the znodes; or a broker's clock is wrong, all the time or from an instant on, or set by up to a week; and
more may be lost beside. Times are then corrected as the program does it. Each try is drawn by its number, so that the
same number always gives the same loss. An error that the undamaged capture does not have is a false one: no real
cluster did what it says. So is a warning of the rules in :data:`WARNING_RULES`.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Final

from reconstruct.findings.verdicts import Finding
from tests.support.captures.text import CaptureText, Lines
from tests.support.evidence.corrected import corrected, later
from tests.support.evidence.partitions import Partition, plain_capture

MOST_LINES: Final = 1_000
_TIME: Final = re.compile(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\]")
#: The share of wrong clocks that were set while the broker ran.
_SET: Final = 0.3
_SHIFTS_S: Final = (-86_400, -3_600, -60, -3, -0.4, 0.4, 1.5, 30, 3_600)
#: By how much a clock is set, either way.
_STEPS_S: Final = (3, 60, 600, 3_600, 7_200, 86_400, 172_800, 604_800)
#: Rules whose warnings count: what breaks them is no error.
WARNING_RULES: Final = frozenset(("R26", "R38", "R40", "R41"))
#: The partition (None: the cluster), rule, type, broker and replica of a finding.
Accusation = tuple[Partition | None, str, str, int | None, int | None]
Loss = Callable[[CaptureText, Random], tuple[str, CaptureText]]
Said = tuple[Partition | None, Finding]


@dataclass(frozen=True)
class FalseError:
    """An error that a loss made, with the try that gives it again."""

    capture: str
    number: int
    kind: str
    loss: str
    partition: Partition | None
    finding: Finding

    def __str__(self) -> str:
        where = "the cluster" if self.partition is None else "{}-{}".format(*self.partition)
        name = f"{self.finding.rule_id} {self.finding.divergence_type}"
        return f"{self.capture} try {self.number}: {self.loss}: {name} of {where}: {self.finding.explanation}"


@dataclass(frozen=True)
class Trial:
    """What is lost, each loss with its share of the tries; and what is said of a capture's text, as it is read."""

    losses: Mapping[Loss, float]
    said: Callable[[CaptureText], Iterable[Said]]


def errors_of(said: Iterable[Said]) -> Iterator[tuple[Accusation, Partition | None, Finding]]:
    """The errors among what is said, and the warnings that count as such."""
    for partition, finding in said:
        if finding.severity == "error" or (finding.severity == "warning" and finding.rule_id in WARNING_RULES):
            key = (partition, finding.rule_id, str(finding.divergence_type), finding.broker_id, finding.replica_id)
            yield key, partition, finding


def loss_of(name: str, text: CaptureText, number: int, losses: Mapping[Loss, float]) -> tuple[Loss, str, CaptureText]:
    """What a try loses: its kind, its words, what is left."""
    chance = Random(f"{name} {number}")
    (loss,) = chance.choices(list(losses), list(losses.values()))
    return loss, *loss(text, chance)


def tried(
    name: str, text: CaptureText, numbers: Iterable[int], tries: Counter[str] | None = None, trial: Trial | None = None
) -> list[FalseError]:
    """The false errors of these tries of one capture; each is counted in ``tries`` by its kind. Judged are the rules of
    partitions, controllers and brokers, or what ``trial`` says."""
    trial = OF_PARTITIONS if trial is None else trial
    known = Counter(key for key, _, _ in errors_of(trial.said(text)))
    found = []
    for number in numbers:
        loss, said, lost = loss_of(name, text, number, trial.losses)
        if tries is not None:
            tries[loss.__name__] += 1
        for key, partition, finding in errors_of(trial.said(lost)):
            if key not in known:
                found.append(FalseError(name, number, loss.__name__, said, partition, finding))
    return found


# --- the losses


def _logs(text: CaptureText) -> list[str]:
    return text.named("/logs/")


def _without(text: CaptureText, *names: str) -> CaptureText:
    return CaptureText({name: lines for name, lines in text.files.items() if name not in names})


def _with(text: CaptureText, changed: Mapping[str, Lines]) -> CaptureText:
    return CaptureText({**text.files, **changed})


def lost_lines(text: CaptureText, chance: Random) -> tuple[str, CaptureText]:
    """A block of neighbouring lines; of a server.log seldom, as most of its lines tell of no state."""
    kinds = chance.choice(("state-change", "state-change", "state-change", "controller", "controller", "server"))
    names = [name for name in text.named("/logs/", kinds) if text.files[name]] or _logs(text)
    return lost_block(text, chance.choice(names), chance)


def lost_block(text: CaptureText, name: str, chance: Random) -> tuple[str, CaptureText]:
    """A block of neighbouring lines of the log ``name``."""
    lines = text.files[name]
    many = min(round(MOST_LINES ** chance.random()), len(lines))
    first = chance.randrange(len(lines) - many + 1)
    kept = (*lines[:first], *lines[first + many :])
    return f"lines {first + 1} to {first + many} of {name}", _with(text, {name: kept})


def lost_log(text: CaptureText, chance: Random) -> tuple[str, CaptureText]:
    name = chance.choice(_logs(text))
    return name, _without(text, name)


def lost_broker(text: CaptureText, chance: Random) -> tuple[str, CaptureText]:
    broker = chance.choice(_brokers(text))
    return f"all of {broker}", _without(text, *text.named(f"{broker}/"))


def lost_logs_of_a_kind(text: CaptureText, chance: Random) -> tuple[str, CaptureText]:
    kind = chance.choice(("state-change.log", "controller.log", "server.log"))
    return f"every {kind}", _without(text, *text.named(kind))


def lost_snapshots(text: CaptureText, chance: Random) -> tuple[str, CaptureText]:
    rounds = text.named("znodes/")
    share = chance.choice((0.1, 0.5, 0.9, 1))
    return f"{share:.0%} of the snapshots", _without(text, *chance.sample(rounds, round(share * len(rounds))))


def lost_end(text: CaptureText, chance: Random) -> tuple[str, CaptureText]:
    """What one broker wrote before or after an instant, as rotation and a full disk lose it."""
    broker = chance.choice(_brokers(text))
    cut, is_begin = chance.choice(_times(text, broker)), chance.random() < 0.5
    changed = {name: tuple(_side(text.files[name], cut, is_begin)) for name in _logs_of(text, broker)}
    return f"{broker} {'before' if is_begin else 'after'} {cut}", _with(text, changed)


def _side(lines: Lines, cut: str, is_begin_lost: bool) -> Iterator[str]:
    is_after = False
    for line in lines:
        is_after = is_after or (bool(_TIME.match(line)) and line[1:24] >= cut)
        if is_after == is_begin_lost:
            yield line


def wrong_clock(text: CaptureText, chance: Random) -> tuple[str, CaptureText]:
    """All logs of one broker by a clock that shows another time: always, or from an instant on, when it was set."""
    broker, shift = chance.choice(_brokers(text)), chance.choice(_SHIFTS_S)
    times = _times(text, broker)
    since = chance.choice(times) if chance.random() < _SET else ""
    said = f"the clock of {broker} {shift:+g} s {since and 'since '}{since}"
    return _perhaps_with_a_loss(said, set_from(text, broker, shift, since), chance)


def set_from(text: CaptureText, broker: str, seconds: float, since: str, until: str = "") -> CaptureText:
    """The logs of ``broker`` (``broker-2``) print so much more from the time ``since`` to ``until``, as printed."""
    changed = {name: tuple(_shifted(text.files[name], seconds, since, until)) for name in _logs_of(text, broker)}
    return _with(text, changed)


def _perhaps_with_a_loss(said: str, text: CaptureText, chance: Random) -> tuple[str, CaptureText]:
    if chance.random() < 0.5:
        return said, text
    loss = chance.choice((lost_lines, lost_lines, lost_log, lost_logs_of_a_kind, lost_snapshots))
    also, text = loss(text, chance)
    return f"{said} and {also}", text


def set_clock(text: CaptureText, chance: Random) -> tuple[str, CaptureText]:
    """The clock of one broker is set while it runs, by up to a week, and perhaps right again later."""
    broker, shift = chance.choice(_brokers(text)), chance.choice(_STEPS_S) * chance.choice((-1, 1))
    since, until = sorted(chance.sample(_times(text, broker), 2))
    if chance.random() < 0.5:
        until = ""
    said = f"the clock of {broker} {shift:+g} s since {since}{until and ' until '}{until}"
    return _perhaps_with_a_loss(said, set_from(text, broker, shift, since, until), chance)


def _shifted(lines: Lines, seconds: float, since: str, until: str = "") -> Iterator[str]:
    """The lines from the first one that printed ``since`` on, up to the first that printed ``until``."""
    is_wrong = is_over = False
    for line in lines:
        if _TIME.match(line):
            is_wrong = is_wrong or line[1:24] >= since
            is_over = is_over or (bool(until) and line[1:24] >= until)
        yield later(line, timedelta(seconds=seconds)) if is_wrong and not is_over else line


def several(text: CaptureText, chance: Random) -> tuple[str, CaptureText]:
    """Two losses at once."""
    said = []
    for loss in chance.choices((lost_lines, lost_log, lost_snapshots, lost_end), k=2):
        name, text = loss(text, chance)
        said.append(name)
    return " and ".join(said), text


def _logs_of(text: CaptureText, broker: str) -> list[str]:
    return text.named(f"{broker}/logs/")


def _times(text: CaptureText, broker: str) -> list[str]:
    """All times that a broker's logs print."""
    return sorted({line[1:24] for name in _logs_of(text, broker) for line in text.files[name] if _TIME.match(line)})


def _brokers(text: CaptureText) -> list[str]:
    return sorted({name.split("/")[0] for name in _logs(text)})


#: Each, and its share of the tries.
LOSSES: Final[Mapping[Loss, float]] = {
    lost_lines: 0.7,
    lost_log: 0.02,
    lost_broker: 0.01,
    lost_logs_of_a_kind: 0.01,
    lost_snapshots: 0.04,
    lost_end: 0.1,
    wrong_clock: 0.05,
    several: 0.04,
    set_clock: 0.03,
}


def _said_of_partitions(text: CaptureText) -> Iterator[Said]:
    capture = plain_capture(corrected(text))
    yield from ((None, finding) for finding in capture.cluster.verdicts.findings)
    yield from capture.findings()


#: The rules about partitions, controllers and brokers, of logs, znodes and settings.
OF_PARTITIONS: Final = Trial(LOSSES, _said_of_partitions)


def _of_partitions(folder: Path) -> tuple[CaptureText, Trial]:
    return CaptureText.read(folder), OF_PARTITIONS


def main(read: Callable[[Path], tuple[CaptureText, Trial]] = _of_partitions) -> int:
    """``read`` gives a capture's text, and what is lost of it and judged."""
    folder = Path(sys.argv[1])
    tries, first = (int(given) for given in (*sys.argv[2:4], *("1000", "0")[len(sys.argv) - 2 :]))
    names = sorted(path.name for path in folder.iterdir() if path.is_dir())
    each = -(-tries // len(names))
    found: list[FalseError] = []
    counts: Counter[str] = Counter()
    for name in names:
        text, trial = read(folder / name)
        errors = tried(name, text, range(first, first + each), counts, trial)
        print(f"{name}: {each} losses, {len(errors)} false errors", *errors, sep="\n", flush=True)
        found += errors
    print("| loss | tries | with a false error | false errors |", "|---|---|---|---|", sep="\n")
    for kind in (*counts, None):
        own = [error for error in found if kind in (error.kind, None)]
        tried_so = counts[kind] if kind else counts.total()
        print(f"| {kind or '**all**'} | {tried_so} | {len({(e.capture, e.number) for e in own})} | {len(own)} |")
    rules = Counter((error.finding.rule_id, str(error.finding.divergence_type)) for error in found)
    print(*(f"{rule} {kind}: {count}" for (rule, kind), count in rules.most_common()), sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
