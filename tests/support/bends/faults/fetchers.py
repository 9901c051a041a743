"""Followers that fetch from a broker that did not lead the partition (R26)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from tests.support.bends.faults.drafts import Draft, Fault, Faults, Site, number
from tests.support.evidence.lines import Line, Partition, by_partition

#: Lines by which a broker tells that it was told of a leader epoch.
_TOLD: Final = ("leader_and_isr_received", "become_follower_completed", "become_leader_completed")
#: A fetcher is added while the request that tells of the leader is handled, µs.
_HANDLED_US: Final = 1_000_000
_NO_END: Final = 2**31
#: The leader of one partition of a line (up to 2.3), and the one of all its partitions (since 2.4).
_OF_ONE: Final = r"(\[?\[?{}[,-]{}\]?, initOffset -?\d+ to broker (?:id:|BrokerEndPoint\((?:id=)?))\d+"
_OF_ALL: Final = re.compile(r"(Added fetcher to broker (?:BrokerEndPoint\((?:id=)?)?)\d+")


def fetches_from_a_stranger(site: Site) -> Iterator[Fault]:
    """The line that adds a fetcher names a broker that led at none of the leader epochs that its own was told of around
    it, or at the one that it prints (since 2.1), as the writes of the partition's state have them."""
    for line in site.events("fetcher_added", source_kind="server_log"):
        named = [(partition, fields) for partition, fields in by_partition(line.fields) if partition is not None]
        for partition, fields in named:
            printed = fields.get("leader_epoch")
            before, after = (int(printed),) * 2 if printed is not None else _told_around(site, line, partition)
            rows = [row for row in site.writes.get(partition, ()) if before <= row.state["leader_epoch"] <= after]
            led = {row.state["leader"] for row in rows}
            stranger = next((broker for broker in site.brokers if broker not in {*led, line.broker_id}), None)
            raw = site.raw(line)
            of_one = _OF_ONE.format(re.escape(partition[0]), partition[1])
            bent = re.sub(of_one, rf"\g<1>{stranger}", raw)
            if bent == raw and len(named) == 1:
                bent = _OF_ALL.sub(rf"\g<1>{stranger}", raw)
            if stranger is not None and led and bent != raw:
                draft = Draft(site)
                draft.put(line, bent)
                yield Fault(
                    "fetcher for a broker that did not lead",
                    partition,
                    frozenset({"R26"}),
                    draft.made(),
                    line.id,
                    frozenset({line.broker_id}),
                    unprovable=_unprovable(after),
                )


def _told_around(site: Site, line: Line, partition: Partition) -> tuple[int, int]:
    """The leader epochs that the broker was told of last before a line, and first after it; the lowest and the highest
    where no line tells."""
    own = [each for each in site.about(partition, *_TOLD) if each.broker_id == line.broker_id]
    told = [(each.at, epoch) for each in own if (epoch := number(each, "leader_epoch")) is not None]
    return (
        max((epoch for at, epoch in told if at < line.at - _HANDLED_US), default=-1),
        min((epoch for at, epoch in told if at > line.at + _HANDLED_US), default=_NO_END),
    )


def _unprovable(after: int) -> str:
    if after == _NO_END:
        return "nothing tells of a later leader epoch: the broker may have been told of one that no line shows"
    return ""


FETCHERS: tuple[Faults, ...] = (fetches_from_a_stranger,)
