"""One chart as marks on a plane: bars on top of each other, or points of lines."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from dashboards import words

#: A chart's size in its own units, room for the labels at its left and below; how much of a day a bar takes, at most.
WIDTH, HEIGHT, LEFT, BELOW = 640, 170, 56, 22
_BAR, _WIDEST = 0.8, 36.0
#: The series of all that are not among the largest.
OTHERS: Final = "(others)"
#: More days than this become weeks.
MOST_DAYS: Final = 120


@dataclass(frozen=True)
class Chart:
    """One chart: the question that it draws, which rows, and its columns. ``adds_up``: values of several rows, and of
    the days of a week, are summed and drawn on top of each other; else the greatest of them counts, drawn as a line.
    ``of_runs``: its days are those of our runs, and not of what the evidence tells: it has an axis of its own."""

    title: str
    question: str
    value: str
    series: str | None = None
    where: str = "TRUE"
    adds_up: bool = True
    of_runs: bool = False


@dataclass(frozen=True)
class Point:
    """What one series of a chart is on one day."""

    day: date
    series: str
    value: float


@dataclass(frozen=True)
class Mark:
    """One bar, or one point of a line, in the chart's units, with what it stands for."""

    series: int
    x: float
    y: float
    width: float
    height: float
    label: str


@dataclass(frozen=True)
class Drawing:
    """A chart drawn: its marks, its series with their totals (None where they do not add up), the top of its scale."""

    chart: Chart
    marks: tuple[Mark, ...]
    series: tuple[tuple[str, float | None], ...]
    top: float
    days: tuple[date, ...]

    def lines(self) -> list[tuple[int, str]]:
        """Each series' points as SVG has them."""
        points: list[list[str]] = [[] for _ in self.series]
        for mark in self.marks:
            points[mark.series].append(f"{mark.x + mark.width / 2:.1f},{mark.y:.1f}")
        return [(number, " ".join(of_series)) for number, of_series in enumerate(points)]


def draw(chart: Chart, points: Sequence[Point], first: date, last: date) -> Drawing:
    """The chart from the first day to the last, on a scale that begins at 0."""
    step = 7 if (last - first).days >= MOST_DAYS else 1
    days = [first + timedelta(days=number) for number in range(0, (last - first).days + 1, step)]
    totals: dict[str, float] = {}
    for point in points:
        totals[point.series] = totals.get(point.series, 0) + point.value
    names = sorted(totals, key=lambda name: (name == OTHERS, -totals[name], name))
    values: dict[tuple[int, int], float] = {}
    for point in points:
        at = (point.day - first).days // step, names.index(point.series)
        values[at] = values.get(at, 0) + point.value if chart.adds_up else max(values.get(at, 0), point.value)
    heights = _heights(values) if chart.adds_up else list(values.values())
    top = _nice(max(heights, default=0))
    sums = {number: sum(value for (_, of), value in values.items() if of == number) for number in range(len(names))}
    shown = tuple((name, sums[number] if chart.adds_up else None) for number, name in enumerate(names))
    return Drawing(chart, tuple(_marks(chart, values, days, names, top)), shown, top, tuple(days))


def _heights(values: Mapping[tuple[int, int], float]) -> list[float]:
    stacked: dict[int, float] = {}
    for (day, _), value in values.items():
        stacked[day] = stacked.get(day, 0) + value
    return list(stacked.values())


def _marks(
    chart: Chart, values: Mapping[tuple[int, int], float], days: Sequence[date], names: Sequence[str], top: float
) -> Iterable[Mark]:
    band = (WIDTH - LEFT) / len(days)
    width = min(band * _BAR, _WIDEST)
    below: dict[int, float] = {}
    for (day, number), value in sorted(values.items()):
        foot = below.get(day, 0) if chart.adds_up else 0
        below[day] = foot + value
        height = value / top * HEIGHT
        name = f"{words.visible(names[number])}: " if names[number] else ""
        label = f"{days[day].isoformat()}, {name}{figure(value)}"
        yield Mark(
            number,
            LEFT + band * (day + 0.5) - width / 2,
            HEIGHT - foot / top * HEIGHT - height,
            width,
            height,
            label,
        )


def _nice(value: float) -> float:
    """The smallest of 1, 2, 2.5, 5, 10, 20, 25 ... that is no less."""
    if value <= 0:
        return 1.0
    scale = 10.0 ** math.floor(math.log10(value))
    return next(part * scale for part in (1, 2, 2.5, 5, 10, 20) if part * scale >= value)


def figure(value: float | None) -> str:
    """``1,234`` or ``0.125``; empty for None."""
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:,.3f}".rstrip("0").rstrip(".")
