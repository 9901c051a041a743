"""Python workers import the pyspark that is installed, not the zip within it, where these are one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from reconstruct.engine.python_daemon import without_zips

INSTALLED = Path(pyspark.__file__).parent
ZIPS = sorted(map(str, (INSTALLED / "python" / "lib").glob("*.zip")))
PLACES = [str(Path(pyspark.__file__).parents[1]), str(Path(__file__).parents[4])]


def test_the_zips_of_the_pyspark_that_is_installed_are_left_out():
    assert [Path(place).name.split("-")[0] for place in ZIPS] == ["py4j", "pyspark.zip"]
    assert without_zips([*ZIPS, *PLACES]) == PLACES


@pytest.mark.parametrize(
    "places",
    [
        pytest.param(ZIPS, id="nothing else is there"),
        pytest.param(["/another/pyspark/python/lib/pyspark.zip", *PLACES], id="of another pyspark"),
        pytest.param([f"{INSTALLED}/python/lib/more/one.zip", "given.zip", *PLACES], id="of files that were given"),
        pytest.param([*PLACES, str(INSTALLED / "jars" / "spark-core.jar")], id="no zip"),
    ],
)
def test_all_others_stay(places):
    assert without_zips(places) == places


def test_a_pyspark_without_py4j_beside_it_keeps_its_zips(tmp_path):
    folder = tmp_path / "pyspark"
    (folder / "python" / "lib").mkdir(parents=True)
    (folder / "__init__.py").touch()
    zips = [str(folder / "python" / "lib" / name) for name in ("pyspark.zip", "py4j-src.zip")]
    assert without_zips([*zips, str(tmp_path)]) == [*zips, str(tmp_path)]
    (tmp_path / "py4j.py").touch()
    assert without_zips([*zips, str(tmp_path)]) == [str(tmp_path)]


def test_nothing_has_pyspark_imported_before_they_are_left_out():
    """Else it would be the zip's all the same."""
    told = "import sys; import reconstruct.engine.python_daemon; print([n for n in sys.modules if 'pyspark' in n])"
    found = subprocess.run([sys.executable, "-c", told], cwd=PLACES[1], check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "[]"
