"""What is known of one partition's offsets while it is inferred."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

from reconstruct.offsets.bound_steps import Drop, Fact, Step, lower_steps, upper_steps
from reconstruct.offsets.timed_offsets import Key


@dataclass(slots=True)
class Facts:
    """Facts by (replica, quantity), each once and in the order of time, and the drops they stop at."""

    lower: dict[Key, list[Fact]] = field(default_factory=dict)
    upper: dict[Key, list[Fact]] = field(default_factory=dict)
    drops: dict[Key, list[Drop]] = field(default_factory=dict)

    def at_least(self, key: Key, fact: Fact) -> None:
        _put(self.lower.setdefault(key, []), fact)

    def at_most(self, key: Key, fact: Fact) -> bool:
        """Whether it was not known."""
        return _put(self.upper.setdefault(key, []), fact)

    def lower_of(self, key: Key) -> list[Step]:
        return lower_steps(self.lower.get(key, ()), self.drops.get(key, ()))

    def upper_of(self, key: Key) -> list[Step]:
        return upper_steps(self.upper.get(key, ()), self.drops.get(key, ()))


def _put(facts: list[Fact], fact: Fact) -> bool:
    index = bisect_left(facts, fact)
    is_new = index == len(facts) or facts[index] != fact
    if is_new:
        facts.insert(index, fact)
    return is_new
