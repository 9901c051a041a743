"""Compare two sequences in order by their longest common subsequence: how much of one is in the other."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Step:
    """One member of a sequence: what is compared, when it began and ended (epoch ms), and a note for people."""

    value: Hashable
    from_ms: float | None = None
    to_ms: float | None = None
    note: str = ""

    def __str__(self) -> str:
        at = "            " if self.from_ms is None else clock(self.from_ms)
        return f"{at}  {_readable(self.value)}{'  ' + self.note if self.note else ''}"


@dataclass(frozen=True, slots=True)
class Alignment:
    """The truth and ours of one key (a partition, a broker), with the pairs of indexes that belong together."""

    key: Hashable
    truth: tuple[Step, ...]
    ours: tuple[Step, ...]
    pairs: tuple[tuple[int, int], ...]

    @property
    def missed(self) -> tuple[Step, ...]:
        found = {index for index, _ in self.pairs}
        return tuple(step for index, step in enumerate(self.truth) if index not in found)

    @property
    def extra(self) -> tuple[Step, ...]:
        found = {index for _, index in self.pairs}
        return tuple(step for index, step in enumerate(self.ours) if index not in found)

    @property
    def start_errors_ms(self) -> tuple[float, ...]:
        """Ours minus truth, for each pair whose begin both sides know."""
        pairs = [(self.truth[i].from_ms, self.ours[j].from_ms) for i, j in self.pairs]
        return tuple(ours - truth for truth, ours in pairs if truth is not None and ours is not None)

    @property
    def end_errors_ms(self) -> tuple[float, ...]:
        """Ours minus truth, for each pair whose end both sides know."""
        pairs = [(self.truth[i].to_ms, self.ours[j].to_ms) for i, j in self.pairs]
        return tuple(ours - truth for truth, ours in pairs if truth is not None and ours is not None)


@dataclass(frozen=True, slots=True)
class Score:
    """All alignments of one subject (states, controller epochs ...)."""

    alignments: tuple[Alignment, ...]

    @property
    def truth_count(self) -> int:
        return sum(len(alignment.truth) for alignment in self.alignments)

    @property
    def ours_count(self) -> int:
        return sum(len(alignment.ours) for alignment in self.alignments)

    @property
    def matched_count(self) -> int:
        return sum(len(alignment.pairs) for alignment in self.alignments)

    @property
    def recall(self) -> float:
        """Share of the truth that ours holds, in order; 1 where there is no truth to hold."""
        return self.matched_count / self.truth_count if self.truth_count else 1.0

    @property
    def extras(self) -> float:
        """Share of ours that the truth does not hold; 0 where ours is empty."""
        return (self.ours_count - self.matched_count) / self.ours_count if self.ours_count else 0.0

    @property
    def start_errors_ms(self) -> tuple[float, ...]:
        return tuple(error for alignment in self.alignments for error in alignment.start_errors_ms)

    @property
    def end_errors_ms(self) -> tuple[float, ...]:
        return tuple(error for alignment in self.alignments for error in alignment.end_errors_ms)

    def diff(self, context: int = 1) -> str:
        """What was missed (``-``) and what is too much (``+``) per key, with ``context`` matched steps around."""
        return "\n".join(text for alignment in self.alignments if (text := _diff(alignment, context)))


def align(
    truth: Mapping[Any, Sequence[Step]],
    ours: Mapping[Any, Sequence[Step]],
    same: Callable[[Step, Step], bool] = lambda truth, ours: truth.value == ours.value,
) -> Score:
    """Align the sequences of every key on either side; a key that one side lacks has an empty sequence there."""
    keys = sorted({*truth, *ours}, key=str)
    return Score(tuple(_align_one(key, tuple(truth.get(key, ())), tuple(ours.get(key, ())), same) for key in keys))


def without_repeats(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Consecutive steps of equal value as one: the first one's begin, the last one's end."""
    kept: list[Step] = []
    for step in steps:
        if kept and kept[-1].value == step.value:
            kept[-1] = Step(step.value, kept[-1].from_ms, step.to_ms, kept[-1].note)
        else:
            kept.append(step)
    return tuple(kept)


def overlap(truth: Step, ours: Step) -> bool:
    """True where both have the same value and share an instant; an unknown begin or end is unbounded."""
    begin = max(step.from_ms if step.from_ms is not None else float("-inf") for step in (truth, ours))
    end = min(step.to_ms if step.to_ms is not None else float("inf") for step in (truth, ours))
    return truth.value == ours.value and begin <= end


def common_subsequence(
    left: Sequence[T], right: Sequence[T], same: Callable[[T, T], bool]
) -> tuple[tuple[int, int], ...]:
    """Pairs of indexes of a longest common subsequence; among several, the one whose pairs come first."""
    rows, columns = len(left), len(right)
    length = [[0] * (columns + 1) for _ in range(rows + 1)]
    for i in range(rows - 1, -1, -1):
        for j in range(columns - 1, -1, -1):
            both = length[i + 1][j + 1] + 1 if same(left[i], right[j]) else 0
            length[i][j] = max(both, length[i + 1][j], length[i][j + 1])
    pairs: list[tuple[int, int]] = []
    i = j = 0
    while i < rows and j < columns and length[i][j]:
        if same(left[i], right[j]) and length[i][j] == length[i + 1][j + 1] + 1:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif length[i + 1][j] == length[i][j]:
            i += 1
        else:
            j += 1
    return tuple(pairs)


def instant_ms(value: object) -> float | None:
    """An instant as epoch milliseconds: from a number of them, a datetime (UTC where it names no zone) or ISO text."""
    match value:
        case None:
            return None
        case int() | float():
            return float(value)
        case str():
            return instant_ms(datetime.fromisoformat(value))
        case datetime():
            return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp() * 1000
    raise TypeError(f"{value!r} is no instant")


def clock(instant: float) -> str:
    """``03:28:31.911``, UTC."""
    return datetime.fromtimestamp(instant / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]


def _align_one(
    key: Hashable, truth: tuple[Step, ...], ours: tuple[Step, ...], same: Callable[[Step, Step], bool]
) -> Alignment:
    return Alignment(key, truth, ours, common_subsequence(truth, ours, same))


def _diff(alignment: Alignment, context: int) -> str:
    if not alignment.missed and not alignment.extra:
        return ""
    lines: list[tuple[str, str]] = []
    i = j = 0
    for pair in (*alignment.pairs, (len(alignment.truth), len(alignment.ours))):
        lines += [("-", str(step)) for step in alignment.truth[i : pair[0]]]
        lines += [("+", str(step)) for step in alignment.ours[j : pair[1]]]
        if pair[0] < len(alignment.truth):
            lines.append((" ", str(alignment.truth[pair[0]])))
        i, j = pair[0] + 1, pair[1] + 1
    changed = [index for index, (sign, _) in enumerate(lines) if sign != " "]
    near = {index for at in changed for index in range(at - context, at + context + 1)}
    shown = [f"  {sign} {text}" for index, (sign, text) in enumerate(lines) if index in near]
    return "\n".join([f"{_readable(alignment.key)}:", *shown])


def _readable(value: object) -> str:
    if isinstance(value, frozenset):
        return "{" + ",".join(sorted(str(member) for member in value)) + "}"
    if isinstance(value, tuple):
        return "(" + ", ".join(_readable(member) for member in value) + ")"
    return str(value)
