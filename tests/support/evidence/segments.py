"""What R40 and R41 are judged by, of a capture's folder and without Spark: directories below ``broker-N/data``, and
lines of server.log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ingest.readers.log_dirs import indexes, names
from ingest.readers.log_dirs.segments import SegmentSummary, summarise
from reconstruct.findings.rule import judge
from reconstruct.findings.verdicts import Verdicts
from reconstruct.offsets.messages import logged_replica_events
from reconstruct.offsets.spark.step import log_changes
from reconstruct.segments.entries import Sampled, SegmentSamples, judged_entries
from reconstruct.segments.evidence import LogChange, LogChangeKind, SegmentEvidence, SegmentFiles
from reconstruct.segments.lines import SEGMENT_ACTS, SegmentLine, segment_act
from reconstruct.segments.rules import RULES
from reconstruct.segments.spark.evidence import SAMPLED
from tests.support.captures.text import CaptureText
from tests.support.evidence.lines import Line, Partition, by_partition, matched_lines

#: Between which instants the copy of every directory is taken to be made; None: nothing says.
CopiedAt = tuple[int, int] | None
#: Another content of a file, by its path below the capture; None: it is not there.
Edits = Mapping[str, bytes | None]


def segment_evidence(
    capture: Path, copied_at: CopiedAt = None, edits: Edits | None = None, text: CaptureText | None = None
) -> dict[Partition, SegmentEvidence]:
    """By partition, all replicas; ``text`` takes the place of the capture's logs, ``edits`` that of files of data."""
    files = _files(capture, copied_at, edits or {})
    acts: dict[Partition, list[Any]] = {}
    changes: dict[Partition, list[LogChange]] = {}
    starts = []
    for line in matched_lines(CaptureText.read(capture) if text is None else text):
        if line.source_kind != "server_log":
            continue
        if line.event_type == "broker_server_starting":
            starts.append(LogChange(line.broker_id, LogChangeKind.STARTED, line.at))
        for partition, act in _acts(line):
            acts.setdefault(partition, []).append(act)
        for partition, event in logged_replica_events(line.broker_id, line.at, line.id, line.event_type, line.fields):
            changes.setdefault(partition, []).extend(log_changes([event]))
    return {
        partition: SegmentEvidence(
            files.get(partition, ()), acts.get(partition, ()), [*changes.get(partition, ()), *starts]
        )
        for partition in sorted({*files, *acts})
    }


def judged_segments(evidence: Mapping[Partition, SegmentEvidence]) -> dict[Partition, Verdicts]:
    """The verdicts of every partition."""
    found = {}
    for partition, one in evidence.items():
        found[partition] = verdicts = Verdicts()
        judge(RULES, one, verdicts)
    return found


def _acts(line: Line) -> Iterator[tuple[Partition, Any]]:
    if line.event_type in SEGMENT_ACTS:
        for partition, fields in by_partition(line.fields):
            act = segment_act(
                SegmentLine(line.broker_id, line.event_type, line.at, fields, line.id, line.file, line.number)
            )
            if partition is not None and act is not None:
                yield partition, act


def _files(capture: Path, copied_at: CopiedAt, edits: Edits) -> dict[Partition, list[SegmentFiles]]:
    segments: dict[tuple[int, Partition, int], dict[str, Any]] = {}
    there = {str(path.relative_to(capture)) for path in capture.glob("broker-*/data/*/*")} | set(edits)
    for name in sorted(there):
        broker, _, directory, file = name.split("/")
        found = names.partition_file(file)
        content = edits[name] if name in edits else (capture / name).read_bytes()
        if found is None or found.base_offset is None or content is None or not file.endswith(("log", "index")):
            continue
        topic, number = directory.rsplit("-", 1)
        replica = int(broker.removeprefix("broker-"))
        key = (replica, (topic, int(number)), found.base_offset)
        segments.setdefault(key, {"files": ()}).update(_read(found.file_kind, content, found.base_offset))
        segments[key]["files"] += (name,)
    last = {(key[0], key[1]): max(other[2] for other in segments if other[:2] == key[:2]) for key in segments}
    result: dict[Partition, list[SegmentFiles]] = {}
    at, upper = copied_at or (None, None)
    for (replica, partition, base), known in segments.items():
        is_last = last[replica, partition] == base
        result.setdefault(partition, []).append(
            SegmentFiles(replica, base, "copy", is_last, at, upper, **_with_entries(known, is_last))
        )
    return result


def _read(kind: str, content: bytes, base: int) -> dict[str, Any]:
    """What one file of a segment says of it, and its sample by its kind."""
    if kind == "log_segment":
        segment = summarise([content], base)
        return {
            "size_bytes": segment.size_bytes,
            "valid_bytes": segment.valid_bytes,
            "next_offset": segment.next_offset,
            "segment_problem": segment.problem,
            "max_timestamp": segment.max_timestamp,
            kind: _sampled(segment),
        }
    if kind == "offset_index":
        index = indexes.offset_index([content], base)
        found = {
            "index_entries_count": index.entries_count,
            "last_indexed_offset": index.last_indexed_offset,
            "last_indexed_position": index.last_indexed_position,
        }
    else:
        index = indexes.time_index([content], base)
        found = {"last_timed_offset": index.last_indexed_offset}
    return found | {kind: _sampled(index)} | ({"index_problem": index.problem} if index.problem else {})


def _sampled(file: SegmentSummary | indexes.IndexSummary) -> Sampled:
    lists = (file.sampled_positions, file.sampled_offsets, file.sampled_timestamps)
    return Sampled(file.sampled_one_in or 1, *(found or () for found in lists))


def _with_entries(known: dict[str, Any], is_last: bool) -> dict[str, Any]:
    """With what the indexes' entries are found to be, in place of the samples."""
    batches, *held = (known.pop(kind, None) for kind in SAMPLED)
    max_timestamp = known.pop("max_timestamp", None)
    if batches is None:
        return known
    most = None if max_timestamp is None else max_timestamp // 1000
    is_open = is_last or known["segment_problem"] is not None
    seen = judged_entries(SegmentSamples(known["valid_bytes"], is_open, most, batches, *held))
    return known | {"entries_count": seen.count, "entries_one_in": seen.one_in, "entry_problem": seen.problem}
