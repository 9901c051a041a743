"""What is new every hour, the upkeep of the lake every night: kafka-state-replay as DAGs of Airflow 3.

Needs the provider `apache-airflow-providers-apache-spark`, its connection `spark_default`, and kafka-state-replay
installed with its dependencies where the driver and the executors run. What is in capitals is to be adapted.

A failed gate (exit code 3), a job that was told to come later (4) and a failure fail their task; the report is written
where a gate fails, too, and says so.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG

#: Where the driver finds the installed package.
HOME = "/opt/kafka-state-replay/lib/python3.11/site-packages"
SOURCES = ["/var/log/kafka"]
LAKE = "/srv/kafka-state-replay/lake"
REPORT = "/srv/kafka-state-replay/report"
PACKAGES = "io.delta:delta-spark_4.1_2.13:4.4.0"
#: The hour's run waits for the night's upkeep, and the other way round.
WAIT = ["--wait", "3000"]


def job(name: str, *arguments: str) -> SparkSubmitOperator:
    return SparkSubmitOperator(
        task_id=name,
        name=f"kafka-state-replay {name}",
        application=f"{HOME}/jobs/{name}_job.py",
        application_args=[*arguments, "--lake", LAKE, "--quiet"],
        packages=PACKAGES,
    )


with DAG(
    "kafka_state_replay",
    description="Timelines and findings of what Kafka's logs got in the last hour",
    schedule="@hourly",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 2, "retry_delay": timedelta(minutes=5)},
):
    # takes whatever is new, also what earlier runs missed: no date is passed on
    job("run", *SOURCES, "--out", REPORT, *WAIT)

with DAG(
    "kafka_state_replay_upkeep",
    description="Small files put together, old versions deleted",
    schedule="30 2 * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
):
    job("maintain", *WAIT)
