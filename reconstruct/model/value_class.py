"""Values of which a run makes millions: what one line or one row says, a state, an interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

Kind = TypeVar("Kind")


@dataclass_transform(frozen_default=True)
def value_class(kind: type[Kind]) -> type[Kind]:
    """A dataclass that nobody changes: a frozen one to who checks types, but not while a program runs, where a frozen
    one sets each field by a call: of forty fields it is made in five times the time."""
    return dataclass(slots=True, unsafe_hash=True)(kind)
