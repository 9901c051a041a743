"""The list of public folders, the page that tells of them, and which commit and folders are taken."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

from tests.support.public_folders import PAGE, check_out, listed, said


def test_the_list_names_the_folders_of_the_page() -> None:
    assert set(said(PAGE.read_text("utf-8"))) == set(listed())


def test_what_the_page_says_of_findings() -> None:
    page = said(
        "a/one (3.4.0; 10, 3, 439), b/two-2 (7, 0,\n1,848).\n"
        "| c/three | 1.0 | 5 | 1 | 9 | R37 `log_directory_wiped` 1 (error), 2 (warning; before, an error) | true |\n"
        "| d/four | | 5 | 1 | 9 | none; before, R12 `accepted_stale_controller` 2 (warning) | mended |\n"
    )
    wiped = Counter({("R37", "log_directory_wiped", "error"): 1, ("R37", "log_directory_wiped", "warning"): 2})
    assert page == {"a/one": Counter(), "b/two-2": Counter(), "c/three": wiped, "d/four": Counter()}


def test_the_fullest_commit_and_the_folders_with_kafkas_files(tmp_path: Path) -> None:
    source, into = tmp_path / "source", tmp_path / "into"

    def git(*arguments: str) -> str:
        named = ("-c", "user.name=n", "-c", "user.email=e@x")
        return subprocess.run(
            ["git", "-C", source, *named, *arguments], check=True, stdout=subprocess.PIPE, text=True
        ).stdout

    for path in ("kafka/logs/server.log", "kafka/logs/old/controller.log", "src/Main.java", "data/meta.properties"):
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_text(path)
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "-m", "logs")
    fullest = git("rev-parse", "HEAD").strip()
    git("rm", "--quiet", "-r", "kafka")
    git("commit", "--quiet", "-m", "no logs")
    assert check_out(source, None, into) == (fullest, 0)
    taken = {str(path.relative_to(into)) for path in into.rglob("*") if path.is_file()}
    assert taken == {"kafka/logs/server.log", "kafka/logs/old/controller.log", "data/meta.properties"}
    newest = git("rev-parse", "HEAD").strip()
    assert check_out(source, newest, tmp_path / "newest") == (newest, 0)
    assert not (tmp_path / "newest" / "kafka").exists()
