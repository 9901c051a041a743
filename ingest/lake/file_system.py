"""The file system that holds a lake, as Spark reaches it: Hadoop's."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

#: Places of two lakes of which it is known whether they are folders of this machine.
_MOST_PLACES: Final = 512


def file_system_of(spark: SparkSession, place: str) -> tuple[Any, Any]:
    """The file system (``org.apache.hadoop.fs.FileSystem``) that holds ``place``, and ``place`` as its path."""
    jvm = spark._jvm
    assert jvm is not None
    path = jvm.org.apache.hadoop.fs.Path(place)
    return path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()), path


@lru_cache(maxsize=_MOST_PLACES)
def local_path(spark: SparkSession, place: str) -> str | None:
    """``place`` as an absolute path of this machine; None where another file system holds it."""
    files, path = file_system_of(spark, place)
    return str(files.makeQualified(path).toUri().getPath()) if files.getUri().getScheme() == "file" else None


def modified_ms(spark: SparkSession, folder: str, name: str) -> int | None:
    """When a file of the folder was written last; None where there is none. A folder of this machine is asked without
    Java, and one that cannot be looked into has none."""
    local = local_path(spark, folder)
    if local is not None:
        try:
            return os.stat(os.path.join(local, name)).st_mtime_ns // 10**6
        except OSError:
            return None
    files, path = file_system_of(spark, f"{folder}/{name}")
    try:
        return int(files.getFileStatus(path).getModificationTime())
    except Py4JJavaError as error:
        if error.java_exception.getClass().getSimpleName() == "FileNotFoundException":
            return None
        raise


def read_text(spark: SparkSession, folder: str, name: str) -> str | None:
    """What a small file of the folder says, in UTF-8; None where there is none. One of this machine is read without
    Java."""
    local = local_path(spark, folder)
    if local is not None:
        try:
            return Path(local, name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
    files, path = file_system_of(spark, f"{folder}/{name}")
    if not files.exists(path):
        return None
    jvm: Any = spark._jvm
    stream = files.open(path)
    try:
        return str(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
    finally:
        stream.close()
