"""Evidence as text tables: a test reads like the case it describes."""

from __future__ import annotations

from reconstruct.partitions.evidence import Evidence
from reconstruct.partitions.leader_and_isr import LeaderAndIsrState

_INTS = {
    "broker_id",
    "controller_id",
    "controller_epoch",
    "state_controller_epoch",
    "replica_id",
    "leader",
    "leader_epoch",
    "partition_epoch",
    "correlation_id",
    "offset",
    "leader_recovery_state",
}
_LISTS = {"isr", "old_isr", "replicas", "adding_replicas", "removing_replicas", "to_broker_ids"}
_SHORT = {
    "id": "evidence_id",
    "broker": "broker_id",
    "by": "controller_id",
    "cepoch": "controller_epoch",
    "epoch": "leader_epoch",
    "version": "partition_epoch",
    "replica": "replica_id",
    "from": "from_state",
    "to": "to_state",
    "corr": "correlation_id",
    "stored_cepoch": "state_controller_epoch",
    "source": "source_kind",
    "level": "log_level",
}


def facts(table: str) -> list[Evidence]:
    """Rows of ``a | b`` under a header; ``at`` in milliseconds; an empty cell is None, ``[]`` an empty list."""
    lines = [line.strip() for line in table.strip().splitlines() if line.strip() and not line.strip().startswith("#")]
    names = [_SHORT.get(name.strip(), name.strip()) for name in lines[0].split("|")]
    result = []
    for number, line in enumerate(lines[1:], 1):
        cells = [cell.strip() for cell in line.split("|")]
        assert len(cells) == len(names), line
        values = {name: _value(name, cell) for name, cell in zip(names, cells, strict=True) if cell}
        values["at"] = int(values["at"]) * 1000
        values.setdefault("evidence_id", f"e{number}")
        values.setdefault("offset", number)
        values.setdefault("source_kind", "state_change_log")
        result.append(Evidence(**values))
    return result


def _value(name: str, cell: str) -> object:
    if name in _INTS:
        return int(cell)
    if name in _LISTS:
        return tuple(int(part) for part in cell.strip("[]").split(",") if part.strip())
    return cell


def shown(state: LeaderAndIsrState) -> str:
    """``leader/epoch [isr]``."""
    return f"{state.leader}/{state.leader_epoch} {list(state.isr)}"
