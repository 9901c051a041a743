"""What is installed, what is locked and what is downloaded belong together."""

from __future__ import annotations

import re
import tomllib
from fnmatch import fnmatch
from importlib import metadata
from pathlib import Path

import pyspark
import pytest
from packaging.requirements import Requirement

from jobs.session import pinned_jars
from jobs.session.pinned_jars import DELTA_JARS, JarsMissing, file_name, local_jars
from tests import ROOT


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def locked() -> dict[str, str]:
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    pins = (Requirement(line.removesuffix(" \\")) for line in lines if "==" in line)
    here = (pin for pin in pins if pin.marker is None or pin.marker.evaluate())
    return {normal(pin.name): str(pin.specifier).removeprefix("==") for pin in here}


def test_installed_versions_are_the_locked_ones():
    installed = {normal(dist.metadata["Name"]): dist.version for dist in metadata.distributions()}
    differing = {
        name: f"locked {version}, installed {installed.get(name, 'not at all')}"
        for name, version in locked().items()
        if installed.get(name) != version
    }
    assert differing == {}, "run make env"


def test_the_lock_holds_pins_and_hashes_and_nothing_else():
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pin, digest = r"[\w.-]+==\S+(?: ; [^\\\n]+)?", r" \\\n    --hash=sha256:[0-9a-f]{64}"
    assert re.fullmatch(rf"(?:#.*\n)+(?:{pin}(?:{digest})+\n)+", text), "run make lock"


def test_every_declared_dependency_is_locked():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    names = {normal(re.split(r"[<>=!~\[; ]", requirement)[0]) for requirement in declared}
    assert names - set(locked()) == set()


def test_everything_that_the_locked_packages_need_is_locked():
    """A package that is installed but not locked would be another one tomorrow."""
    missing = {
        f"{name} needs {needed}"
        for name in locked()
        for requirement in metadata.requires(name) or []
        if "extra ==" not in requirement and ";" not in requirement
        for needed in [normal(re.split(r"[<>=!~\[;( ]", requirement)[0])]
        if needed not in locked()
    }
    assert missing == set()


def test_delta_jars_are_of_the_version_and_spark_that_are_installed():
    spark = ".".join(pyspark.__version__.split(".")[:2])
    assert set(DELTA_JARS) == {
        f"io.delta:delta-spark_{spark}_2.13:{metadata.version('delta-spark')}",
        f"io.delta:delta-storage:{metadata.version('delta-spark')}",
    }


def test_a_jar_of_other_bytes_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (coordinate, *_), fetched = DELTA_JARS, []

    def fetch(java: str, pinned: object, folder: Path, listed: str) -> None:
        fetched.append(folder)
        (folder / file_name(coordinate)).write_bytes(b"another jar")

    monkeypatch.setattr(pinned_jars, "_download", fetch)
    (tmp_path / file_name(coordinate)).write_bytes(b"left by somebody")
    with pytest.raises(JarsMissing, match="is not the file that this version was made with"):
        local_jars("java", {coordinate: DELTA_JARS[coordinate]}, tmp_path, "the jar")
    assert fetched == [tmp_path]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("package", "major"), [("pandas", "2"), ("pyspark", "4")])
def test_majors_that_must_not_move(package, major):
    assert metadata.version(package).split(".")[0] == major


def test_the_ivy_that_fetches_the_jars_comes_with_pyspark():
    assert list((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))


def test_what_is_vendored_has_its_version_and_licence_told():
    folder = ROOT / "checks" / "data_docs_assets"
    rows = re.findall(
        r"^\| (`.+?) \| (\S+) \| (\S+) \| (.+) \|$", (folder / "README.md").read_text("utf-8"), re.MULTILINE
    )
    patterns = [pattern for files, *_ in rows for pattern in re.findall(r"`(.+?)`", files)]
    files = [path.name for path in folder.rglob("*") if path.is_file() and path.name != "README.md"]
    assert files
    assert [name for name in files if not any(fnmatch(name, pattern) for pattern in patterns)] == []
    notice = (ROOT / "NOTICE").read_text("utf-8")
    assert [package for _, package, version, _ in rows if f"{package} {version}" not in notice] == []
    assert all(licence.split(" ")[0] in notice for *_, licence in rows)
