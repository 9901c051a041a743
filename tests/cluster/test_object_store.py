"""A lake, and logs, in an object store: S3's interface by moto on loopback, read and written through ``s3a://``.

`make test-cluster` installs moto beside, in `.cache/moto`. Two machines that write at the same moment are played by two
files that are both begun before one of them ends.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from jobs import cli
from jobs.lab.machines.ports import free_ports
from jobs.lab.waiting import wait_for
from jobs.session.java import find_java
from jobs.session.pinned_jars import local_jars
from tests import ROOT
from tests.support.captures.packed import TRUTH, unpack
from tests.table_hashes import lake_hashes

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(3600)]

CAPTURE: Final = "quiet-0.8.2.2"
BUCKET: Final = "incident"
_MOTO: Final = ROOT / ".cache" / "moto" / "bin"
#: Hadoop's client for S3, of the version of the Hadoop that pyspark brings, and Amazon's library that it was made with.
_JARS: Final = {
    "org.apache.hadoop:hadoop-aws:3.4.2": "d2d24e6b715b5656b9d238bf13b6682a07e2004dd36aad74a73aeb854319f4d9",
    "software.amazon.awssdk:bundle:2.29.52": "62638f33045690c6bc5e496b54b0b2e89a9ad38cbedacdf6e017fea6bc85f55c",
}
_DEFAULTS: Final = """
spark.jars {jars}
spark.hadoop.fs.s3a.endpoint {endpoint}
spark.hadoop.fs.s3a.endpoint.region us-east-1
spark.hadoop.fs.s3a.path.style.access true
spark.hadoop.fs.s3a.connection.ssl.enabled false
spark.hadoop.fs.s3a.access.key of-a-test
spark.hadoop.fs.s3a.secret.key of-a-test
"""
#: What Arrow reads logs by.
_AWS: Final = {
    "AWS_ACCESS_KEY_ID": "of-a-test",
    "AWS_SECRET_ACCESS_KEY": "of-a-test",
    "AWS_DEFAULT_REGION": "us-east-1",
}
#: ``make``, ``put FOLDER PREFIX`` and ``get PREFIX FOLDER``, by Amazon's own client.
_CLIENT: Final = """
import sys
from pathlib import Path
import boto3
endpoint, bucket, what, *given = sys.argv[1:]
s3 = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="of-a-test",
                  aws_secret_access_key="of-a-test")
if what == "make":
    s3.create_bucket(Bucket=bucket)
elif what == "put":
    folder, prefix = Path(given[0]), given[1]
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        s3.upload_file(str(file), bucket, f"{prefix}/{file.relative_to(folder).as_posix()}")
else:
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=given[0] + "/"):
        for found in page.get("Contents", ()):
            if not found["Key"].endswith("/"):
                target = Path(given[1]) / found["Key"]
                target.parent.mkdir(parents=True, exist_ok=True)
                s3.download_file(bucket, found["Key"], str(target))
"""


@dataclass(frozen=True)
class Store:
    """The server's address, and what a command that speaks to it is given."""

    endpoint: str
    environment: Mapping[str, str]

    def client(self, *arguments: str) -> None:
        """Do something by a client that is not ours."""
        command = [str(_MOTO / "python"), "-c", _CLIENT, self.endpoint, BUCKET, *arguments]
        subprocess.run(command, check=True, timeout=600)

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command of the program in a process of its own."""
        return self.module("jobs.cli", *arguments)

    def module(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        program = [sys.executable, "-m", name, *arguments]
        return subprocess.run(
            program, cwd=ROOT, env=dict(self.environment), capture_output=True, text=True, check=False, timeout=1800
        )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    (port,) = free_ports(1)
    endpoint = f"http://127.0.0.1:{port}"
    jars = local_jars(find_java(), _JARS, ROOT / ".cache" / "jars", " and ".join(_JARS))
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "spark-defaults.conf").write_text(_DEFAULTS.format(jars=",".join(map(str, jars)), endpoint=endpoint))
    with (tmp_path / "moto.log").open("wb") as log:
        command = [str(_MOTO / "moto_server"), "-H", "127.0.0.1", "-p", str(port)]
        server = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            wait_for("moto is there", lambda: "Running on" in (tmp_path / "moto.log").read_text())
            store = Store(endpoint, os.environ | _AWS | {"AWS_ENDPOINT_URL": endpoint, "SPARK_CONF_DIR": str(conf)})
            store.client("make")
            yield store
        finally:
            server.kill()
            server.wait(60)


def test_a_lake_in_a_bucket_holds_the_rows_of_one_on_this_machine(store: Store, spark: Any, tmp_path: Path) -> None:
    source, here = unpack(CAPTURE, tmp_path / "captures", without=TRUTH), tmp_path / "here"
    assert cli.main(["run", str(source), "--lake", str(here), "--out", str(tmp_path / "report")]) == 0
    lake = f"s3a://{BUCKET}/lake"
    ran = store.command("run", str(source), "--lake", lake, "--out", str(tmp_path / "of-bucket"))
    assert ran.returncode == 0, ran.stderr
    store.client("get", "lake", str(tmp_path / "copy"))
    assert lake_hashes(spark, tmp_path / "copy" / "lake") == lake_hashes(spark, here)
    again = store.command("reconstruct", "--lake", lake)
    assert (again.returncode, "nothing is new since run 1" in again.stderr) == (0, True), again.stderr
    count = "SELECT count(*) AS count FROM silver.leader_and_isr_timeline"
    asked = store.command("sql", "-q", count, "--format", "csv", "--lake", lake)
    assert asked.stdout.split() == ["count", str(lake_hashes(spark, here)["silver.leader_and_isr_timeline"][1])]


def test_logs_in_a_bucket_are_read_as_files_are(store: Store, spark: Any, tmp_path: Path) -> None:
    source = unpack(CAPTURE, tmp_path / "captures", without=TRUTH)
    store.client("put", str(source), "logs")
    for name, given in (("of-files", str(source)), ("of-bucket", f"s3a://{BUCKET}/logs")):
        taken = store.command("ingest", given, "--lake", str(tmp_path / name))
        assert taken.returncode == 0, taken.stderr
    of_files, of_bucket = (lake_hashes(spark, tmp_path / name) for name in ("of-files", "of-bucket"))
    assert {name: count for name, (_, count) in of_bucket.items()} == {n: count for n, (_, count) in of_files.items()}
    assert of_bucket["bronze.log_records"][1] > 500


def test_of_two_machines_that_want_the_lease_at_once_one_gets_it(store: Store) -> None:
    ran = store.module("tests.cluster.lease_in_a_bucket", f"s3a://{BUCKET}/lake")
    assert ran.stdout.splitlines() == ["other True", "mine False", 'read "of the other"'], ran.stderr
