"""A table's first version: the entry of Delta's log that says what the table is, and the checksum file beside it.

Delta's own ``CREATE TABLE`` writes the same two files, after a query, a transaction and a Spark job that looks for the
files of a table that has none: for the forty tables of a lake that is a quarter of a minute. Delta says what the table
asks of its readers and writers (its protocol), and Delta's log store writes the entry: of two who make a table at once
one finds it made. The form is that of Delta's PROTOCOL.md.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from ingest.lake.tables import TableSpec

_MADE_MEANWHILE = "java.nio.file.FileAlreadyExistsException"


def create_table(spark: SparkSession, path: str, spec: TableSpec, properties: Mapping[str, str]) -> None:
    """Make the table at ``path``, without rows. Where another makes it at the same time, the table is theirs."""
    jvm: Any = spark._jvm
    delta = jvm.org.apache.spark.sql.delta
    log = delta.DeltaLog.forTable(spark._jsparkSession, path)
    made_at, transaction = time.time_ns() // 10**6, str(uuid.uuid4())
    metadata = {
        "id": str(uuid.uuid4()),
        "description": spec.grain,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": spec.struct.json(),
        "partitionColumns": [],
        "configuration": dict(properties),
        "createdTime": made_at,
    }
    protocol = json.loads(
        _object(delta.actions, "Protocol")
        .forNewTable(
            spark._jsparkSession,
            jvm.scala.Option.apply(_object(delta.actions, "Action").fromJson(json.dumps({"metaData": metadata}))),
        )
        .json()
    )
    # the values of an operation's parameters are JSON themselves, but for texts
    parameters = {
        "partitionBy": "[]",
        "description": spec.grain,
        "isManaged": "false",
        "properties": json.dumps(dict(properties)),
    }
    commit = {
        "timestamp": made_at,
        "operation": "CREATE TABLE",
        "operationParameters": parameters,
        "isolationLevel": "Serializable",
        "isBlindAppend": True,
        "operationMetrics": {},
        "txnId": transaction,
    }
    checksum = {
        "txnId": transaction,
        "tableSizeBytes": 0,
        "numFiles": 0,
        "numMetadata": 1,
        "numProtocol": 1,
        "setTransactions": [],
        "domainMetadata": [],
        "metadata": metadata,
        **protocol,
        "allFiles": [],
    }
    log.createLogDirectoriesIfNotExists()
    conf, names = log.newDeltaHadoopConf(), delta.util.FileNames
    entry = [{"commitInfo": commit}, {"metaData": metadata}, protocol]
    try:
        for name, lines in ((names.unsafeDeltaFile, entry), (names.checksumFile, [checksum])):
            texts = jvm.PythonUtils.toSeq([json.dumps(line) for line in lines])
            log.store().write(name(log.logPath(), 0), texts.iterator(), False, conf)
    except Py4JJavaError as error:
        if error.java_exception.getClass().getName() != _MADE_MEANWHILE:
            raise


def _object(package: Any, name: str) -> Any:
    """Scala's object of that name."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")
