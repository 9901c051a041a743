"""``docs/transitions.md``, drawn from the model's tables: ``python -m jobs.docs.transitions_doc [--check] FILE``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from jobs.docs.generated_doc import write_or_check
from reconstruct.model import states

#: Valid previous states by state. Any of the machines': a Mapping's keys are invariant.
_Table = Mapping[Any, frozenset[Any]]

_HEAD: Final = """\
# The controller's state machines

Drawn from the tables in `reconstruct/model/states.py` by `make docs`: edit those. What happens besides at each
transition is in [the controller, as a model](controller-model.md). An arrow that not all releases have says which do;
Kafka refuses any other transition, logs an error, and nothing changes.
"""
#: Title, the state before the first, and the tables of each era.
_MACHINES: Final[tuple[tuple[str, StrEnum, tuple[tuple[str, _Table], ...]], ...]] = (
    (
        "Partitions",
        states.PartitionState.NON_EXISTENT,
        (
            ("0.8.0", states.VALID_PREVIOUS_PARTITION_STATES_0_8_0),
            ("since 0.8.1", states.VALID_PREVIOUS_PARTITION_STATES),
        ),
    ),
    (
        "Replicas",
        states.ReplicaState.NON_EXISTENT,
        (
            ("0.8.0", states.VALID_PREVIOUS_REPLICA_STATES_0_8_0),
            ("0.8.1 to 2.2", states.VALID_PREVIOUS_REPLICA_STATES_0_8_1),
            ("since 2.3", states.VALID_PREVIOUS_REPLICA_STATES),
        ),
    ),
)


def transitions_markdown() -> str:
    """The whole document."""
    return "\n".join([_HEAD, *(line for machine in _MACHINES for line in _machine(*machine))])


def main(argv: Sequence[str] | None = None) -> int:
    """Write the file, or with ``--check`` compare it."""
    return write_or_check("jobs.docs.transitions_doc", __doc__, transitions_markdown, argv)


def _machine(title: str, first: StrEnum, eras: Sequence[tuple[str, _Table]]) -> Iterator[str]:
    yield f"## {title}"
    yield ""
    yield "```mermaid"
    yield "stateDiagram-v2"
    yield f"    [*] --> {first}"
    for source, target, named in _arrows(eras):
        label = "" if len(named) == len(eras) else f": {_since(named, eras)}"
        yield f"    {source} --> {target}{label}"
    yield "```"
    yield ""
    yield "| target | " + " | ".join(f"from, {era}" for era, _ in eras) + " |"
    yield "|---" * (len(eras) + 1) + "|"
    for target in type(first):
        sources = [[f"`{source}`" for source in type(first) if source in table.get(target, ())] for _, table in eras]
        cells = [", ".join(named) for named in sources]
        yield f"| `{target}` | " + " | ".join(cell or "–" for cell in cells) + " |"
    yield ""


def _since(named: Sequence[str], eras: Sequence[tuple[str, _Table]]) -> str:
    """``since 0.8.1`` for what lasts to the last era."""
    return f"since {named[0].split()[-1 if len(named) == 1 else 0]}" if named[-1] == eras[-1][0] else ", ".join(named)


def _arrows(eras: Sequence[tuple[str, _Table]]) -> Iterator[tuple[StrEnum, StrEnum, list[str]]]:
    """Every transition of any era, in the order of the states, with the eras that have it."""
    members = type(next(iter(eras[0][1])))
    for source in members:
        for target in members:
            named = [era for era, table in eras if source in table.get(target, ())]
            if named:
                yield source, target, named


if __name__ == "__main__":
    sys.exit(main())
