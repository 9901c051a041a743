"""What is read of a KRaft cluster's logs alone, held against its metadata log."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Final

from reconstruct.metadata_log.evidence import LogRow
from reconstruct.model.metadata_log.values import PartitionState
from reconstruct.partitions.leader_and_isr import LeaderAndIsrState
from tests.support.captures.text import CaptureText
from tests.support.evidence.partitions import plain_capture
from tests.support.lakes.kraft import Recorded
from tests.support.truth.alignment import Step, align, without_repeats

#: A line that was printed when it happened is no later than this.
LATEST_MS: Final = 1_000
Value = tuple[int, int, frozenset[int]]


def misread(capture: CaptureText, recorded: Recorded) -> list[str]:
    """States that were never decided, or that are observed and off by more than a second; states that a line prints
    whole and that are not found. Of topics that were created once: the plain reader takes each name for one."""
    plain = plain_capture(capture, znodes=False)
    found = [] if plain.facts else ["the logs tell of no partition"]
    for key, case in plain.fold().items():
        lives = [states for (topic, _, number), states in recorded.states.items() if (topic, number) == key]
        if len(lives) != 1:
            continue
        theirs = [Step(compared(state), row.at / 1000, note=str(state.partition_epoch)) for row, state in lives[0]]
        ours = [Step(compared(span.value), span.start / 1000, note=span.inferred_from or "") for span in case.decided]
        (aligned,) = align({key: without_repeats(theirs)}, {key: without_repeats(ours)}).alignments
        found += [f"never decided: {key} {step}" for step in aligned.extra]
        found += [
            f"{error:.0f} ms off: {key} {aligned.ours[index]}"
            for (_, index), error in zip(aligned.pairs, aligned.start_errors_ms, strict=True)
            if not aligned.ours[index].note and abs(error) > LATEST_MS
        ]
        printed = {f.partition_epoch for f in plain.facts[key] if f.isr is not None and f.leader_epoch is not None}
        epochs = {step.note: _epochs_from(int(step.note), lives[0]) for step in aligned.missed}
        found += [f"printed and missing: {key} {step}" for step in aligned.missed if epochs[step.note] & printed]
    return found


def _epochs_from(first: int, states: Sequence[tuple[LogRow, PartitionState]]) -> set[int]:
    """The partition epochs from this one on that changed neither leader nor ISR."""
    value = next(compared(state) for _, state in states if state.partition_epoch == first)
    later = (state for _, state in states if state.partition_epoch >= first)
    return {state.partition_epoch for state in takewhile(lambda state: compared(state) == value, later)}


def compared(state: PartitionState | LeaderAndIsrState) -> Value:
    return state.leader, state.leader_epoch, frozenset(state.isr)
