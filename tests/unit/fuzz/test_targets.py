"""Every reader keeps its promises on real inputs with small, always the same changes.

With ``HYPOTHESIS_PROFILE=hard`` (``make test-hard``) there are many more of them, and atheris looks for others.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests import ROOT
from tests.fuzz.mutation import mutated
from tests.fuzz.seeds import seeds
from tests.fuzz.targets import TARGETS
from tests.support.budget import IS_HARD

CASES = 5000 if IS_HARD else 200
FUZZ_SECONDS = 30


@pytest.mark.parametrize("name", TARGETS)
def test_changed_inputs_break_no_promise(name: str) -> None:
    for number, data in enumerate(mutated(seeds(name), CASES)):
        try:
            TARGETS[name](data)
        except Exception as error:
            pytest.fail(f"input {number} of {name}: {type(error).__name__}: {error}\n{data[:2000]!r}")


def test_the_changes_are_always_the_same() -> None:
    assert list(mutated([b"one", b"two"], 50)) == list(mutated([b"one", b"two"], 50))


if IS_HARD:

    @pytest.mark.parametrize("name", TARGETS)
    def test_the_fuzzer_finds_nothing(name: str) -> None:
        command = [sys.executable, "-m", "tests.fuzz.run", name, "--seconds", str(FUZZ_SECONDS)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace", check=False)
        assert done.returncode == 0, done.stderr[-4000:]
