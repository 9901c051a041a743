"""Dependencies point one way, the model depends on nothing, and no folder grows out of sight."""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests import ROOT

#: Each may import itself and those before it.
LAYERS = ("ingest", "reconstruct", "checks", "dashboards", "jobs", "kafka_state_replay")
#: Packages whose parts must not need each other in a circle.
PACKAGES_OF_ROOMS = ("ingest", "reconstruct", "reconstruct/partitions", "ingest/readers", "ingest/capture", "jobs")
MOST_FILES = 15


@cache
def imported(path: Path) -> tuple[str, ...]:
    """Every module the file imports, wherever the import stands."""
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import hides its direction"
            found.append(node.module or "")
    return tuple(found)


def modules(package: str) -> list[Path]:
    found = sorted((ROOT / package).rglob("*.py"))
    assert found, f"{package} holds no module"
    return found


@pytest.mark.parametrize("layer", LAYERS)
def test_no_package_imports_one_that_comes_after_it(layer):
    later = set(LAYERS[LAYERS.index(layer) + 1 :])
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules(layer)
        for name in imported(path)
        if name.split(".")[0] in later
    ]
    assert wrong == []


def test_the_program_imports_no_tests():
    wrong = [
        str(path) for layer in LAYERS for path in modules(layer) if any(n.startswith("tests") for n in imported(path))
    ]
    assert wrong == []


def test_the_model_imports_the_standard_library_only():
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules("reconstruct/model")
        for name in imported(path)
        if name.split(".")[0] not in sys.stdlib_module_names and not name.startswith("reconstruct.model")
    ]
    assert wrong == []


def test_the_simulated_replicas_import_the_standard_library_and_the_model_only():
    """They are the oracle of the bounds of offsets: sharing code with these, they would share its mistakes."""
    own = ("reconstruct.model", "tests.oracles.replication", "tests.oracles.versions")
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules("tests/oracles/replication")
        for name in imported(path)
        if name.split(".")[0] not in sys.stdlib_module_names and not name.startswith(own)
    ]
    assert wrong == []


def test_releases_of_kafka_are_named_in_one_module():
    """A gate is a constant of ``model/versions.py``; only the table of known issues names releases of its own."""
    own = {ROOT / "reconstruct/model/versions.py", ROOT / "reconstruct/findings/known_issues.py"}
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for layer in LAYERS
        for path in modules(layer)
        if path not in own and re.search(r"\b(?:v|KafkaVersion)\(", text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("v", "KafkaVersion")
    ]
    assert wrong == []


def is_spark_file(path: Path) -> bool:
    """Whether a module of ``reconstruct`` may import pyspark: a room's Spark steps, what they share, the pipeline."""
    place = path.relative_to(ROOT / "reconstruct")
    of_run = ("steps.py", "inputs.py", "log_records.py", "pipeline.py")
    return "spark" in place.parts[:-1] or place.parts[0] in ("engine", "kept", *of_run)


def test_no_group_with_a_lookahead_is_repeated_possessively():
    """CPython before 3.11.5 takes what the lookahead of the last round found and must not have (gh-100061)."""
    repeated = re.compile(r"\((?:\?:)?[^()]*\(\?<?[=!](?:[^()]|\([^()]*\))*\)[^()]*\)(?:[*+?]|\{[\d,]+\})\+")
    told = {r"(?:(?!(?P=a)).)*+": True, r"(?:(?!,')[^\s<])++": True, r"(?:\\.[^']*+)*+": False, r"(?!a)[^b]++": False}
    assert {pattern: bool(repeated.search(pattern)) for pattern in told} == told
    found = [path for layer in LAYERS for path in modules(layer) if repeated.search(path.read_text(encoding="utf-8"))]
    assert found == []


def test_only_the_spark_files_of_each_room_import_spark():
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules("reconstruct")
        if not is_spark_file(path)
        for name in imported(path)
        if name.split(".")[0] in ("pyspark", "delta", "py4j")
    ]
    assert wrong == []


@pytest.mark.parametrize("layer", LAYERS)
def test_no_folder_holds_more_files_than_one_takes_in_at_a_glance(layer):
    """Templates and data beside the modules count."""
    rooms = {path.parent for path in modules(layer)}
    folders = {room: sum(path.is_file() for path in room.iterdir()) for room in rooms}
    assert {str(folder.relative_to(ROOT)): count for folder, count in folders.items() if count > MOST_FILES} == {}


@pytest.mark.parametrize("package", PACKAGES_OF_ROOMS)
def test_rooms_depend_on_each_other_one_way(package):
    """A room is a folder or module directly below the package; its subfolders belong to it."""
    below = {room_of(path, package) for path in modules(package)}
    needs: dict[str, set[str]] = {room: set() for room in below}
    for path in modules(package):
        for name in imported(path):
            other = name.removeprefix(f"{package.replace('/', '.')}.").split(".")[0]
            if name.startswith(f"{package.replace('/', '.')}.") and other in below:
                needs[room_of(path, package)].add(other)
    order = TopologicalSorter({room: others - {room} for room, others in needs.items()})
    try:
        order.prepare()
    except CycleError as error:
        pytest.fail(f"rooms of {package} need each other in a circle: {' -> '.join(error.args[1])}")


def room_of(path: Path, package: str) -> str:
    return path.relative_to(ROOT / package).parts[0].removesuffix(".py")


def test_no_job_shares_its_name_with_a_package_or_a_standard_module():
    """spark-submit puts jobs/ first on the path: a jobs/checks.py would hide the package checks."""
    names = {path.stem for path in (ROOT / "jobs").glob("*.py")} - {"__init__"}
    assert names & (set(LAYERS) | sys.stdlib_module_names) == set()


def test_every_package_of_the_wheel_is_a_layer():
    import tomllib

    built = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"]
    assert tuple(built["wheel"]["packages"]) == LAYERS
