"""What DuckDB's ``regexp_extract`` takes to give the fields of a log's records: the measure for our own reading.

The log is read as lines, each line's header is taken apart by one expression, the message's shape is found by two
literals that it holds, and the fields of each shape by one expression more. Of the ways that were tried (one query
with a CASE that gives a MAP was the other) this is DuckDB's fastest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import duckdb

from ingest.shapes import Shape

_HEADER: Final = r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\] (TRACE|DEBUG|INFO|WARN|ERROR|FATAL) (.*) \((\S+)\)\s*$"
_PLACEHOLDER: Final = re.compile(r"\{(?:(\w*):)?(\w+)\}")
_STATE: Final = ("state_controller_epoch", "leader", "leader_epoch", "isr", "partition_epoch", "replicas")
#: A placeholder of a shape as an expression, with the fields that its groups are; those of others have its own name.
_KINDS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "int": (r"(-?\d+)", ()),
    "word": (r"(\S+)", ()),
    "bool": (r"(\w+)", ()),
    "become_type": (r"(\S+)", ()),
    "partition_state_name": (r"(\w+)", ()),
    "replica_state_name": (r"(\w+)", ()),
    "ids": (r"(?:Set\(|List\()?([\d, ]*)\)?", ()),
    "broker": (r"\S+ \(id: (-?\d+) rack: \S+\)", ()),
    "topic_partition": (r"(\S+)-(\d+)", ("topic", "partition_id")),
    "response": (r"\{error_code=(-?\d+).*\}", ("response_error",)),
    "partition_state": (
        r"PartitionState\(controllerEpoch=(-?\d+), leader=(-?\d+), leaderEpoch=(-?\d+), isr=\[?([\d, ]*)\]?,"
        r" zkVersion=(-?\d+), replicas=\[?([\d, ]*)\]?(?:, isNew=(\w+))?(?:, offlineReplicas=\[([\d, ]*)\])?\)",
        (*_STATE, "is_new", "offline_replicas"),
    ),
    "leader_and_isr": (
        r"LeaderAndIsr\(leader=(-?\d+), leaderEpoch=(-?\d+), isr=List\(([\d, ]*)\), zkVersion=(-?\d+)\)",
        ("leader", "leader_epoch", "isr", "partition_epoch"),
    ),
    "leader_isr_and_controller_epoch": (
        r"\(Leader:(-?\d+),ISR:([\d,]*),LeaderEpoch:(-?\d+),ControllerEpoch:(-?\d+)\)",
        ("leader", "isr", "leader_epoch", "state_controller_epoch"),
    ),
}


class _Expression(NamedTuple):
    shape_id: str
    regex: str
    names: list[str]
    anchors: list[str]
    literal_length: int


class DuckDbReading:
    """The records of ``log``, those of ``shapes``, in a table ``records`` in memory."""

    def __init__(self, log: Path, shapes: Sequence[Shape], threads: int) -> None:
        self._expressions = sorted(map(_expression, shapes), key=lambda one: -one.literal_length)
        self._log = log
        self.connection = duckdb.connect(config={"threads": threads})
        self.connection.execute("SET preserve_insertion_order = false")

    def run(self) -> None:
        lines = (
            f"read_csv({_quoted(str(self._log))}, columns = {{'line': 'VARCHAR'}}, delim = '\x01', quote = '',"
            " escape = '', header = false, auto_detect = false, new_line = '\\n', max_line_size = 16000000)"
        )
        header = f"regexp_extract(line, {_quoted(_HEADER)}, ['time', 'level', 'message', 'logger'])"
        whens = (
            f"WHEN {' AND '.join(f'contains(message, {_quoted(text)})' for text in one.anchors)}"
            f" THEN {_quoted(one.shape_id)}"
            for one in self._expressions
        )
        self.connection.execute(
            f"""CREATE OR REPLACE TEMP TABLE headed AS
            SELECT *, CASE {" ".join(whens)} END AS shape_id FROM (
              SELECT replace(h.time, ',', '.')::TIMESTAMP AS event_time, h.level AS log_level, h.message AS message,
                h.logger AS logger
              FROM (SELECT {header} AS h FROM {lines}) WHERE h.time <> '')"""
        )
        typed = " UNION ALL BY NAME ".join(
            f"""SELECT *, unnest(regexp_extract(message, {_quoted(one.regex)}, {one.names}))
            FROM headed WHERE shape_id = {_quoted(one.shape_id)}"""
            for one in self._expressions
        )
        self.connection.execute(f"CREATE OR REPLACE TEMP TABLE records AS {typed}")

    def counts(self, column: str) -> dict[str, int]:
        """How often each value of a column stands in the records."""
        rows = self.connection.execute(
            f"SELECT {column}, count(*) FROM records WHERE {column} <> '' GROUP BY ALL"
        ).fetchall()
        return dict(rows)


def _expression(shape: Shape) -> _Expression:
    parts, names, position = [], [], 0
    for placeholder in _PLACEHOLDER.finditer(shape.pattern):
        parts.append(re.escape(shape.pattern[position : placeholder.start()]))
        position = placeholder.end()
        regex, own = _KINDS.get(placeholder[2], (r"(.*)", ()))
        for name in own or (placeholder[1] or "unnamed",):
            names.append(name if name not in names else f"{name}_{len(names)}")
        parts.append(regex)
    parts.append(re.escape(shape.pattern[position:]))
    literals = _PLACEHOLDER.split(shape.pattern)[::3]
    return _Expression(
        shape.id,
        f"^{''.join(parts)}$",
        names,
        [literal.strip() for literal in sorted(literals[1:], key=len)[-2:]],
        sum(map(len, literals)),
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
