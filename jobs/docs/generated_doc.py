"""A page of the docs that is written from declarations: written, or compared with what stands there."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path


def write_or_check(module: str, about: str | None, markdown: Callable[[], str], argv: Sequence[str] | None) -> int:
    """``python -m MODULE [--check] FILE``: write the file; with ``--check`` compare it only, and give 1 where it is
    out of date."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=about)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where the file is out of date")
    parser.add_argument("file", type=Path)
    options = parser.parse_args(argv)
    wanted = markdown()
    if options.check:
        if options.file.is_file() and options.file.read_text(encoding="utf-8") == wanted:
            return 0
        print(f"{options.file} is not what is declared: run make docs", file=sys.stderr)
        return 1
    options.file.write_text(wanted, encoding="utf-8")
    return 0
