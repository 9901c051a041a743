"""Dependencies point one way, and the model depends on nothing."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: Each may import itself and those before it.
LAYERS = ("ingest", "reconstruct", "checks", "dashboards", "jobs")


def imported(path: Path) -> Iterator[str]:
    """Every module the file imports, wherever the import stands."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import hides its direction"
            yield node.module or ""


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


def test_no_job_shares_its_name_with_a_package_or_a_standard_module():
    """spark-submit puts jobs/ first on the path: a jobs/checks.py would hide the package checks."""
    names = {path.stem for path in (ROOT / "jobs").glob("*.py")} - {"__init__"}
    assert names & (set(LAYERS) | sys.stdlib_module_names) == set()


def test_every_package_of_the_wheel_is_a_layer():
    import tomllib

    built = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"]
    assert tuple(built["wheel"]["packages"]) == LAYERS
