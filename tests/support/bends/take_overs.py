"""Take-overs bent: a controller does two of its steps the other way round."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from reconstruct.cluster.take_overs import step_of
from reconstruct.model.take_over import TAKE_OVER_ORDER
from tests.support.bends.editing import Bend, Subject
from tests.support.evidence.cluster import take_over_lines
from tests.support.evidence.lines import Line

_TIME: Final = re.compile(r"^\[[^]]+\]")


def steps_change_places(subject: Subject) -> Iterator[Bend]:
    """Two lines of one take-over that follow each other change places, each with the other's time. Which comes first of
    those up to the raised epoch, and of what else begins a take-over anew, is not to be told from lines alone."""
    steps = [line for name in subject.text.named("/controller.log") for line in _steps(subject, name)]
    for earlier, later in pairwise(steps):
        first, second = (TAKE_OVER_ORDER[_step(line)] for line in (earlier, later))
        if earlier.file != later.file or not TAKE_OVER_ORDER["epoch_incremented"] < first < second:
            continue
        texts = [subject.raw(line) for line in (earlier, later)]
        times = [_TIME.match(text) for text in texts]
        assert all(times)
        swapped = [_TIME.sub(time[0] if time else "", text) for text, time in zip(texts[::-1], times, strict=True)]
        yield Bend(
            "steps of a take-over change places",
            None,
            {(earlier.file, earlier.number): swapped[0], (later.file, later.number): swapped[1]},
            frozenset({("R16", "step_out_of_order")}),
            f"{earlier.id} {_step(earlier)} {_step(later)}",
        )


def _steps(subject: Subject, name: str) -> list[Line]:
    own = [line for line in subject.lines if line.file == name and _step(line) in TAKE_OVER_ORDER]
    return sorted(own, key=lambda line: line.number)


def _step(line: Line) -> str:
    return next((step_of(told) or "" for told in take_over_lines([line])), "")
