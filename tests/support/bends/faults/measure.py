"""What is found of the faults made in captures.

python -m tests.support.bends.faults.measure FOLDER_OF_CAPTURES [PLACES_OF_EACH_KIND_AND_CAPTURE]
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from random import Random
from typing import Final

from reconstruct.findings.verdicts import Finding
from tests.support.bends.decisions import illegal_partition_transition, illegal_replica_transition
from tests.support.bends.editing import Bend
from tests.support.bends.faults.beside import TRUE_OF_THE_LINES
from tests.support.bends.faults.drafts import INFO, Fault, Faults, Site, bent
from tests.support.bends.faults.elections import ELECTIONS
from tests.support.bends.faults.episodes import EPISODES
from tests.support.bends.faults.fetchers import FETCHERS
from tests.support.bends.faults.missent import MISSENT
from tests.support.bends.faults.procedures import PROCEDURES
from tests.support.bends.faults.registrations import REGISTRATIONS
from tests.support.bends.faults.shutdowns import SHUTDOWNS
from tests.support.bends.faults.states import STATES
from tests.support.bends.faults.taken import TAKEN
from tests.support.bends.faults.unsent import UNSENT
from tests.support.captures.text import CaptureText
from tests.support.evidence.partitions import Partition, PlainCapture, plain_capture

SEED: Final = 20261122
_SEVERITIES: Final = ("info", "warning", "error")


def _of_bends(kind: str, bends: Iterable[Bend]) -> Iterable[Fault]:
    for each in bends:
        rules = frozenset(rule for rule, _ in each.expected)
        edits = {place: () if text is None else (text,) for place, text in each.edits.items()}
        yield Fault(kind, each.partition, rules, edits, each.note)


def illegal_partition_move(site: Site) -> Iterable[Fault]:
    return _of_bends("illegal partition transition", illegal_partition_transition(site))


def illegal_replica_move(site: Site) -> Iterable[Fault]:
    return _of_bends("illegal replica transition", illegal_replica_transition(site))


KINDS: Final[tuple[Faults, ...]] = (
    *STATES,
    *ELECTIONS,
    *UNSENT,
    *MISSENT,
    *TAKEN,
    *PROCEDURES,
    *SHUTDOWNS,
    *FETCHERS,
    *EPISODES,
    *REGISTRATIONS,
    illegal_partition_move,
    illegal_replica_move,
)  # type: ignore[arg-type]


class Result(StrEnum):
    """What is found of a fault."""

    FOUND = "found"
    MILDER = "milder"
    NOTHING = "nothing"
    HARSHER = "harsher"
    OTHER = "another rule"
    UNPROVABLE = "cannot be judged"


@dataclass(frozen=True)
class Outcome:
    """A fault, what was found of it, and the other findings above info: about something else, and (``beside``) by other
    rules about the same partition, of which the same lines are evidence."""

    capture: str
    fault: Fault
    result: Result
    new: tuple[str, ...]
    others: tuple[str, ...]
    beside: tuple[str, ...]

    @property
    def not_looked_at(self) -> list[str]:
        """Of what is said beside it: what is not known to be true of the lines."""
        return sorted(set(self.beside) - TRUE_OF_THE_LINES.get(self.fault.kind, frozenset()))


Key = tuple[Partition | None, str, str, str, int | None, int | None]


def kind_name(kind: Faults) -> str:
    """The name of what makes a kind of fault."""
    return str(getattr(kind, "__name__", kind))


def findings_of(capture: PlainCapture) -> Counter[Key]:
    """All findings, of the cluster and of its partitions."""
    found: list[tuple[Partition | None, Finding]] = [(None, finding) for finding in capture.cluster.verdicts.findings]
    found += capture.findings()
    return Counter(
        (where, f.rule_id, str(f.divergence_type), f.severity, f.broker_id, f.replica_id) for where, f in found
    )


def _text(key: Key) -> str:
    where, rule, kind, severity, broker, replica = key
    place = "cluster" if where is None else f"{where[0]}-{where[1]}"
    return f"{severity} {rule} {kind} {place} broker {broker} replica {replica}"


def outcome(site: Site, fault: Fault, known: Counter[Key]) -> Outcome:
    """Make the fault in the capture's text, read it again, and compare what is found."""
    new = findings_of(plain_capture(bent(site.text, fault.edits)).with_folds_of(site.plain)) - known
    right = [key for key in new if _is_right(fault, key)]
    severities = {key[3] for key in right}
    if fault.severity in severities:
        result = Result.FOUND
    elif severities:
        is_milder = max(map(_SEVERITIES.index, severities)) < _SEVERITIES.index(fault.severity)
        result = Result.MILDER if is_milder else Result.HARSHER
    elif any(key[0] == fault.partition and key[3] != INFO for key in new):
        result = Result.OTHER
    else:
        result = Result.NOTHING
    if fault.unprovable and result is not Result.HARSHER:
        result = Result.UNPROVABLE
    more = [key for key in new if key[3] != INFO and key not in right]
    others = [key for key in more if key[0] != fault.partition and not (key[0] in fault.also and key[1] in fault.rules)]
    beside = sorted({f"{key[1]} {key[2]}" for key in more if key not in others})
    return Outcome(site.name, fault, result, tuple(map(_text, new)), tuple(map(_text, others)), tuple(beside))


def _is_right(fault: Fault, key: Key) -> bool:
    where, rule, _, _, broker, replica = key
    named = {broker, replica} - {None}
    is_broker = not fault.brokers or not named or bool(named & fault.brokers)
    return (where == fault.partition or where in fault.also) and rule in fault.rules and is_broker


def outcomes(site: Site, places: int, seed: int = SEED, kinds: Sequence[Faults] = KINDS) -> list[Outcome]:
    """Every kind in a capture, at up to ``places`` random places each."""
    known = findings_of(site.plain)
    found = []
    for kind in kinds:
        faults = list(kind(site))
        chance = Random(f"{seed} {site.name} {kind_name(kind)}")
        found += [outcome(site, fault, known) for fault in chance.sample(faults, min(places, len(faults)))]
    return found


def table(found: Sequence[Outcome]) -> str:
    """By kind: how many were tried, what was found of them, and the share of those that lines can prove that was found
    with the right rule, subject and severity."""
    heads = ["kind", "tried", *Result, "share found", "true beside it", "not looked at", "others accused"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for kind in (*dict.fromkeys(each.fault.kind for each in found), None):
        own = [each for each in found if kind in (each.fault.kind, None)]
        counts = Counter(each.result for each in own)
        provable = len(own) - counts[Result.UNPROVABLE]
        share = f"{counts[Result.FOUND] / provable:.1%}" if provable else ""
        unknown = sum(bool(each.not_looked_at) for each in own)
        known, others = sum(bool(each.beside) for each in own) - unknown, sum(bool(each.others) for each in own)
        of_kind = [kind or "**all**", len(own), *(counts[result] or "" for result in Result)]
        cells = [*of_kind, share, known or "", unknown or "", others]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def reasons(found: Sequence[Outcome]) -> str:
    """By kind: why lines cannot prove some of them; and which rules find something else of the same lines."""
    lines = []
    for kind in dict.fromkeys(each.fault.kind for each in found):
        own = [each for each in found if each.fault.kind == kind]
        why = Counter(each.fault.unprovable for each in own if each.result is Result.UNPROVABLE)
        beside = Counter(name for each in own for name in each.beside)
        lines += [f"{kind}: {count} cannot be judged: {reason}" for reason, count in why.most_common()]
        if beside:
            lines.append(f"{kind}: beside it {', '.join(f'{name} ({n})' for name, n in beside.most_common())}")
    return "\n".join(lines)


def main() -> None:
    folder = Path(sys.argv[1])
    places = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    kinds = [kind for kind in KINDS if len(sys.argv) < 4 or kind_name(kind) in sys.argv[3:]]
    names = sorted(path.name for path in folder.iterdir() if path.is_dir())
    found = [
        each
        for name in names
        for each in outcomes(Site.read(name, CaptureText.read(folder / name)), places, kinds=kinds)
    ]
    print(table(found), reasons(found), sep="\n\n")
    for each in found:
        if each.result not in (Result.FOUND, Result.UNPROVABLE) or each.others:
            print(f"{each.result}: {each.capture} {each.fault.kind} {each.fault.partition} {each.fault.note}")
            print(*(f"    {text}" for text in (each.new if each.result is not Result.FOUND else each.others)), sep="\n")


if __name__ == "__main__":
    main()
