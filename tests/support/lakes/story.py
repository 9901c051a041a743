"""A story of a made-up cluster, told row by row: who led, who was assigned, what was logged, when it was down."""

from __future__ import annotations

from typing import Any, Final

from ingest.lake.delta import Lake
from ingest.lake.tables import TABLES, TableSpec
from ingest.lake.tables import bronze as b
from ingest.lake.tables import gold as g
from ingest.lake.tables import quality as q
from ingest.lake.tables import silver as s
from ingest.shapes.templates import normalised_template
from tests.support.lakes.rows import append, at, row_of

CLUSTER: Final = "vX3kQ0nTR7-fixture"


class Story:
    """Rows gathered by table, written in one append each."""

    def __init__(self, cluster_id: str = CLUSTER) -> None:
        self.cluster_id = cluster_id
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self._sequence: dict[tuple[Any, ...], int] = {}

    def add(self, spec: TableSpec, **values: Any) -> None:
        """One row of a table, checked by its spec; of this story's cluster, and the next in its sequence."""
        usual = {"cluster_id": self.cluster_id, "model_version": "fixture"}
        row = row_of(spec, {name: value for name, value in usual.items() if name in spec.column_names} | values)
        if "sequence" in spec.column_names:
            key = (spec.full_name, *(row[name] for name in spec.key if name != "sequence"))
            row["sequence"] = values.get("sequence", self._sequence.get(key, 0))
            self._sequence[key] = row["sequence"] + 1
        self.rows.setdefault(spec.full_name, []).append(row)

    def log(self, record: str, broker: int, kind: str, line: int, when: float, message: str, **values: Any) -> None:
        """One row of bronze.log_records."""
        name = {"state_change_log": "state-change.log", "controller_log": "controller.log"}.get(kind, "server.log")
        text = at(when).strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
        row = {
            "record_id": record,
            "file_id": f"f{broker}-{kind}",
            "broker_id": broker,
            "source_kind": kind,
            "source_file": f"broker-{broker}/logs/{name}",
            "source_line": line,
            "byte_offset": line * 100,
            "byte_length": 100,
            "event_time": when,
            "event_time_text": text,
            "log_level": "INFO",
            "message": message,
            "event_type": "unrecognised",
            "logger": "state.change.logger",
        }
        self.add(b.LOG_RECORDS, **(row | values))

    def file(self, broker: int, kind: str, name: str, read: int, rejected: int = 0, **values: Any) -> None:
        """One row of bronze.ingested_files, and its coverage."""
        row = {
            "file_id": f"f{broker}-{kind}-{name}",
            "broker_id": broker,
            "source_kind": kind,
            "source_file": f"broker-{broker}/logs/{name}",
            "compression": "none",
            "status": "ingested",
            "size_bytes": read * 180,
            "ingested_bytes": read * 180,
            "records_read_count": read,
            "records_kept_count": read - rejected,
            "records_rejected_count": rejected,
            "first_event_time": 0,
            "last_event_time": 600,
            "level_floor": "TRACE",
            "time_zone": "UTC",
            "kafka_version": "1.1.1",
        } | values
        self.add(b.INGESTED_FILES, **row)
        if row["status"] == "ingested" and row["first_event_time"] is not None:
            self.add(
                q.EVIDENCE_COVERAGE,
                source_kind=kind,
                broker_id=broker,
                source_file=row["source_file"],
                coverage="covered",
                level_floor=row["level_floor"],
                valid_from=row["first_event_time"],
                valid_to=row["last_event_time"],
                records_count=read - rejected,
            )

    def led(self, topic: str, partition: int, *steps: tuple[Any, ...], until: float | None = None) -> None:
        """Leader-and-ISR rows: each step is (from seconds, leader, leader epoch, isr[, values])."""
        ends = [*(step[0] for step in steps[1:]), until]
        for number, (step, end) in enumerate(zip(steps, ends, strict=True)):
            begin, leader, epoch, isr, *more = step
            self.add(
                s.LEADER_AND_ISR_TIMELINE,
                **(
                    {
                        "topic": topic,
                        "partition_id": partition,
                        "leader": leader,
                        "leader_epoch": epoch,
                        "isr": isr,
                        "controller_epoch": 1,
                        "partition_epoch": number,
                        "valid_from": begin,
                        "valid_to": end,
                        "written_by": "controller",
                    }
                    | (more[0] if more else {})
                ),
            )

    def assigned(self, topic: str, partition: int, replicas: list[int], begin: float = 5) -> None:
        self.add(
            s.ASSIGNMENT_TIMELINE,
            topic=topic,
            partition_id=partition,
            replicas=replicas,
            valid_from=begin,
        )

    def unavailable(
        self, topic: str, partition: int, kind: str, begin: float, end: float | None, **values: Any
    ) -> None:
        self.add(
            g.AVAILABILITY_INTERVALS,
            **(
                {
                    "topic": topic,
                    "partition_id": partition,
                    "kind": kind,
                    "valid_from": begin,
                    "valid_to": end,
                }
                | values
            ),
        )

    def _tell_unrecognised(self) -> None:
        """quality.unrecognised_templates of the story's own log records, as the reconstruction makes them."""
        groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
        for row in self.rows.get(b.LOG_RECORDS.full_name, ()):
            if row["event_type"] == "unrecognised":
                key = (row["source_kind"], row["logger"], normalised_template(row["message"]))
                groups.setdefault(key, []).append(row)
        for (kind, logger, template), found in groups.items():
            first = min(found, key=lambda row: (row["event_time"], row["record_id"]))
            self.add(
                q.UNRECOGNISED_TEMPLATES,
                kafka_version="unknown",
                source_kind=kind,
                logger=logger,
                template=template,
                records_count=len(found),
                log_level=first["log_level"],
                example_record_id=first["record_id"],
                source_file=first["source_file"],
                source_line=first["source_line"],
            )

    def write(self, lake: Lake) -> None:
        self._tell_unrecognised()
        for name, rows in self.rows.items():
            append(lake, TABLES[name], rows)
