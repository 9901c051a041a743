"""Captures of which something is lost, and what the rules about offsets and checkpoints then say: it must be nothing.

    python -m tests.support.bends.offset_losses FOLDER_OF_CAPTURES [TRIES] [FIRST_TRY]

The losses of :mod:`tests.support.bends.losses`, lines of server.log above all; and of the copies of checkpoint files
that were made: rounds that a broker or a kind of file has none of, and an older copy of a broker's data directory
beside, of which nothing says when it was made. Judged are R30 to R39, from logs, znodes, settings, copies and probes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from random import Random
from shutil import rmtree
from tempfile import mkdtemp
from typing import Final
from weakref import finalize

from reconstruct.checkpoints.evidence import HIGH_WATERMARKS, BrokerCheckpoints, CheckpointCopy, ProvenHighWatermark
from reconstruct.checkpoints.rules import judge_checkpoints
from reconstruct.clocks.timeline import correction_us
from reconstruct.cluster.view import ClusterView
from reconstruct.findings.alternatives import EvidenceRecord, FoundDivergence, Surroundings, possible_alternatives
from reconstruct.findings.verdicts import Finding
from reconstruct.offsets.clocks import DECISIONS, OffsetClocks
from reconstruct.offsets.evidence import OffsetBounds, OffsetEvidence
from reconstruct.offsets.spark.context import uncertain_clocks
from reconstruct.offsets.widest_bounds import bounds_of_versions
from tests.support.bends import losses
from tests.support.bends.losses import Loss, Said, Trial
from tests.support.captures.text import CaptureText, Lines
from tests.support.evidence.checkpoints import plain_checkpoints
from tests.support.evidence.corrected import corrected, solved
from tests.support.evidence.offsets import Known, judged_of
from tests.support.evidence.partitions import Partition, plain_capture
from tests.support.truth.offsets import read_evidence, schedules

_ALSO: Final = ("broker-*/checkpoints/*/*", "broker-*/leader-epoch-checkpoint/*", "probes-*.jsonl")
_EPOCHS: Final = "/leader-epoch-checkpoint/"
_COPIES: Final = "/checkpoints/"
#: Where an older copy of a data directory lies.
_OLDER: Final = "older"
_FILE: Final = "replication-offset-checkpoint"


# --- the losses


def lost_server_lines(text: CaptureText, chance: Random) -> tuple[str, CaptureText]:
    """A block of neighbouring lines of a server.log."""
    name = chance.choice([name for name in text.named("/server.log") if text.files[name]])
    return losses.lost_block(text, name, chance)


def lost_copies(text: CaptureText, chance: Random) -> tuple[str, CaptureText]:
    """Some of the copies of one kind of file, or of one broker's files; or all from a round on."""
    part = chance.choice([*_brokers(text), *sorted({name.split("/")[2] for name in text.named(_COPIES)})])
    round_of = {name: name.rsplit("/", 1)[1] for name in text.named(_COPIES) if part in name.split("/")}
    rounds = sorted(set(round_of.values()))
    if chance.random() < 0.5:
        first, last = sorted(chance.choices(rounds, k=2))
        gone = {at for at in rounds if first <= at <= last}
    else:
        gone = set(chance.sample(rounds, round(chance.choice((0.1, 0.5, 0.9)) * len(rounds))))
    kept = {name: lines for name, lines in text.files.items() if round_of.get(name) not in gone}
    return f"{len(gone)} of {len(rounds)} copies of {part}", CaptureText(kept)


def older_copy(text: CaptureText, chance: Random) -> tuple[str, CaptureText]:
    """A broker's data directory as it was earlier, beside what it holds now."""
    broker = chance.choice(_brokers(text))
    copies = text.named(f"{broker}{_COPIES}{_FILE}/")
    older = {} if not copies else {f"{broker}/{_OLDER}/{_FILE}": text.files[chance.choice(copies)]}
    for name in text.named(broker + _EPOCHS):
        header, entries = text.files[name][:1], text.files[name][2:]
        kept = entries[: chance.randrange(len(entries) + 1)]
        older[f"{broker}/{_OLDER}{_EPOCHS}{name.rsplit('/', 1)[1]}"] = Lines((*header, str(len(kept)), *kept))
    return f"an older copy of {broker}'s data beside", CaptureText({**text.files, **older})


def both(text: CaptureText, chance: Random) -> tuple[str, CaptureText]:
    """Copies and something else are lost."""
    said, text = lost_copies(text, chance)
    also, text = chance.choice((lost_server_lines, losses.lost_log, losses.lost_end, losses.wrong_clock))(text, chance)
    return f"{said} and {also}", text


def _brokers(text: CaptureText) -> list[str]:
    return sorted({name.split("/")[0] for name in text.named("/logs/")})


#: Each, and its share of the tries.
LOSSES: Final[Mapping[Loss, float]] = {
    lost_server_lines: 0.3,
    losses.lost_lines: 0.12,
    losses.lost_log: 0.05,
    losses.lost_broker: 0.04,
    losses.lost_logs_of_a_kind: 0.02,
    losses.lost_snapshots: 0.07,
    losses.lost_end: 0.1,
    losses.wrong_clock: 0.07,
    losses.set_clock: 0.05,
    losses.several: 0.04,
    lost_copies: 0.06,
    older_copy: 0.03,
    both: 0.05,
}


# --- what is said


class Folder:
    """A capture's text as a folder, in which from one text to the next only those files are written that differ. Each
    text has a folder of a name of its own, by which others may know what they read of it."""

    def __init__(self, name: str) -> None:
        self._above, self._name = Path(mkdtemp()), name
        finalize(self, rmtree, self._above, ignore_errors=True)
        self._number, self._files = 0, dict[str, Lines]()
        self._path().mkdir(parents=True)

    def _path(self) -> Path:
        return self._above / str(self._number) / self._name

    def of(self, text: CaptureText) -> Path:
        """The folder with this text, until the next one is asked for."""
        before = self._path()
        self._number += 1
        before.parent.rename(self._path().parent)
        for name in self._files.keys() - text.files.keys():
            self._remove(self._path() / name)
        CaptureText({name: lines for name, lines in text.files.items() if self._files.get(name) != lines}).write(
            self._path()
        )
        self._files = dict(text.files)
        return self._path()

    def _remove(self, path: Path) -> None:
        path.unlink()
        for folder in path.relative_to(self._path()).parents[:-1]:
            if any((self._path() / folder).iterdir()):
                break
            (self._path() / folder).rmdir()


class Judged:
    """What R30 to R39 say of one capture's text, whole or damaged; what a damage leaves as it was is judged once."""

    def __init__(self, name: str) -> None:
        self._folder = Folder(name)
        self._known: Known = {}
        self._bounds: dict[Partition, tuple[OffsetEvidence, ClusterView, list[OffsetBounds]]] = {}

    def said(self, text: CaptureText) -> Iterator[Said]:
        """Every finding, with its partition; no error where the second look finds another explanation."""
        segments = solved(text)
        known = uncertain_clocks({**asdict(one), "correction_us": correction_us(one)} for one in segments)
        shown = corrected(text, segments)
        # what is negligible is nothing: so most of a capture stays as it was
        clocks = OffsetClocks({broker: known.slack_us(broker) for broker in known.uncertainty_us})
        clocks = clocks.set_back(plain_capture(shown).view.set_back)
        for partition, finding in self._found(self._folder.of(shown), clocks):
            yield partition, _looked_at_again(finding)

    def _found(self, capture: Path, clocks: OffsetClocks) -> Iterator[Said]:
        view = _of_offsets(plain_capture(capture).view)
        found = read_evidence(capture, with_probes=True, clocks=clocks)
        bounds = {partition: self._bounds_of(partition, one, view) for partition, one in found.partitions.items()}
        yield from judged_of(capture, found, self._known, bounds, view)
        covered = next((one.covered for one in found.partitions.values()), {})
        for seen in plain_checkpoints(capture):
            known = _with_the_rest(seen, capture, view, clocks, covered.get(seen.broker_id, ()), bounds)
            judged = judge_checkpoints(known)
            for finding, replica in zip(judged.verdicts.findings, judged.replicas, strict=True):
                yield (None if replica is None else (replica[0], replica[2])), finding

    def _bounds_of(self, partition: Partition, evidence: OffsetEvidence, view: ClusterView) -> list[OffsetBounds]:
        before = self._bounds.get(partition)
        if before is not None and before[:2] == (evidence, view):
            return before[2]
        bounds = bounds_of_versions(evidence, view.version)
        self._bounds.setdefault(partition, (evidence, view, bounds))
        return bounds


def _of_offsets(view: ClusterView) -> ClusterView:
    """What of the cluster the rules about offsets ask for."""
    return ClusterView(
        view.cluster_id,
        view.version,
        configurations=view.configurations,
        settings=view.settings,
        set_back=view.set_back,
    )


def _with_the_rest(
    seen: BrokerCheckpoints,
    capture: Path,
    view: ClusterView,
    clocks: OffsetClocks,
    covered: Sequence[tuple[int, int]],
    bounds: Mapping[Partition, Sequence[OffsetBounds]],
) -> BrokerCheckpoints:
    """With what the job knows of a broker beside its files and lines."""
    schedule = schedules(capture).get(seen.broker_id)
    older = capture / f"broker-{seen.broker_id}" / _OLDER / _FILE
    entries = len(older.read_text().splitlines()) - 2 if older.exists() else 0
    undated = [CheckpointCopy(_OLDER, HIGH_WATERMARKS, None, entries)] if older.exists() else []
    return replace(
        seen,
        version=view.version,
        copies=[*seen.copies, *undated],
        covered=covered,
        sessions=() if schedule is None else schedule.sessions,
        written_within=None if schedule is None else schedule.interval_us + schedule.longest_stall_us,
        proven={
            (topic, "", number): [
                ProvenHighWatermark(row.valid_from, row.valid_to, row.high_watermark_lower)
                for row in rows
                if row.replica_id == seen.broker_id and row.high_watermark_lower is not None
            ]
            for (topic, number), rows in bounds.items()
        },
        clock_slack_us=clocks.slack_us(seen.broker_id),
        decided_slack_us=clocks.slack_us(DECISIONS),
        is_set_back=seen.broker_id in view.set_back,
    )


def _looked_at_again(finding: Finding) -> Finding:
    """The finding as it stands after the second look, which here knows of copies without a time alone."""
    records = [
        EvidenceRecord("", Path(name).parts[1], None, str(Path(name).parent), None if _EPOCHS in name else 0)
        for name in finding.evidence
        if "/" in name
    ]
    about = FoundDivergence("", finding.severity, finding.rule_id, str(finding.divergence_type))
    is_sure = not possible_alternatives(about, records, Surroundings((), frozenset()))
    return finding if is_sure or finding.severity != "error" else replace(finding, severity="warning")


def of_offsets(folder: Path) -> tuple[CaptureText, Trial]:
    """A capture's text with all copies, and what is lost of it and judged."""
    return CaptureText.read(folder, _ALSO), Trial(LOSSES, Judged(folder.name).said)


if __name__ == "__main__":
    sys.exit(losses.main(of_offsets))
