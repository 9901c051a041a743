"""What a broker's own log says of checkpoint files that it could not read, or that were gone while it ran."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from reconstruct.checkpoints.evidence import CHECKPOINT_KINDS, BrokerLine, LineKind
from reconstruct.checkpoints.restart_effects import FILE_NAMES, restart_with_unreadable
from reconstruct.checkpoints.verdicts import RULE, CheckpointVerdicts
from reconstruct.checkpoints.view import BrokerView
from reconstruct.findings.divergences import DivergenceType
from reconstruct.time.instants import utc

#: A file that something else than Kafka removed, as Java says it on Unix and on Windows.
_GONE: Final = re.compile(
    r"NoSuchFileException|FileNotFoundException: .*(?:No such file|cannot find the (?:file|path))"
)
#: What Kafka itself says that a file holds: OffsetCheckpoint (to 0.10), CheckpointFile (0.11 and later), and Java of a
#: number that is none. Whatever else ends a read or a write (a full disk, rights, a lock) says nothing of the content.
_MALFORMED: Final = re.compile(
    r"Malformed line in|Expected .*\bentries\b.*found only|Unrecogni[sz]ed version|NumberFormatException"
)


def names_file(line: BrokerLine, kind: str) -> bool:
    """Whether a line is about the broker's checkpoint file of a kind."""
    return FILE_NAMES[kind] in line.path or FILE_NAMES[kind] in line.cause


def judge_unreadable(view: BrokerView, explained: set[str], out: CheckpointVerdicts) -> None:
    """Files that the broker could not read, of which no damaged copy was given: one finding per start and file; and
    files that it did not find: one per start and directory, whose files went together."""
    unreadable: dict[tuple[int | None, str], BrokerLine] = {}
    removed: dict[tuple[int | None, str], dict[str, BrokerLine]] = {}
    for line in view.lines_in(0, None, LineKind.UNREADABLE):
        kind = next((kind for kind in CHECKPOINT_KINDS if names_file(line, kind)), None)
        if kind is None:
            continue
        is_gone = _GONE.search(line.cause) is not None
        if not is_gone and line.cause and not _MALFORMED.search(line.cause):
            out.verdicts.unjudged(RULE)
            continue
        life = view.next_start(line.at)
        if any(line.at >= at and view.next_start(at) == life for at in _explained_at(view, explained, kind)):
            continue
        if (life, kind) in unreadable:
            continue
        if is_gone:
            removed.setdefault((life, _directory(line, kind)), {}).setdefault(kind, line)
        elif not any(life == other and kind in lines for (other, _), lines in removed.items()):
            unreadable[life, kind] = line
    for (life, file_kind), line in unreadable.items():
        _unreadable(view, file_kind, line, life, out)
    for (life, _), lines in removed.items():
        _removed(view, lines, life, out)


def _directory(line: BrokerLine, kind: str) -> str:
    """Of a file that a line names: as its cause has it, else as the line itself."""
    for text in (line.cause, line.path):
        found = re.search(rf"(\S*)[/\\\\]{re.escape(FILE_NAMES[kind])}", text)
        if found:
            return found[1]
    return ""


def _unreadable(view: BrokerView, kind: str, line: BrokerLine, life: int | None, out: CheckpointVerdicts) -> None:
    failed, name = _failed_after(view, line, life), FILE_NAMES[kind]
    out.report(
        DivergenceType.CHECKPOINT_MALFORMED,
        "error",
        line.at,
        f"a {name} that Kafka can read",
        line.cause or "one that it cannot",
        f"Broker {view.broker_id} could not read its {name} ({utc(line.at)}): {line.cause or 'see the line'}."
        f" By the rules: {restart_with_unreadable(kind, view.version)}.{_directories(failed)}",
        [line.evidence_id, *(f.evidence_id for f in failed[:4])],
    )


def _removed(view: BrokerView, lines: Mapping[str, BrokerLine], life: int | None, out: CheckpointVerdicts) -> None:
    first = next(iter(lines.values()))
    failed, names = _failed_after(view, first, life), " and ".join(FILE_NAMES[kind] for kind in lines)
    them, does = ("it", "the file") if len(lines) == 1 else ("them", "the files")
    rules = dict.fromkeys(restart_with_unreadable(kind, view.version) for kind in lines)
    out.report(
        DivergenceType.CHECKPOINT_MISSING,
        "warning",
        first.at,
        f"a {names} that Kafka can read",
        first.cause,
        f"Broker {view.broker_id} did not find its {names} ({utc(first.at)}): {first.cause}. It makes {does} when it"
        f" starts and never removes {them}: something else did. By the rules: {'; '.join(rules)}."
        + _directories(failed),
        [*(line.evidence_id for line in lines.values()), *(f.evidence_id for f in failed[:4])],
    )


def _failed_after(view: BrokerView, line: BrokerLine, life: int | None) -> list[BrokerLine]:
    return [f for f in view.lines_in(line.at, life, LineKind.DIRECTORY_FAILED) if f.path]


def _directories(failed: Sequence[BrokerLine]) -> str:
    return "".join(f" Log directory {f.path} failed ({utc(f.at)})." for f in failed[:2])


def _explained_at(view: BrokerView, explained: set[str], kind: str) -> list[int]:
    return [
        line.at
        for line in view.lines_in(0, None, LineKind.UNREADABLE)
        if line.evidence_id in explained and names_file(line, kind)
    ]
