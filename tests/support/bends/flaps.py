"""Departures from the ISR that are another member's, in raw text: what `gold.isr_flapping` counts then.

python -m tests.support.bends.flaps FOLDER_OF_CAPTURES
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tests.support.bends.faults.drafts import Draft, Edits, Site, bent
from tests.support.bends.faults.elections import is_gone
from tests.support.bends.faults.restating import State, restated
from tests.support.captures.text import CaptureText
from tests.support.evidence.lines import Partition
from tests.support.evidence.partitions import PlainCapture, plain_capture

#: Lines of a write lie within this of it, µs.
_NEAR_US: Final = 1_000_000
#: By replica: how often it left the ISR, and how often it came back.
Counts = Mapping[int, tuple[int, int]]


@dataclass(frozen=True)
class FlapBend:
    """One departure and the return after it, of ``other`` in place of ``member``."""

    partition: Partition
    member: int
    other: int
    edits: Edits


def flap_bends(site: Site) -> Iterator[FlapBend]:
    """Writes that take one follower out of the ISR, and the next ones, that take it in again; while neither is
    gone: of one that is, the controller's own lines tell more."""
    for partition, rows in site.writes.items():
        for before, out, back in zip(rows, rows[1:], rows[2:], strict=False):
            old, less = before.state["isr"], out.state["isr"]
            followed = (out.version, back.version) == (before.version + 1, before.version + 2)
            gone = set(old) - set(less)
            rest = [member for member in less if member != out.state["leader"]]
            if not followed or len(gone) != 1 or set(back.state["isr"]) != {*less, *gone} or not rest:
                continue
            (member,), other = gone, rest[0]
            since, until = site.written_at(out), site.written_at(back)
            if _are_taken_offline(site, (member, other), since - _NEAR_US, until):
                continue

            def swapped(
                state: State, less=less, member=member, other=other, version=out.version, since=since, until=until
            ) -> State:  # type: ignore[no-untyped-def]
                is_near = since - _NEAR_US <= state.at <= until + _NEAR_US
                is_it = state.version == version or (state.version is None and is_near)
                if not is_it or state.isr is None or set(state.isr) != set(less):
                    return state
                return replace(state, isr=tuple(member if each == other else each for each in state.isr))

            draft = Draft(site)
            restated(draft, partition, swapped)
            draft.drop(
                line
                for line in site.about(partition, "isr_shrink_proposed", "isr_expand_proposed")
                if since - _NEAR_US <= line.at <= until + _NEAR_US
            )
            yield FlapBend(partition, member, other, draft.made())


def _are_taken_offline(site: Site, brokers: Iterable[int], since: int, until: int) -> bool:
    """Whether the controller takes the replicas of one Offline then; up to 2.2 a new one does not (KAFKA-3143)."""
    kinds = ("broker_change",) if site.minor < (2, 3) else ("broker_change", "brokers_active")
    told = [line.at for line in site.events(*kinds, source_kind="controller_log") if since <= line.at <= until]
    return any(is_gone(site, broker, at) for at in told for broker in brokers)


def counts(capture: PlainCapture, partition: Partition) -> Counts:
    """Over all windows of each replica."""
    found: dict[int, tuple[int, int]] = {}
    for row in capture.fold_one(partition).isr_flapping:
        left, came = found.get(row.replica_id, (0, 0))
        found[row.replica_id] = (left + row.shrink_count, came + row.expand_count)
    return found


def is_right(site: Site, bend: FlapBend) -> bool:
    """Whether the one replica has a departure and a return less, the other one more, and all else is as it was."""
    was = counts(site.plain, bend.partition)
    moved = Counter({bend.member: -1, bend.other: 1})
    expected = {
        replica: (left + moved[replica], came + moved[replica])
        for replica in {*was, *moved}
        for left, came in [was.get(replica, (0, 0))]
    }
    now = counts(plain_capture(bent(site.text, bend.edits)), bend.partition)
    return {replica: both for replica, both in expected.items() if both != (0, 0)} == now


def main() -> None:
    tried: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for path in sorted(path for path in Path(sys.argv[1]).iterdir() if path.is_dir()):
        site = Site.read(path.name, CaptureText.read(path))
        for bend in flap_bends(site):
            tried[path.name] += 1
            right[path.name] += is_right(site, bend)
            if not is_right(site, bend):
                now = counts(plain_capture(bent(site.text, bend.edits)), bend.partition)
                print(path.name, bend.partition, bend.member, bend.other, counts(site.plain, bend.partition), now)
        print(f"{path.name}: {right[path.name]} of {tried[path.name]}")
    print(f"all: {right.total()} of {tried.total()}")


if __name__ == "__main__":
    main()
