"""Each kind of damage changes files of its capture, none but its own, and always alike."""

from __future__ import annotations

import fnmatch
import shutil
from pathlib import Path

import pytest

from tests.support.captures.bases import BASES, ZOOKEEPER
from tests.support.captures.damages import COPIES, KINDS, Damage
from tests.support.captures.lake import name_cluster

EVERY = (*KINDS, *COPIES)


def contents(capture: Path) -> dict[str, bytes]:
    return {str(path.relative_to(capture)): path.read_bytes() for path in capture.rglob("*") if path.is_file()}


def names(damage: Damage) -> str:
    return damage.name


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: base.lay(tmp_path_factory.mktemp(name)) for name, base in BASES.items()}


@pytest.mark.parametrize("damage", EVERY, ids=names)
def test_a_damage_changes_its_own_files_and_no_other(damage: Damage, bases: dict[str, Path], tmp_path: Path) -> None:
    before = contents(bases[damage.base])
    capture = Path(shutil.copytree(bases[damage.base], tmp_path / "capture"))
    damage.change(capture)
    after = contents(capture)
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert changed
    assert {name for name in changed if not any(fnmatch.fnmatch(name, own) for own in damage.touches)} == set()


def test_damages_have_names_of_their_own_as_clusters_too() -> None:
    assert len({damage.cluster_id for damage in EVERY} | set(BASES)) == len(EVERY) + len(BASES)


@pytest.mark.parametrize("name", [name for name in BASES if name != ZOOKEEPER])
def test_a_capture_names_the_cluster_that_it_is_told_to_be(name: str, bases: dict[str, Path], tmp_path: Path) -> None:
    own = BASES[name].lay(tmp_path)
    name_cluster(own, "another")
    before, after = contents(bases[name]), contents(own)
    assert before["broker-1/meta.properties"].split(b"cluster.id=")[1].strip() not in b"".join(after.values())
    assert all(b"cluster.id=another" in after[f"broker-{broker}/meta.properties"] for broker in (1, 2, 3))
    assert any(b"Cluster ID = another" in content for content in after.values())
