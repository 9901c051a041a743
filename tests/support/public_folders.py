"""What the program says of public folders, folder by folder, against what docs/public-folders.md says.

python -m tests.support.public_folders [--from DIR] [--at-once N] [--out DIR] [OWNER/NAME ...]

tests/data/public-folders.txt lists the repositories, and the commit where it is known. A repository is cloned, or read
from DIR/OWNER+NAME/repo; without a commit the one that holds most of Kafka's files is taken. Only folders with such
files are checked out, without those that a copy lacks. N folders go into one lake, as a tree of many clusters does.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from kafka_state_replay import open_lake
from tests import ROOT

LISTED: Final = ROOT / "tests" / "data" / "public-folders.txt"
PAGE: Final = ROOT / "docs" / "public-folders.md"
#: The names of files that mark a folder of Kafka's logs or data.
_MARKS: Final = re.compile(
    r"(^|/)((state-change|controller|server|kafkaServer)\.(log|out)[^/]*|meta\.properties|[a-z-]+-checkpoint)$"
)
_GLOBS: Final = ("*state-change.log*", "*controller.log*", "*server.log*", "*meta.properties", "*-checkpoint")
#: (rule, type, severity) of findings above info, and how many.
Findings = Counter[tuple[str, str, str]]
_KIND: Final = re.compile(r"(R\d+) `(\w+)` ((?:\d+ \((?:error|warning)[^)]*\)(?:, )?)+)")
_COUNT: Final = re.compile(r"(\d+) \((error|warning)")


def listed() -> dict[str, str | None]:
    """The repositories, OWNER/NAME, each with its commit where one is known."""
    lines = (line.split() for line in LISTED.read_text("utf-8").splitlines() if line and not line.startswith("#"))
    return {name: commit[0] if commit else None for name, *commit in lines}


def said(page: str) -> dict[str, Findings]:
    """What the page says of each repository: a row of a table where there is something above info, else its place in a
    list, with release, files, clusters and records in brackets."""
    found: dict[str, Findings] = {}
    for name in re.findall(r"([\w.-]+/[\w.-]+) \([^()]*[\d,]+, \d+, [\d,]+\)", page.replace("\n", " ")):
        found[name] = Counter()
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and re.fullmatch(r"[\w.-]+/[\w.-]+", cells[0]):
            found[cells[0]] = Counter()
            if not cells[5].startswith("none"):
                for rule, kind, counts in _KIND.findall(cells[5]):
                    found[cells[0]].update({(rule, kind, of): int(n) for n, of in _COUNT.findall(counts)})
    return found


def _git(folder: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", "-C", str(folder), *arguments], check=True, stdout=subprocess.PIPE).stdout


def _repository(name: str, given: Path | None, cloned: Path) -> Path:
    plain = name.replace("/", "+")
    if given is not None and (given / plain / "repo").is_dir():
        return given / plain / "repo"
    if not (cloned / plain).is_dir():
        command = ["git", "clone", "--quiet", "--bare", f"https://github.com/{name}", str(cloned / plain)]
        subprocess.run(command, check=True)
    return cloned / plain


def _folders(repository: Path, commit: str) -> list[str]:
    """The folders of a commit that hold Kafka's files, without those inside of another."""
    paths = _git(repository, "ls-tree", "-r", "-z", "--name-only", commit).decode("utf-8", "replace").split("\0")
    marked = sorted({str(PurePosixPath(path).parent) for path in paths if _MARKS.search(path)})
    kept: list[str] = []
    for folder in marked:
        if not any(above == "." or folder == above or folder.startswith(f"{above}/") for above in kept):
            kept.append(folder)
    return kept


def _fullest(repository: Path) -> str:
    """The commit with most of Kafka's files, the newest of several."""
    command = ("log", "--all", "--format=%H %P", "--", *_GLOBS)
    touching = _git(repository, *command).decode().split()
    commits = list(dict.fromkeys([*touching, _git(repository, "rev-parse", "HEAD").decode().strip()]))
    return max(commits, key=lambda commit: len(_marked(repository, commit)))


def _marked(repository: Path, commit: str) -> list[str]:
    paths = _git(repository, "ls-tree", "-r", "-z", "--name-only", commit).decode("utf-8", "replace").split("\0")
    return [path for path in paths if _MARKS.search(path)]


def check_out(repository: Path, commit: str | None, into: Path) -> tuple[str, int]:
    """Write the folders with Kafka's files of a commit below ``into``; the commit, and how many files a copy without
    large files lacks."""
    commit = commit or _fullest(repository)
    folders = _folders(repository, commit)
    listed_files = _git(repository, "ls-tree", "-r", "-z", commit, "--", *folders) if folders else b""
    files = {
        path: entry.split()[2]
        for entry, _, path in (line.partition(b"\t") for line in listed_files.split(b"\0"))
        if path
    }
    lacking = 0
    with subprocess.Popen(
        ["git", "-C", str(repository), "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as blobs:
        assert blobs.stdin is not None
        assert blobs.stdout is not None
        for path, blob in files.items():
            blobs.stdin.write(blob + b"\n")
            blobs.stdin.flush()
            head = blobs.stdout.readline().split()
            if head[1] == b"missing":
                lacking += 1
                continue
            content = blobs.stdout.read(int(head[2]) + 1)[:-1]
            target = into / path.decode("utf-8", "replace")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        blobs.stdin.close()
    into.mkdir(parents=True, exist_ok=True)
    return commit, lacking


def results(lake: Path) -> dict[str, tuple[int, int, Findings]]:
    """Of each repository in a lake: records kept, records rejected, and the findings above info."""
    opened = open_lake(str(lake))
    files = opened.sql(
        "SELECT split(source_file, '/')[0] AS name, sum(records_kept_count) AS kept,"
        " sum(records_rejected_count) AS rejected FROM bronze.ingested_files GROUP BY name"
    ).collect()
    found = opened.sql(
        "WITH names AS (SELECT DISTINCT cluster_id, split(source_file, '/')[0] AS name FROM bronze.ingested_files"
        " WHERE status = 'ingested')"  # what was not read stands under any of the clusters
        " SELECT name, rule_id, divergence_type, severity, count(*) AS n FROM gold.divergences JOIN names"
        " USING (cluster_id) WHERE severity <> 'info' GROUP BY ALL"
    ).collect()
    by_name: dict[str, Findings] = {row["name"]: Counter() for row in files}
    for row in found:
        by_name[row["name"]][row["rule_id"], row["divergence_type"], row["severity"]] = row["n"]
    return {row["name"].replace("+", "/", 1): (row["kept"], row["rejected"], by_name[row["name"]]) for row in files}


def _worded(findings: Findings) -> str:
    return ", ".join(f"{rule} {kind} {n} ({of})" for (rule, kind, of), n in sorted(findings.items())) or "none"


def run(names: Sequence[str], commits: Mapping[str, str | None], out: Path, given: Path | None) -> Iterable[str]:
    """One lake of some repositories, and a line for each; those that differ from the page begin with ``!``."""
    expected, taken = said(PAGE.read_text("utf-8")), {}
    for made in ("tree", "lake"):
        shutil.rmtree(out / made, ignore_errors=True)
    for name in names:
        repository = _repository(name, given, out / "repositories")
        taken[name] = check_out(repository, commits.get(name), out / "tree" / name.replace("/", "+"))
    command = [sys.executable, "-m", "jobs.cli", "run", str(out / "tree"), "--lake", str(out / "lake")]
    code = subprocess.run([*command, "--out", str(out / "report"), "-q"], check=False).returncode
    of_lake = results(out / "lake")
    for name, (commit, lacking) in taken.items():
        kept, rejected, findings = of_lake.get(name, (0, 0, Counter()))
        says = expected.get(name)
        of_page = (
            "not on the page" if says is None else "as the page says" if says == findings else f"page: {_worded(says)}"
        )
        records = f"{kept:,} kept + {rejected:,} rejected" + (f", {lacking} files not in the copy" if lacking else "")
        mark = " " if says in (None, findings) else "!"
        yield f"{mark} {name} {commit[:12]}: {records}; {_worded(findings)}; {of_page}"
    yield f"  exit code {code}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--from", dest="given", type=Path)
    parser.add_argument("--at-once", type=int, default=20)
    parser.add_argument("--out", type=Path, default=ROOT / ".cache" / "public-folders")
    options = parser.parse_args()
    commits = listed()
    names = options.names or list(commits)
    is_different = False
    for first in range(0, len(names), options.at_once):
        some = names[first : first + options.at_once]
        for line in run(some, commits, options.out / str(first), options.given):
            is_different = is_different or line.startswith("!")
            print(line, flush=True)
    return int(is_different)


if __name__ == "__main__":
    sys.exit(main())
