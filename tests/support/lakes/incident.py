"""Lakes made by hand, by the table specs: what the report's tests look at.

Nothing here is a capture: :func:`write_incident` is a small story told row by row (a follower falls behind, its
leader dies, an unclean election), :func:`write_wide` is many partitions of a made-up cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_type

from ingest.lake.delta import Lake
from ingest.lake.tables import TABLES, TableSpec
from ingest.lake.tables import bronze as b
from ingest.lake.tables import gold as g
from ingest.lake.tables import quality as q
from ingest.lake.tables import silver as s
from ingest.shapes.templates import normalised_template

START: Final = datetime(2026, 11, 21, 10, 0, 0, tzinfo=UTC)
CLUSTER: Final = "vX3kQ0nTR7-fixture"
#: What a hostile client can put into a log, and so into every table.
HOSTILE: Final = (
    "</script><script>document.title='PWNED'</script>",
    "<!--<script>document.title='PWNED'//",
    "<img src=x onerror=\"document.title='PWNED'\">",
    "line\u2028separator\u2029and \u202eright-to-left and \x1b[31mescape",
    "{{ 7*7 }} {% raw %} ${7*7} ']}; document.title='PWNED'; //",
)
_DEFAULTS: Final[Mapping[str, Any]] = {
    "string": "",
    "int": 0,
    "bigint": 0,
    "double": 0.0,
    "boolean": False,
    "timestamp": START,
    "array<int>": [],
    "array<string>": [],
    "map<string,string>": {},
}


def at(seconds: float) -> datetime:
    """The instant so many seconds after the story begins."""
    return START + timedelta(milliseconds=round(seconds * 1000))


def append(lake: Lake, spec: TableSpec, rows: Iterable[Mapping[str, Any]]) -> None:
    """Append rows given as mappings; what a mapping leaves out is NULL, or empty where NULL is not allowed."""
    filled = []
    for row in rows:
        unknown = set(row) - set(spec.column_names)
        if unknown:
            raise ValueError(f"{spec.full_name} has no column {', '.join(sorted(unknown))}")
        default = {c.name: None if c.nullable else _DEFAULTS[c.type] for c in spec.columns}
        filled.append(default | dict(row))
    if filled:
        lake.append(frame_of(lake, spec, filled), spec)


def frame_of(lake: Lake, spec: TableSpec, rows: Iterable[Mapping[str, Any]]) -> DataFrame:
    """Rows of a table, each with all its columns, any of which may be NULL.

    They go by way of Arrow: tuples would be turned by Python workers, which costs more than to write them.
    """
    schema = pa.schema([(field.name, to_arrow_type(field.dataType)) for field in spec.struct.fields])
    return lake.spark.createDataFrame(pa.Table.from_pylist([dict(row) for row in rows], schema))


class Story:
    """Rows gathered by table, written in one append each."""

    def __init__(self, cluster_id: str = CLUSTER) -> None:
        self.cluster_id = cluster_id
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self._sequence: dict[tuple[Any, ...], int] = {}

    def add(self, spec: TableSpec, **values: Any) -> None:
        row: dict[str, Any] = {}
        if "cluster_id" in spec.column_names:
            row["cluster_id"] = self.cluster_id
        if "model_version" in spec.column_names:
            row["model_version"] = "fixture"
        row |= values
        if "sequence" in spec.column_names:
            key = (spec.full_name, *(row.get(name) for name in spec.key if name != "sequence"))
            row.setdefault("sequence", self._sequence.get(key, 0))
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
            "event_time": at(when),
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
            "first_event_time": at(0),
            "last_event_time": at(600),
            "level_floor": "TRACE",
            "time_zone": "UTC",
            "kafka_version": "1.1.1",
        } | values
        self.add(b.INGESTED_FILES, **row)
        if row["status"] == "ingested" and row["first_event_time"]:
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
                        "topic_incarnation": f"{topic}-1",
                        "partition_id": partition,
                        "leader": leader,
                        "leader_epoch": epoch,
                        "isr": isr,
                        "controller_epoch": 1,
                        "partition_epoch": number,
                        "valid_from": at(begin),
                        "valid_to": None if end is None else at(end),
                        "written_by": "controller",
                    }
                    | (more[0] if more else {})
                ),
            )

    def assigned(self, topic: str, partition: int, replicas: list[int], begin: float = 5) -> None:
        self.add(
            s.ASSIGNMENT_TIMELINE,
            topic=topic,
            topic_incarnation=f"{topic}-1",
            partition_id=partition,
            replicas=replicas,
            valid_from=at(begin),
        )

    def unavailable(
        self, topic: str, partition: int, kind: str, begin: float, end: float | None, **values: Any
    ) -> None:
        self.add(
            g.AVAILABILITY_INTERVALS,
            **(
                {
                    "topic": topic,
                    "topic_incarnation": f"{topic}-1",
                    "partition_id": partition,
                    "kind": kind,
                    "valid_from": at(begin),
                    "valid_to": None if end is None else at(end),
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


def write_incident(lake: Lake, cluster_id: str = CLUSTER, topic: str = "ledger") -> None:
    """Three brokers, four partitions, ten minutes: broker 1, controller and leader, dies behind a shrunken ISR."""
    story = Story(cluster_id)
    for broker in (1, 2, 3):
        story.file(
            broker,
            "state_change_log",
            "state-change.log",
            400 + broker,
            rejected=2 if broker == 3 else 0,
            last_event_time=at(245.6 if broker == 1 else 600),
        )
        story.file(
            broker,
            "server_log",
            "server.log",
            900,
            level_floor="INFO",
            last_event_time=at(245.6 if broker == 1 else 600),
        )
    story.file(1, "controller_log", "controller.log", 120, last_event_time=at(245.6))
    story.file(2, "controller_log", "controller.log", 80, first_event_time=at(251.9))
    story.file(
        2,
        "unrecognised",
        "notes.txt",
        0,
        status="rejected",
        reason="Not a file that Kafka writes.",
        first_event_time=None,
        last_event_time=None,
    )
    story.log(
        "sc-1",
        2,
        "state_change_log",
        212,
        252.31,
        f"Controller 2 epoch 2 elected leader 2 for offline partition {topic}-0",
        event_type="leader_elected",
    )
    story.log(
        "sc-2",
        2,
        "controller_log",
        31,
        252.305,
        f"No broker in ISR is alive for {topic}-0. Elect leader 2 from live brokers 2,3. There's potential data loss.",
        event_type="unclean_leader_election",
        log_level="WARN",
        logger="kafka.controller.OfflinePartitionLeaderSelector",
        continuation="java.lang.IllegalStateException: no broker\n\tat kafka.controller.Selector.select",
    )
    story.log("sv-1", 1, "server_log", 455, 120.2, f"Shrinking ISR for partition [{topic},0] from 1,2,3 to 1")
    for line in range(6):
        story.log(
            f"un-{line}",
            3,
            "server_log",
            500 + line,
            300 + line,
            f"[ReplicaFetcher replicaId=3] Something new happened to {topic}-{line} at offset {line * 917}",
        )
    story.add(
        b.REJECTED_RECORDS,
        record_id="rej-1",
        file_id="f3-state_change_log",
        broker_id=3,
        source_kind="state_change_log",
        source_file="broker-3/logs/state-change.log",
        source_line=77,
        reason="No known log layout begins this line.",
        raw="\x00\x00garbage after a crash",
    )
    for run, kept in (("old", 3), ("new", 41)):
        story.add(
            q.RUN_METRICS, run_id=run, metric="rule_kept_count", subject="R02", value=float(kept), run_at=at(900 + kept)
        )
    story.add(
        s.CONTROLLER_EPOCH_TIMELINE,
        controller_id=1,
        controller_epoch=1,
        valid_from=at(1.204),
        valid_to=at(251.874),
        end_reason="superseded",
    )
    story.add(s.CONTROLLER_EPOCH_TIMELINE, controller_id=2, controller_epoch=2, valid_from=at(251.874))
    story.add(
        s.BROKER_LIVENESS_TIMELINE,
        broker_id=1,
        valid_from=at(0.5),
        valid_to=at(245.7),
        end_reason="registration_lost",
        ended_before=at(251.8),
        inferred_from="znode_snapshot",
    )
    story.add(s.BROKER_LIVENESS_TIMELINE, broker_id=1, valid_from=at(480.02))
    story.add(s.BROKER_LIVENESS_TIMELINE, broker_id=2, valid_from=at(0.6))
    story.add(s.BROKER_LIVENESS_TIMELINE, broker_id=3, valid_from=at(0.7), inferred_from="retention_boundary")
    for partition, replicas in enumerate(([1, 2, 3], [2, 3, 1], [3, 1, 2])):
        story.assigned(topic, partition, replicas)
    story.assigned("safe", 0, [1, 3])
    proposed = {"written_by": "leader", "inferred_from": "isr_proposal", "partition_epoch": None}
    story.led(
        topic,
        0,
        (5, 1, 0, [1, 2, 3]),
        (118, 1, 0, [1, 2], {"written_by": "leader"}),
        (120.2, 1, 0, [1], {"written_by": "leader", "evidence": ["sv-1"]}),
        (252.31, 2, 1, [2], {"controller_epoch": 2, "evidence": ["sc-1"]}),
        (260, 2, 1, [2, 3], proposed | {"controller_epoch": 2}),
        (495, 2, 1, [2, 3, 1], proposed | {"controller_epoch": 2}),
    )
    story.led(
        topic,
        1,
        (5, 2, 0, [2, 3, 1]),
        (252.32, 2, 1, [2, 3], {"controller_epoch": 2}),
        (496, 2, 1, [2, 3, 1], proposed),
    )
    story.led(
        topic,
        2,
        (5, 3, 0, [3, 1, 2]),
        (252.33, 3, 1, [3, 2], {"inferred_from": "znode_snapshot"}),
        (497, 3, 1, [3, 2, 1], proposed),
    )
    story.led(
        "safe",
        0,
        (5, 1, 0, [1, 3]),
        (118, 1, 0, [1], {"written_by": "leader"}),
        (252.34, -1, 1, [1], {"controller_epoch": 2}),
        (480.4, 1, 2, [1], {"controller_epoch": 2}),
        (499, 1, 2, [1, 3], {"written_by": "leader"}),
    )
    story.unavailable(
        topic,
        0,
        "offline",
        245.7,
        252.31,
        opened_by="Broker 1 lost its registration",
        closed_by="Controller 2 elected leader 2 from outside the ISR",
    )
    story.unavailable(topic, 0, "under_replicated", 118, 495)
    story.unavailable(topic, 1, "under_replicated", 252.32, 496)
    story.unavailable(topic, 2, "under_replicated", 252.33, 497)
    story.unavailable(
        "safe",
        0,
        "offline",
        245.7,
        480.4,
        opened_by="Broker 1 lost its registration",
        closed_by="Broker 1 came back and was elected",
    )
    story.unavailable("safe", 0, "under_replicated", 118, 499)
    story.unavailable(topic, 0, "non_preferred_leader", 252.31, None)
    finding = {"topic": topic, "topic_incarnation": f"{topic}-1", "partition_id": 0, "rule_source": "KIP-106"}
    story.add(
        g.DIVERGENCES,
        **finding,
        divergence_id="d1",
        rule_id="R08",
        divergence_type="unclean_election",
        severity="error",
        detected_at=at(252.31),
        broker_id=2,
        expected="a leader from the ISR [1]",
        observed="leader 2, not in the ISR [1]",
        evidence=["sc-2", "sc-1", "lost-record"],
        explanation=f"Controller 2 elected broker 2 for {topic}-0 at leader epoch 1, though the ISR was [1]:"
        " records that only broker 1 had acknowledged are lost.",
        known_issue="KAFKA-3410",
    )
    story.add(
        g.DIVERGENCES,
        divergence_id="d2",
        rule_id="R12",
        divergence_type="deposed_controller_wrote",
        severity="warning",
        detected_at=at(251.9),
        broker_id=1,
        expected="no request of epoch 1 after epoch 2",
        observed="an UpdateMetadata of epoch 1",
        evidence=["sv-1"],
        rule_source="KAFKA-6082",
        explanation="Broker 1 still sent as controller of epoch 1 after broker 2 had taken epoch 2.",
    )
    story.add(
        g.DIVERGENCES,
        divergence_id="d3",
        topic="safe",
        topic_incarnation="safe-1",
        partition_id=0,
        rule_id="R20",
        divergence_type="belief_differs",
        severity="info",
        detected_at=at(480.9),
        broker_id=1,
        expected="leader epoch 2",
        observed="leader epoch 1",
        evidence=[],
        rule_source="protocol",
        explanation="Broker 1 became follower at leader epoch 1 while 2 was decided.",
    )
    story.write(lake)


def write_wide(lake: Lake, partitions: int = 200, steps: int = 10, brokers: int = 6) -> None:
    """Many partitions whose leaders and ISRs move all the time; every 20th is offline for a while."""
    story = Story("wide-fixture")
    for broker in range(1, brokers + 1):
        story.file(broker, "state_change_log", "state-change.log", 50_000)
        story.add(s.BROKER_LIVENESS_TIMELINE, broker_id=broker, valid_from=at(0))
    for epoch in range(1, 8):
        story.add(
            s.CONTROLLER_EPOCH_TIMELINE,
            controller_id=1 + epoch % brokers,
            controller_epoch=epoch,
            valid_from=at(80 * (epoch - 1)),
            valid_to=at(80 * epoch) if epoch < 7 else None,
            end_reason="superseded" if epoch < 7 else None,
        )
    for number in range(partitions):
        topic, partition = f"orders.{number // 20:02d}", number % 20
        replicas = [1 + (number + k) % brokers for k in range(3)]
        story.assigned(topic, partition, replicas, 0)
        width = 600 / steps
        moves = []
        for k in range(steps):
            leader = replicas[(k // 2) % 3]
            isr = replicas if k % 2 == 0 else [r for r in replicas if r != replicas[(k // 2 + 1) % 3]]
            inferred = {"inferred_from": "znode_snapshot"} if (number + k) % 5 == 0 else {}
            moves.append((k * width + number % 37, leader, k // 2, isr, inferred))
            if k % 2:
                end = (k + 1) * width + number % 37
                story.unavailable(topic, partition, "under_replicated", k * width + number % 37, end)
        story.led(topic, partition, *moves)
        if number % 20 == 7:
            story.unavailable(topic, partition, "offline", 300 + number / 10, 310 + number / 3)
            story.add(
                g.DIVERGENCES,
                divergence_id=f"w{number:05d}",
                topic=topic,
                topic_incarnation=f"{topic}-1",
                partition_id=partition,
                rule_id="R02",
                divergence_type="two_leaders_at_one_epoch",
                severity="error" if number % 40 == 7 else "warning",
                detected_at=at(300 + number / 10),
                expected="one leader",
                observed="two leaders",
                rule_source="protocol",
                explanation=f"{topic}-{partition} had two leaders at leader epoch 2.",
            )
    story.write(lake)


def write_hostile(lake: Lake) -> None:
    """Every text that comes from outside is hostile."""
    story = Story("</script>" + HOSTILE[2])
    for number, text in enumerate(HOSTILE):
        place = {"topic": text, "topic_incarnation": text, "partition_id": number}
        story.file(number, "server_log", text, 10, kafka_version=text, reason=text)
        story.log(f"h{number}", number, "server_log", number, 10 + number, text, continuation=text, logger=text)
        story.add(
            b.REJECTED_RECORDS,
            record_id=f"r{number}",
            file_id=text,
            broker_id=number,
            source_kind="server_log",
            source_file=text,
            source_line=1,
            reason=text,
            raw=text,
        )
        story.add(
            s.LEADER_AND_ISR_TIMELINE,
            **place,
            leader=number,
            leader_epoch=0,
            isr=[number],
            valid_from=at(number),
            evidence=[f"h{number}"],
        )
        story.add(
            g.AVAILABILITY_INTERVALS,
            **place,
            kind="offline",
            valid_from=at(5),
            valid_to=at(9),
            opened_by=text,
            closed_by=text,
        )
        story.add(
            g.DIVERGENCES,
            **place,
            divergence_id=f"{text}{number}",
            rule_id=text,
            divergence_type=text,
            severity="error",
            detected_at=at(20),
            expected=text,
            observed=text,
            explanation=text,
            known_issue=text,
            rule_source=text,
            evidence=[f"h{number}"],
        )
        story.add(s.CONTROLLER_EPOCH_TIMELINE, controller_id=number, controller_epoch=number, valid_from=at(number))
    story.write(lake)
