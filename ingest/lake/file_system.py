"""The file system that holds a lake, as Spark reaches it: Hadoop's."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession


def file_system_of(spark: SparkSession, place: str) -> tuple[Any, Any]:
    """The file system (``org.apache.hadoop.fs.FileSystem``) that holds ``place``, and ``place`` as its path."""
    jvm = spark._jvm
    assert jvm is not None
    path = jvm.org.apache.hadoop.fs.Path(place)
    return path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()), path
