"""The Containerfile, without an engine that builds it: what it names is there, and what it runs of ours runs."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib

import pytest
from packaging.specifiers import SpecifierSet

from jobs.session.caches import cache_dir
from jobs.session.pinned_jars import DELTA_JARS, file_name
from tests import ROOT

TEXT = (ROOT / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
STEPS = [tuple(line.split(maxsplit=1)) for line in TEXT.splitlines() if line and not line.startswith("#")]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def of(kind: str) -> list[str]:
    return [rest for step, rest in STEPS if step == kind]


def test_python_and_java_are_those_that_the_program_takes():
    (image,) = of("FROM")
    assert re.search(r"python:(\d+\.\d+)-", image)[1] in SpecifierSet(PROJECT["requires-python"])
    assert re.findall(r"openjdk-(\d+)-", TEXT) == ["17"]


def test_what_it_starts_is_a_program_of_the_project_in_the_environment_that_make_env_makes():
    (entry,) = of("ENTRYPOINT")
    (program,) = json.loads(entry)
    folder, name = program.rsplit("/.venv/bin/", 1)
    assert name in PROJECT["scripts"]
    assert of("WORKDIR")[0] == folder
    assert "make env" in of("RUN")
    assert re.search(r"^VENV := \.venv$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert f"KAFKA_STATE_REPLAY_CACHE={folder}/.cache" in of("ENV")[0]


def test_what_it_runs_of_ours_puts_the_jars_into_the_cache():
    commands = [part for run in of("RUN") for part in run.split(" && ") if part.strip().startswith(".venv/")]
    (command,) = (shlex.split(part) for part in commands)
    assert command[0] == ".venv/bin/python"
    subprocess.run([sys.executable, *command[1:]], cwd=ROOT, check=True)
    assert all((cache_dir() / "jars" / file_name(coordinate)).is_file() for coordinate in DELTA_JARS)


@pytest.mark.parametrize("made", [".venv", ".cache", "dist", "lake", "report"])
def test_what_a_checkout_makes_does_not_go_into_the_image(made):
    assert made in (ROOT / ".containerignore").read_text(encoding="utf-8").split()
