"""Changes as rows of ``silver.metadata_changes``, and what was judged beside them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from ingest.lake.tables.events import METADATA_CHANGES
from reconstruct.engine.rows import Row, table_row
from reconstruct.metadata_log.timeline import MetadataChange
from reconstruct.model.metadata_log.commitment import Commitment
from reconstruct.model.metadata_log.values import BrokerState, ConfigState, Kind, Subject


def change_row(change: MetadataChange, /, **given: Any) -> dict[str, Any]:
    """One row; ``given`` beside it are the cluster and the topic."""
    subject = change.subject
    return table_row(
        METADATA_CHANGES,
        change,
        subject_kind=subject.kind,
        subject=subject.name,
        topic_incarnation=subject.name if subject.kind in (Kind.TOPIC, Kind.PARTITION) else None,
        partition_id=subject.partition_id if subject.kind is Kind.PARTITION else None,
        state=None if change.state is None else json.dumps(asdict(change.state)),
        leader_epoch=change.epoch,
        changed_at=change.at,
        **given,
    )


def change_rows(changes: list[MetadataChange], /, **given: Any) -> Iterator[dict[str, Any]]:
    """Of the changes of one group."""
    return (change_row(change, **given) for change in changes)


def change_of(row: Row) -> MetadataChange:
    """A row of a broker or of settings as a change; its instants are microseconds, its lists tuples."""
    kind = Kind(row["subject_kind"])
    state = None if row["state"] is None else json.loads(row["state"])
    if state is not None and kind is Kind.CONFIG:
        state = ConfigState(tuple((name, value) for name, value in state["settings"]))
    elif state is not None:
        state = BrokerState(**state | {"log_dirs": tuple(state["log_dirs"])})
    return MetadataChange(
        Subject(kind, row["subject"]),
        state,
        row["offset"],
        row["leader_epoch"],
        row["at"],
        tuple(row["evidence"]),
        row["record_type"],
        Commitment(row["commitment"]),
        row["inferred_from"],
    )
