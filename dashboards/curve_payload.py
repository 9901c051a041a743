"""One partition's curves as the page's script draws them: instants relative to the cluster's first, words by number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from dashboards.numbered import Numbered
from dashboards.words import visible
from ingest.lake.tables import gold, silver

_BOUNDS: Final = ("high_watermark_lower", "high_watermark_upper", "log_end_offset_lower", "log_end_offset_upper")
Relative = Callable[[float | None], float | None]
Place = Callable[[str | None], list[Any]]


def curve_payload(curve: Mapping[str, Any], rel: Relative, place: Place) -> dict[str, Any]:
    """A drawn row of :func:`dashboards.curve_data.curves`.

    ``rel`` makes an instant relative, ``place`` gives file number and line of a record, or nothing.
    """
    numbers = Numbered()
    steps: dict[int, list[list[Any]]] = {}
    totals: dict[int, int] = {}
    for row in curve["steps"]:
        seen = [(i, n) for i in row["evidence"] for n in range(len(curve["sightings"].get(i, ())))]
        told = [numbers.of(_sighting(curve["sightings"][i][n], rel), (i, n)) for i, n in seen]
        times = [rel(row["from_ms"]), rel(row["to_ms"])]
        steps.setdefault(row["replica_id"], []).append([*times, *(row[name] for name in _BOUNDS), row["rows"], told])
        totals[row["replica_id"]] = row["rows_total"]
    return {
        "t": visible(curve["topic"]),
        "p": curve["partition_id"],
        "i": visible(curve["topic_incarnation"]),
        "r": [[replica, totals[replica], own] for replica, own in sorted(steps.items())],
        "g": numbers.values,
        "l": [[rel(r["from_ms"]), rel(r["to_ms"]), r["leader"], r["leader_epoch"]] for r in curve["leaders"]],
        "e": [_election(row, rel, place) for row in curve["elections"]],
        "x": [[rel(r["at_ms"]), r["replica_id"], r["to_offset"], *place(r["evidence"])] for r in curve["truncations"]],
        "d": [_loss(row, rel, place) for row in curve["losses"]],
    }


def own_ranges(loss: Mapping[str, Any]) -> list[tuple[int, int, int]]:
    """Replica, first and last offset of the records it kept where its leader's log has others."""
    pairs = zip(loss["diverging_replicas"], loss["diverging_offsets"], strict=True)
    return [(replica, *map(int, offsets.split("-"))) for replica, offsets in pairs]


def curve_vocabularies() -> dict[str, Any]:
    """The words behind the numbers of :func:`curve_payload`."""
    return {"offsets": silver.OFFSET_KINDS, "elections": gold.ELECTION_KINDS, "causes": gold.LOSS_CAUSES}


def _sighting(row: Mapping[str, Any], rel: Relative) -> list[Any]:
    kind = silver.OFFSET_KINDS.index(row["offset_kind"])
    return [kind, row["offset"], row["replica_id"], visible(row["source"]), rel(row["from_ms"]), rel(row["to_ms"])]


def _election(row: Mapping[str, Any], rel: Relative, place: Place) -> list[Any]:
    return [
        rel(row["at_ms"]),
        row["observed_leader"],
        row["leader_epoch"],
        gold.ELECTION_KINDS.index(row["election_kind"]),
        None if row["is_unclean"] is None else int(row["is_unclean"]),
        row["previous_leader"],
        *place(row["evidence"]),
    ]


def _loss(row: Mapping[str, Any], rel: Relative, place: Place) -> list[Any]:
    return [
        rel(row["at_ms"]),
        row["leader"],
        row["leader_epoch"],
        row["previous_leader"],
        row["lost_from_offset"],
        row["lost_to_offset_lower"],
        row["lost_to_offset_upper"],
        row["lost_count_lower"],
        row["lost_count_upper"],
        gold.LOSS_CAUSES.index(row["cause"]),
        own_ranges(row),
        [found for i in row["evidence"] if (found := place(i))],
    ]
