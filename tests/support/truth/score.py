"""Measure a reconstruction against the truth in ZooKeeper's transaction log.

    python -m tests.support.truth.score CAPTURE ROWS.json [--cluster ID]

CAPTURE is a capture's folder or its packed ``.tar.xz``; ROWS.json holds rows of ``silver.leader_and_isr_timeline`` as
one array of objects, as ``kafka-state-replay sql --format json`` prints them.

The measure of states, here and in every later issue: per topic and partition, over all incarnations of the topic in
the order of time, consecutive equal states removed, deletions left out, (leader, leader epoch, ISR as a set) compared
in order by longest common subsequence. *Recall* is the share of the truth that the reconstruction holds, *extras* the
share of the reconstruction that the truth does not hold.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.support.truth.alignment import Score, Step, align, instant_ms, overlap, without_repeats
from tests.support.truth.decisions import Truth, Write, read_truth

Row = Mapping[str, Any]

_EXISTS: Final = "exists"


def score_states(truth: Truth, rows: Iterable[Row]) -> Score:
    """Score rows of ``silver.leader_and_isr_timeline`` by the measure above."""
    ours = {
        key: without_repeats(
            [
                Step(
                    (row["leader"], row["leader_epoch"], frozenset(row["isr"])),
                    instant_ms(row["valid_from"]),
                    note=_provenance(row),
                )
                for row in group
            ]
        )
        for key, group in _by_partition(rows).items()
    }
    theirs = {
        key: without_repeats(
            [Step(state.state, state.write.time_ms, note=f"zxid {state.write.zxid}") for state in states]
        )
        for key, states in truth.states_by_partition().items()
    }
    return align(theirs, ours)


def score_assignments(truth: Truth, rows: Iterable[Row]) -> Score:
    """Score rows of ``silver.assignment_timeline``: (replicas in order) per topic and partition, in order."""
    ours = {
        key: without_repeats([Step(tuple(row["replicas"]), instant_ms(row["valid_from"])) for row in group])
        for key, group in _by_partition(rows).items()
    }
    groups: dict[Any, list[Step]] = {}
    for assignment in truth.assignments:
        step = Step(assignment.replicas, assignment.write.time_ms, note=f"zxid {assignment.write.zxid}")
        groups.setdefault((assignment.topic, assignment.partition_id), []).append(step)
    return align({key: without_repeats(steps) for key, steps in groups.items()}, ours)


def score_controllers(truth: Truth, rows: Iterable[Row]) -> Score:
    """Score rows of ``silver.controller_epoch_timeline``: (controller epoch, controller) of one cluster, in order."""
    ordered = sorted(rows, key=lambda row: (row["controller_epoch"], instant_ms(row["valid_from"]) or 0.0))
    ours = [Step((row["controller_epoch"], row["controller_id"]), instant_ms(row["valid_from"])) for row in ordered]
    theirs = [Step((t.controller_epoch, t.controller_id), t.elected.time_ms) for t in truth.controllers]
    return align({"controller": theirs}, {"controller": ours})


def score_liveness(truth: Truth, rows: Iterable[Row]) -> Score:
    """Score rows of ``silver.broker_liveness_timeline``: per broker, registrations that overlap, in order.

    Begin and end are compared by the alignments' errors, not by the match.
    """
    ours: dict[Any, list[Step]] = {}
    for row in sorted(rows, key=lambda row: (row["broker_id"], row["sequence"])):
        ours.setdefault(row["broker_id"], []).append(_interval(row))
    theirs: dict[Any, list[Step]] = {}
    for registration in truth.registrations:
        theirs.setdefault(registration.broker_id, []).append(_life(registration.began, registration.ended))
    return align(theirs, ours, overlap)


def score_existence(truth: Truth, rows: Iterable[Row]) -> Score:
    """Score when partitions existed: each incarnation from its first to its last row, against the truth's lives.

    ``rows`` are those of any timeline keyed by partition; rows in state ``NonExistentPartition`` do not count.
    """
    groups: dict[tuple[Any, Any, Any], list[Row]] = {}
    for row in rows:
        if row.get("state") != "NonExistentPartition":
            groups.setdefault((row["topic"], row["partition_id"], row["topic_incarnation"]), []).append(row)
    ours: dict[Any, list[Step]] = {}
    for (topic, partition_id, _), group in groups.items():
        begins = [begin for row in group if (begin := instant_ms(row["valid_from"])) is not None]
        ends = [instant_ms(row["valid_to"]) for row in group]
        end = None if None in ends else max(end for end in ends if end is not None)
        ours.setdefault((topic, partition_id), []).append(Step(_EXISTS, min(begins), end))
    theirs: dict[Any, list[Step]] = {}
    for life in truth.partitions:
        theirs.setdefault((life.topic, life.partition_id), []).append(_life(life.created, life.deleted))
    in_time = {key: sorted(steps, key=lambda step: step.from_ms or 0.0) for key, steps in ours.items()}
    return align(theirs, in_time, overlap)


def table(scores: Mapping[str, Score]) -> str:
    """The figures, one line per name: counts, recall, extras, and how far the times are off."""
    head = (
        f"{'':<28}{'truth':>7}{'ours':>7}{'missed':>8}{'extra':>7}{'recall':>9}{'extras':>9}"
        f"{'median ms':>11}{'p95 ms':>9}"
    )
    return "\n".join([head, *(_line(name, score) for name, score in scores.items())])


def _line(name: str, score: Score) -> str:
    errors = sorted(abs(error) for error in score.start_errors_ms)
    middle, late = (errors[len(errors) // 2], errors[len(errors) * 95 // 100]) if errors else (0.0, 0.0)
    missed, extra = score.truth_count - score.matched_count, score.ours_count - score.matched_count
    return (
        f"{name:<28}{score.truth_count:>7}{score.ours_count:>7}{missed:>8}{extra:>7}{score.recall:>9.1%}"
        f"{score.extras:>9.1%}{middle:>11.0f}{late:>9.0f}"
    )


def _by_partition(rows: Iterable[Row]) -> dict[tuple[str, int], list[Row]]:
    """The rows of each topic and partition: incarnations in the order of their first instant, then by sequence."""
    groups: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["topic"], row["partition_id"]), []).append(row)
    return {key: _in_time(group) for key, group in groups.items()}


def _in_time(rows: Sequence[Row]) -> list[Row]:
    begins: dict[Any, float] = {}
    for row in rows:
        begin = instant_ms(row["valid_from"]) or 0.0
        begins[row["topic_incarnation"]] = min(begin, begins.get(row["topic_incarnation"], begin))
    return sorted(rows, key=lambda row: (begins[row["topic_incarnation"]], row["topic_incarnation"], row["sequence"]))


def _provenance(row: Row) -> str:
    version = row.get("partition_epoch")
    evidence = [str(item) for item in row.get("evidence") or ()]
    parts = ("" if version is None else f"v{version}", row.get("inferred_from") or "", *evidence[:2])
    return " ".join(part for part in parts if part)


def _interval(row: Row) -> Step:
    return Step(_EXISTS, instant_ms(row["valid_from"]), instant_ms(row["valid_to"]))


def _life(began: Write, ended: Write | None) -> Step:
    return Step(_EXISTS, began.time_ms, ended.time_ms if ended else None)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="score", description="Measure leader-and-ISR rows against ZooKeeper's log.")
    parser.add_argument("capture", type=Path, metavar="CAPTURE", help="folder of a capture, or its .tar.xz")
    parser.add_argument("rows", type=Path, metavar="ROWS.json", help="rows of silver.leader_and_isr_timeline")
    parser.add_argument("--cluster", help="only rows of this cluster_id")
    arguments = parser.parse_args(argv)
    rows = [row for row in json.loads(arguments.rows.read_text()) if arguments.cluster in (None, row.get("cluster_id"))]
    score = score_states(_truth_at(arguments.capture), rows)
    print(table({arguments.capture.name.removesuffix(".tar.xz"): score}))
    print(score.diff() or "no difference")
    return 0


def _truth_at(capture: Path) -> Truth:
    if capture.is_dir():
        return read_truth(capture)
    from tests.support.captures.packed import extract

    with tempfile.TemporaryDirectory() as folder:
        return read_truth(extract(capture, Path(folder)))


if __name__ == "__main__":
    raise SystemExit(main())
