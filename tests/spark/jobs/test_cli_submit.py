"""Under ``spark-submit`` a job takes what was submitted, and brings Delta itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests import ROOT

PROGRAM = """
import sys
from jobs.session.session import build_session
spark = build_session()
spark.range(5).write.format("delta").save(sys.argv[1])
settings = ("spark.sql.shuffle.partitions", "spark.sql.session.timeZone", "spark.databricks.delta.snapshotPartitions")
print("RESULT", spark.read.format("delta").load(sys.argv[1]).count(), *(spark.conf.get(name) for name in settings))
"""


def test_what_was_submitted_wins_and_delta_is_there(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    command = [
        str(Path(sys.executable).parent / "spark-submit"),
        *("--master", "local[1]", "--driver-memory", "1g", "--conf", "spark.sql.shuffle.partitions=7"),
        *("--driver-java-options", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"),  # so short a run is not worth compiling
        *(str(program), str(tmp_path / "table")),
    ]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "KAFKA_STATE_REPLAY_CACHE": str(ROOT / ".cache")}
    finished = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    assert "RESULT 5 7 UTC 1" in finished.stdout.splitlines()
