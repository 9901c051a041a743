"""One incident as text: its summary, its events in order, and the records that show each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from pyspark.sql import Row
from pyspark.sql import functions as F

from dashboards import words
from dashboards.records import Record, records_by_id
from dashboards.sections.incidents import Event
from dashboards.source import Limits, Source, ms, narrowed
from dashboards.texts.next_steps import next_steps
from ingest.lake.delta import Lake
from ingest.lake.tables.incidents import INCIDENT_EVENTS, INCIDENTS

#: Characters of a record that are shown.
_WIDTH: Final = 200


def incident_text(lake: Lake, incident_id: str) -> tuple[str, str]:
    """The text of the incident whose id begins so, and what is wrong, in a sentence: one of both is empty."""
    source = Source(lake, Limits(text_characters=_WIDTH))
    named = source.all(INCIDENTS).where(F.col("incident_id").startswith(incident_id))
    found = named.orderBy("cluster_id", "incident_id").limit(10).collect()
    if len(found) != 1:
        how_many = "no incident" if not found else f"{len(found)} incidents or more"
        return "", f"{how_many} whose id begins with {incident_id}: `kafka-state-replay ask incidents` lists them"
    incident = found[0]
    events = source.all(INCIDENT_EVENTS).where(F.col("incident_id") == incident["incident_id"])
    timed = events.withColumns({"from_ms": ms("began_at"), "to_ms": ms("ended_at")})
    rows = timed.orderBy("sequence").collect()  # a few for each broker that was away
    source = replace(source, clusters=(incident["cluster_id"],))
    records = records_by_id(source, {record for row in rows for record in row["evidence"]}, ())
    head = f"incident {incident['incident_id']} of cluster {words.visible(incident['cluster_id'])}"
    steps = [f"To do: {step}" for step in next_steps([narrowed(Event, row) for row in rows])]
    told = [head, incident["summary"], "", *steps, *[""] * bool(steps)]
    return "\n".join([*told, *(line for row in rows for line in _lines(row, records))]), ""


def _lines(event: Row, records: Mapping[str, Record]) -> Sequence[str]:
    begin, end = event["from_ms"], event["to_ms"]
    until = "" if end == begin else " (not over)" if end is None else f" to {words.clock(end)}"
    partitions = narrowed(Event, event).named
    of = f": {partitions}" if partitions else ""
    lines = [f"{words.instant(begin)}{until}  {event['description']}{of}"]
    for record in (records[one] for one in event["evidence"] if one in records):
        place = record.source_file if record.source_line is None else f"{record.source_file}:{record.source_line}"
        lines.append(f"    {place}  {(record.text or '')[:_WIDTH]}")
    return [words.visible(line.replace("\n", " ").replace("\t", " ")) for line in lines]
