"""A lake whose hosts, topics and principals read as pseudonyms, and what of each table is rewritten for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingest.lake.delta import Lake, PinnedLake
from ingest.lake.pinned import newest_version
from ingest.lake.plans import map_in_arrow, union
from ingest.lake.tables import TABLES, TableSpec
from ingest.lake.tables.bronze import (
    BROKER_CONFIGS,
    CLUSTER_DESCRIPTIONS,
    INGESTED_FILES,
    LOG_RECORDS,
    METADATA_RECORDS,
    METADATA_SNAPSHOTS,
    REJECTED_RECORDS,
    ZNODE_SNAPSHOTS,
    ZNODE_TRANSACTIONS,
)
from ingest.lake.tables.quality import UNRECOGNISED_TEMPLATES
from ingest.lake.tables.spec import Column
from jobs.redaction.pseudonyms import Pseudonyms, hosts_in

#: Texts of this program, or of Kafka's own words, beside closed vocabularies: they hold no name of anybody.
OWN_WORDS: Final = frozenset(
    {
        *("cause_type", "check_id", "closed_by", "content_hash", "divergence_type", "event_time_text", "event_type"),
        *("from_state", "kafka_version", "layout", "level_floor", "log_level", "logger", "metric", "model_version"),
        *("opened_by", "record_type", "rule_source", "rules_fingerprint", "source", "source_kind", "table_name"),
        *("time_zone", "to_state", "evidence", "records"),
    }
)
#: What stands for a text that no shape knows: nobody can say what it names.
HIDDEN: Final = "[hidden: a text of no known shape]"
#: Texts that nothing of this program understood: the column, and of which rows.
_NOT_UNDERSTOOD: Final[Mapping[str, tuple[str, str]]] = {
    LOG_RECORDS.full_name: ("message", "shape_id IS NULL"),
    REJECTED_RECORDS.full_name: ("raw", "true"),
    UNRECOGNISED_TEMPLATES.full_name: ("template", "true"),
}
_SETTING: Final = "concat(config_key, '=', config_value)"
#: Texts that name hosts, as SQL.
_NAMING_HOSTS: Final = (
    (LOG_RECORDS, "concat_ws(chr(10), message, continuation, cast(fields AS string))"),
    (ZNODE_SNAPSHOTS, "data"),
    (ZNODE_TRANSACTIONS, "data"),
    (METADATA_RECORDS, "fields"),
    (METADATA_SNAPSHOTS, "fields"),
    (BROKER_CONFIGS, _SETTING),
    (CLUSTER_DESCRIPTIONS, "concat_ws(chr(10), transform(brokers, b -> concat('host=', b.host)))"),
)
_HOST_KEYS: Final = ("host", "host.name", "hostname")
Rewrite = Callable[[Any], Any]


class RedactedLake(PinnedLake):
    """A lake to be read, with pseudonyms. The key is the id that Delta gave the lake's table of files when it was made:
    of one lake a name has the same pseudonym every time, of another lake another one."""

    def __init__(self, lake: Lake) -> None:
        super().__init__(lake)
        key = str(newest_version(lake.spark, lake.path(INGESTED_FILES)).metadata["id"]).encode()
        self.pseudonyms = Pseudonyms(key, frozenset(_topics(lake)), frozenset(_hosts(lake)))

    def pinned(self) -> Lake:
        """Itself, which is."""
        return self

    def read(self, spec: TableSpec) -> DataFrame:
        """The table with pseudonyms for names, and without texts that nothing understood."""
        rows = super().read(spec)
        if spec.full_name in _NOT_UNDERSTOOD:
            name, condition = _NOT_UNDERSTOOD[spec.full_name]
            rows = rows.withColumn(name, F.when(F.expr(condition), F.lit(HIDDEN)).otherwise(F.col(name)))
        wanted = {column.name: _rewrite(column, self.pseudonyms) for column in spec.columns if may_name(column)}
        if not wanted:
            return rows
        if spec is BROKER_CONFIGS:  # what a value names is known by its key
            rows = rows.withColumn("config_value", F.expr(_SETTING))
        made = map_in_arrow(rows, lambda batches: _rewritten(batches, wanted), rows.schema)
        if spec is BROKER_CONFIGS:
            made = made.withColumn("config_value", F.expr("substr(config_value, instr(config_value, '=') + 1)"))
        return made


def may_name(column: Column) -> bool:
    """Whether a column may hold a name of somebody: any text that is not known to hold none."""
    is_text = "string" in column.type and not column.vocabulary
    return is_text and column.name not in OWN_WORDS and not column.name.endswith(("_id", "_ids"))


def _topics(lake: Lake) -> Iterable[str]:
    """Every topic that a table has a row of."""
    tables = [PinnedLake(lake).read(spec) for spec in TABLES.values() if "topic" in spec.column_names]
    return _distinct([rows.select("topic") for rows in tables])


def _hosts(lake: Lake) -> Iterable[str]:
    """The hosts named anywhere in bronze."""
    texts = [
        PinnedLake(lake).read(spec).selectExpr(f"{text} AS text").where("text != ''") for spec, text in _NAMING_HOSTS
    ]
    return _distinct([rows.mapInArrow(_named_hosts, "host string") for rows in texts])


def _distinct(tables: Iterable[DataFrame]) -> Iterable[str]:
    """The texts of tables of one column: as many as a cluster has names."""
    return [row[0] for row in union(tables).distinct().collect() if row[0]]


def _named_hosts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        found = {host for text in batch.column(0).to_pylist() for host in hosts_in(text)}
        yield pa.RecordBatch.from_pydict({"host": pa.array(sorted(found), pa.string())})


def _rewritten(batches: Iterable[pa.RecordBatch], wanted: Mapping[str, Rewrite]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        columns = [
            pa.array(list(map(wanted[field.name], column.to_pylist())), field.type) if field.name in wanted else column
            for field, column in zip(batch.schema, batch.columns, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _rewrite(column: Column, pseudonyms: Pseudonyms) -> Rewrite:
    named = {"topic": pseudonyms.topic, **dict.fromkeys(_HOST_KEYS, pseudonyms.host)}

    def rewritten(value: Any, name: str) -> Any:
        if isinstance(value, str):
            return named.get(name, pseudonyms.text)(value)
        if isinstance(value, dict):
            return {key: rewritten(each, key) for key, each in value.items()}
        if isinstance(value, tuple):  # an entry of a map
            return (value[0], rewritten(value[1], value[0]))
        return [rewritten(each, name) for each in value] if isinstance(value, list) else value

    return lambda value: rewritten(value, column.name)
