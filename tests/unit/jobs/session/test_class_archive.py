"""The archive of Java's classes: made once, by a run that loads them all, and used when it is finished."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from jobs.session.caches import CACHE_VARIABLE
from jobs.session.class_archive import java_option

JARS = (Path("delta.jar"),)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    return tmp_path


def made_at(option: str) -> Path:
    return Path(option.partition("-XX:ArchiveClassesAtExit=")[2])


def test_only_a_run_that_loads_all_classes_makes_it(cache: Path) -> None:
    assert java_option(sys.executable, JARS, may_make=False) == ""
    assert made_at(java_option(sys.executable, JARS, may_make=True)).parent == cache / "classes"


def test_it_is_used_once_it_is_finished(cache: Path) -> None:
    archive = made_at(java_option(sys.executable, JARS, may_make=True))
    archive.write_bytes(bytes(4096))  # Java writes how it begins last
    assert java_option(sys.executable, JARS, may_make=False) == ""
    archive.write_bytes(b"\xa8\xab\x0b\xf0" + bytes(4096))
    for may_make in (False, True):
        assert java_option(sys.executable, JARS, may_make=may_make).endswith(f"-XX:SharedArchiveFile={archive}")


def test_other_jars_have_another_one_which_replaces_it(cache: Path) -> None:
    before = made_at(java_option(sys.executable, JARS, may_make=True))
    before.write_bytes(b"\xa8\xab\x0b\xf0")
    after = made_at(java_option(sys.executable, (Path("other.jar"),), may_make=True))
    assert after != before
    assert not before.exists()
