"""The examples for schedulers: commands that the command line takes, and programs that are there."""

from __future__ import annotations

import configparser
import importlib.util
import shlex
import sys
import types
from contextlib import nullcontext
from typing import Any

import pytest
from ruamel.yaml import YAML

from jobs import cli
from tests import ROOT

EXAMPLES = ROOT / "examples"


def airflow_commands(monkeypatch) -> list[list[str]]:
    """The DAGs' commands, with operators that only keep what they are given: tests/cluster asks Airflow itself."""
    given: list[dict[str, Any]] = []
    names = ("airflow", "airflow.providers", "airflow.providers.apache", "airflow.providers.apache.spark")
    operators = "airflow.providers.apache.spark.operators"
    for name in (*names, operators, f"{operators}.spark_submit", "airflow.sdk"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    sys.modules[f"{operators}.spark_submit"].SparkSubmitOperator = lambda **settings: given.append(settings)  # type: ignore[attr-defined]
    sys.modules["airflow.sdk"].DAG = lambda *_, **__: nullcontext()  # type: ignore[attr-defined]
    spec = importlib.util.spec_from_file_location("example_dags", EXAMPLES / "airflow" / "kafka_state_replay.py")
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    return [[*job_of(one["application"]), *one["application_args"]] for one in given]


def job_of(path: str) -> list[str]:
    """The command whose module a scheduler submits; there must be one of that name."""
    module = path.rsplit("/", 1)[-1]
    assert (ROOT / "jobs" / module).is_file()
    return [module.removesuffix("_job.py")]


def systemd_commands(monkeypatch) -> list[list[str]]:
    del monkeypatch
    commands = []
    for service in sorted((EXAMPLES / "systemd").glob("*.service")):
        assert service.with_suffix(".timer").is_file()
        unit = configparser.ConfigParser()
        unit.optionxform = str  # type: ignore[assignment, method-assign]
        unit.read(service)
        program, *arguments = shlex.split(unit["Service"]["ExecStart"])
        assert program.endswith("/kafka-state-replay")
        commands.append(arguments)
    return commands


def kubernetes_commands(monkeypatch) -> list[list[str]]:
    del monkeypatch
    templates = [
        document["spec"]["template"] for document in loaded("kubernetes/kafka-state-replay.yaml") if document["spec"]
    ]
    return [[*job_of(one["mainApplicationFile"]), *map(str, one["arguments"])] for one in templates]


def loaded(name: str) -> list[Any]:
    return list(YAML(typ="safe").load_all((EXAMPLES / name).read_text("utf-8")))


@pytest.mark.parametrize(
    ("commands", "expected"),
    [
        (airflow_commands, {"run", "maintain"}),
        (systemd_commands, {"run", "maintain"}),
        (kubernetes_commands, {"run", "maintain"}),
    ],
    ids=["airflow", "systemd", "kubernetes"],
)
def test_the_command_line_takes_what_examples_give_it(monkeypatch, commands, expected):
    found = commands(monkeypatch)
    for arguments in found:
        options = cli.build_parser().parse_args(arguments)
        assert options.wait > 0, "two jobs of one schedule meet"
    assert {arguments[0] for arguments in found} == expected
