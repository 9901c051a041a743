"""Many small changes to small inputs, without a look at which code they reach: ``python -m tests.fuzz.blind [TARGET]``.

All targets take turns, each turn with other changes, until ``--seconds`` are over. What is found is written below
``.cache/fuzz/TARGET/`` as :mod:`tests.fuzz.run` does, told, and the next target goes on. Exit codes: 0 nothing found,
77 a promise is broken.
"""

from __future__ import annotations

import argparse
import hashlib
import logging
import signal
import sys
import time
import traceback
from types import FrameType
from typing import Final

from tests import ROOT
from tests.fuzz.invariants import Sparing, sparing
from tests.fuzz.mutation import mutated
from tests.fuzz.seeds import seeds
from tests.fuzz.targets import TARGETS

_INPUT_SECONDS: Final = 20
#: Inputs of one target before it is the next one's turn.
_TURN: Final = 4_000
#: Each so many-th turn has inputs of so many times the length.
_LONG: Final = 4
_BROKEN: Final = 77


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.blind", description=__doc__.split("\n")[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)} (default: all)")
    parser.add_argument("--seconds", type=float, default=60.0, help="stop after so many seconds")
    parser.add_argument("--max-bytes", type=int, default=400, help="no input is longer")
    parser.add_argument("--seed", type=int, default=1, help="of the changes of the first turn")
    options = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)
    signal.signal(signal.SIGALRM, _too_long)
    until = time.monotonic() + options.seconds
    done, found = dict.fromkeys(options.targets or TARGETS, 0), 0
    seed = options.seed
    while time.monotonic() < until:
        for name in done:
            with sparing() as spared:
                try:
                    longest = options.max_bytes * (1 if seed % _LONG else _LONG)
                    done[name] += _turn(name, spared, longest, seed, until)
                    spared.settle()
                except Exception:
                    found += 1
                    _tell(name, spared.data)
        seed += 1
        print(f"{sum(done.values()):,} inputs, {found} findings", flush=True)
    print("\n".join(f"{count:>12,} {name}" for name, count in done.items()))
    return _BROKEN if found else 0


def _turn(name: str, spared: Sparing, longest: int, seed: int, until: float) -> int:
    """How many inputs were tried."""
    target, given = TARGETS[name], [data[:longest] for data in seeds(name)]
    number = 0
    for number, data in enumerate(mutated(given, _TURN - len(given), seed), 1):
        signal.alarm(_INPUT_SECONDS)
        spared.run(target, data[:longest])
        if number % 100 == 0 and time.monotonic() > until:
            break
    signal.alarm(0)
    return number


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"an input took longer than {_INPUT_SECONDS} s")


def _tell(name: str, data: bytes) -> None:
    folder = ROOT / ".cache" / "fuzz" / name
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"found-{hashlib.sha1(data).hexdigest()}"
    path.write_bytes(data)
    print(f"{name}: {path}\n{traceback.format_exc()}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
