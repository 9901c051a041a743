"""Faults made in the text of what a scenario's cluster wrote, and losses of it: what is found of them."""

from __future__ import annotations

from typing import Final

from jobs.lab.play import Played
from tests.support.bends.faults.drafts import Site
from tests.support.bends.faults.measure import Result, outcomes
from tests.support.bends.losses import tried
from tests.support.captures.text import CaptureText

LOSSES: Final = 25
#: One place of each kind is tried: so few that one or two missed ones are no sign.
MOST_MISSED: Final = 2
_AS_IT_MUST: Final = (Result.FOUND, Result.UNPROVABLE)


def bends_misjudged(played: Played) -> list[str]:
    """Faults that are missed or that accuse somebody else, and what losses are accused of."""
    name, text = played.capture.name, CaptureText.read(played.capture)
    found = outcomes(Site.read(name, text), 1)
    said = [f"{each.result}: {each.fault.kind} {each.fault.partition} {each.fault.note}" for each in found]
    missed = [text for text, each in zip(said, found, strict=True) if each.result not in _AS_IT_MUST]
    others = [f"{text} accuses {each.others}" for text, each in zip(said, found, strict=True) if each.others]
    errors = [f"false error: {error}" for error in tried(name, text, range(LOSSES))]
    return [*(missed if len(missed) > MOST_MISSED else ()), *others, *errors]
