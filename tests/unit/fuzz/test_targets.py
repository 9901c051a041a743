"""Every reader keeps its promises on real inputs with small, always the same changes.

With ``HYPOTHESIS_PROFILE=hard`` (``make test-hard``) there are many more of them, and atheris looks for others.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ingest.lake.tables.bronze import OFFSET_CHECKPOINTS
from ingest.readers.work import Kept, Place
from tests import ROOT
from tests.figures import Figure
from tests.fuzz import blind
from tests.fuzz.invariants import check_tables, item, sparing
from tests.fuzz.mutation import mutated
from tests.fuzz.seeds import seeds
from tests.fuzz.targets import TARGETS
from tests.support.budget import IS_HARD

CASES = 5000 if IS_HARD else 200
FUZZ_SECONDS = 4


@pytest.mark.parametrize("name", TARGETS)
def test_changed_inputs_break_no_promise(name: str, record_property: Any) -> None:
    for number, data in enumerate(mutated(seeds(name), CASES)):
        try:
            TARGETS[name](data)
        except Exception as error:
            pytest.fail(f"input {number} of {name}: {type(error).__name__}: {error}\n{data[:2000]!r}")
    record_property(Figure.INPUTS, number + 1)


def test_the_changes_are_always_the_same() -> None:
    assert list(mutated([b"one", b"two"], 50)) == list(mutated([b"one", b"two"], 50))


def test_of_inputs_that_share_a_batch_the_one_that_fits_no_table_is_named() -> None:
    def target(data: bytes) -> None:
        place = Place(offset=0, length=len(data), line=1, data=data)
        kept = Kept(place, {"topic": "orders", "partition_id": 0, "offset": int(data)})
        check_tables(OFFSET_CHECKPOINTS, item("replication_offset_checkpoint", data), [kept])

    inputs = [b"1", str(1 << 63).encode(), b"2"]
    with sparing() as spared:
        for data in inputs:
            spared.run(target, data)
        with pytest.raises(OverflowError):
            spared.settle()
    assert spared.data == inputs[1]


def test_blind_changes_are_counted_and_what_breaks_a_promise_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(data: bytes) -> None:
        assert b"2" not in data

    monkeypatch.setattr(blind, "ROOT", tmp_path)
    assert blind.main(["offset_checkpoint", "--seconds", "0.1"]) == 0
    assert "0 findings" in capsys.readouterr().out
    monkeypatch.setitem(blind.TARGETS, "offset_checkpoint", broken)
    assert blind.main(["offset_checkpoint", "--seconds", "0.1"]) == 77
    kept = list((tmp_path / ".cache" / "fuzz" / "offset_checkpoint").iterdir())
    assert kept
    assert all(b"2" in path.read_bytes() for path in kept)


if IS_HARD:

    @pytest.mark.parametrize("name", TARGETS)
    def test_the_fuzzer_finds_nothing(name: str, record_property: Any) -> None:
        command = [sys.executable, "-m", "tests.fuzz.run", name, "--seconds", str(FUZZ_SECONDS)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace", check=False)
        assert done.returncode == 0, done.stderr[-4000:]
        (executed,) = re.findall(r"number_of_executed_units: *(\d+)", done.stderr)
        record_property(Figure.INPUTS, int(executed))
