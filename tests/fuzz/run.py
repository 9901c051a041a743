"""Fuzz one reader with atheris: ``python -m tests.fuzz.run TARGET [--seconds N | --runs N]``.

Without a target, lists them. What it finds is written below ``.cache/fuzz/TARGET/``: give such a file as ``--input``
to see it again, and add it to ``tests/unit/fuzz/test_found.py``. Exit codes: 0 nothing found, 77 a promise is broken,
70 an input took longer than its limit, 71 too much memory. :mod:`tests.fuzz.blind` tries more in less time.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from pathlib import Path
from typing import Final

import atheris

from tests import ROOT

with atheris.instrument_imports(include=["ingest"]):
    from tests.fuzz.seeds import seeds
    from tests.fuzz.targets import TARGETS

_FOUND: Final = ROOT / ".cache" / "fuzz"
_INPUT_SECONDS: Final = 20
_MEMORY_MIB: Final = 2048


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.run", description=__doc__.split("\n")[0])
    parser.add_argument("target", nargs="?", choices=list(TARGETS))
    parser.add_argument("--seconds", type=int, help="stop after so many seconds (60 unless --runs is given)")
    parser.add_argument("--runs", type=int, help="stop after so many inputs")
    parser.add_argument("--max-bytes", type=int, default=2_000, help="no input is longer")
    parser.add_argument("--seed", type=int, default=1, help="of the choices that are made at random")
    parser.add_argument("--input", type=Path, help="run the target on this file alone")
    options = parser.parse_args(arguments)
    if options.target is None:
        print("\n".join(TARGETS))
        return
    target = TARGETS[options.target]
    if options.input is not None:
        target(options.input.read_bytes())
        return
    folder = _FOUND / options.target
    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for seed in seeds(options.target):
        (corpus / hashlib.sha1(seed).hexdigest()).write_bytes(seed)
    limit = f"-runs={options.runs}" if options.runs is not None else f"-max_total_time={options.seconds or 60}"
    atheris.Setup(
        [
            sys.argv[0],
            str(corpus),
            limit,
            f"-max_len={options.max_bytes}",
            f"-seed={options.seed}",
            f"-timeout={_INPUT_SECONDS}",
            f"-rss_limit_mb={_MEMORY_MIB}",
            f"-artifact_prefix={folder}/",
            "-len_control=0",
            "-print_final_stats=1",
        ],
        target,
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
