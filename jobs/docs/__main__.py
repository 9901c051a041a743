"""``python -m jobs.docs [--check] [FOLDER]``: writes the pages, or compares them with what stands there."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from jobs.docs.pages import PAGES, page


def main(argv: Sequence[str] | None = None) -> int:
    """Write every page into the folder; with ``--check`` write nothing, and give 1 where one is out of date."""
    parser = argparse.ArgumentParser(prog="python -m jobs.docs", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where a page is out of date")
    parser.add_argument("folder", type=Path, nargs="?", default=Path("docs"))
    options = parser.parse_args(argv)
    stale = 0
    for name in PAGES:
        file, wanted = options.folder / name, page(name)
        if not options.check:
            file.write_text(wanted, encoding="utf-8")
        elif not file.is_file() or file.read_text(encoding="utf-8") != wanted:
            print(f"{file} is not what is declared: run make docs", file=sys.stderr)
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main())
