"""What the documents promise to list, they list; what they tell a reader to run or to follow, is there and works."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from dashboards.texts.numbers import with_markdown_links
from ingest.containers.storage import list_files
from ingest.files.attribution import attribute
from ingest.files.inspection import inspect
from ingest.files.recognise import recognise
from ingest.lake.tables.shared import INFERRED_FROM
from ingest.readers.capture_lines import znode_snapshots
from ingest.readers.log_dirs.names import METADATA_DIRECTORY as METADATA
from ingest.readers.logs.layouts import LAYOUT_BY_NAME, WRAPPER_BY_NAME
from ingest.readers.sources import SOURCES
from ingest.readers.work import Kept, WorkItem
from jobs.cli import JOBS, build_parser
from jobs.command.job import PROGRAM
from jobs.docs.pages import sections
from reconstruct.findings.alternatives import ALTERNATIVES
from reconstruct.findings.divergences import HARM_OF_TYPE, DivergenceType, Harm
from tests import ROOT
from tests.support.captures.packed import Unpacker
from tests.support.loops import for_each

PAGES = (ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md")))
SOURCE_PAGES = tuple(page for page in sorted((ROOT / "docs" / "sources").glob("*.md")) if page.name != "README.md")
SOURCE_INDEX = ROOT / "docs" / "sources" / "README.md"
SOURCE_SECTIONS = [
    "What it gives",
    "How to collect it",
    "What is lost without it",
    "Versions and quirks",
    "In the lake",
]

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)


def prose(page: Path) -> str:
    """A page without its fenced blocks, whose lines are no headings and no links."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def blocks(page: Path, language: str | None = None) -> list[str]:
    found = _FENCE.findall(page.read_text(encoding="utf-8"))
    return [text for name, text in found if language is None or name == language]


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives to a page's headings."""
    given: set[str] = set()
    for heading in _HEADING.findall(prose(page)):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        number = 0
        while (anchor := f"{slug}-{number}" if number else slug) in given:
            number += 1
        given.add(anchor)
    return given


def called_in_blocks(text: str) -> Iterator[list[str]]:
    """The arguments of each call of the program in a block of shell commands; a command may go over several lines."""
    lines = iter(text.splitlines())
    for line in lines:
        command = line.strip().removeprefix("$ ")
        if not command.startswith(f"{PROGRAM} "):
            continue
        while True:
            try:
                words = shlex.split(command, comments=True)
            except ValueError:  # a quotation goes on
                command += "\n" + next(lines)
                continue
            if not command.endswith("\\"):
                break
            command = command[:-1] + next(lines)
        yield words[1:]


def called_in_prose(text: str) -> Iterator[list[str]]:
    """The arguments of what stands in backticks and is a command with options, those in brackets included."""
    names = {job.name for job in JOBS}
    for code in re.findall(r"`([^`\n]+)`", text):
        words = re.sub(r"[\[\]]", "", code).removeprefix(f"{PROGRAM} ").split()
        if len(words) > 1 and words[0] in names and any(word.startswith("--") for word in words):
            yield words


def test_every_type_of_finding_has_its_section_under_the_rules_it_belongs_to() -> None:
    assert set(sections()) == {(kind.value, kind.rules) for kind in DivergenceType}
    index = (ROOT / "docs" / "findings.md").read_text()
    pages = {path.partition("#")[0] for path in sections().values()}
    assert {page for page in pages if f"({page})" not in index} == set()


def test_every_harm_and_every_alternative_is_explained() -> None:
    page = (ROOT / "docs" / "findings.md").read_text()
    explained = {row[0]: row[1] for row in re.findall(r"^\| `(\w+)` \|.*\|(.*)\|$", page, re.MULTILINE)}
    assert set(explained) == {harm.value for harm in Harm} | {alternative.name for alternative in ALTERNATIVES}
    assert {kind for kind, harm in HARM_OF_TYPE.items() if f"`{kind}`" not in explained[harm]} == set()


def test_every_reason_to_infer_is_explained() -> None:
    page = (ROOT / "docs" / "timelines.md").read_text()
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == set(INFERRED_FROM)


def test_every_kind_of_source_that_is_read_is_named_on_a_page_with_its_table() -> None:
    rows = [line for page in SOURCE_PAGES for line in prose(page).partition("## In the lake")[2].splitlines()]
    missing = [
        kind
        for source in SOURCES
        for kind in source.kinds
        if not any(f"`{kind}`" in row and f"`{source.table.full_name}`" in row for row in rows)
    ]
    assert missing == []


def test_the_index_of_sources_leads_to_every_page_and_names_every_table() -> None:
    index = prose(SOURCE_INDEX)
    assert {page.name for page in SOURCE_PAGES} <= set(_LINK.findall(index))
    assert [source.table.name for source in SOURCES if f"`{source.table.name}`" not in index] == []


def test_every_layout_and_wrapper_of_logs_is_named() -> None:
    page = prose(ROOT / "docs" / "sources" / "logs.md")
    assert [name for name in (*LAYOUT_BY_NAME, *WRAPPER_BY_NAME) if f"`{name}`" not in page] == []


@pytest.mark.parametrize("page", SOURCE_PAGES, ids=lambda page: page.stem)
def test_every_page_of_a_source_has_the_same_sections(page: Path) -> None:
    assert re.findall(r"^## (.+)$", prose(page), re.MULTILINE) == SOURCE_SECTIONS


@for_each(page=PAGES)
def test_every_link_within_the_project_leads_somewhere(page: Path) -> None:
    broken = []
    for link in _LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        is_there = target.is_relative_to(ROOT) and target.exists()
        if not is_there or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


@for_each(page=PAGES)
def test_every_file_of_the_program_that_a_page_names_exists(page: Path) -> None:
    of_program = re.compile(r"`((?:ingest|reconstruct|checks|dashboards|jobs|tests|docs)/[\w./*]+)`")
    assert [name for name in of_program.findall(prose(page)) if not any(ROOT.glob(name.rstrip("/")))] == []


@for_each(page=PAGES)
def test_every_command_of_the_program_in_the_documents_is_one_it_takes(page: Path) -> None:
    parser = build_parser()
    wrong = []
    for words in [*(call for text in blocks(page) for call in called_in_blocks(text)), *called_in_prose(prose(page))]:
        try:
            parser.parse_args(words)
        except (SystemExit, argparse.ArgumentError):
            wrong.append(" ".join(words))
    assert wrong == []


def test_the_documents_call_the_program() -> None:
    """The test above finds the calls at all: those of several lines, of comments behind, and in the prose."""
    readme = [call for text in blocks(ROOT / "README.md") for call in called_in_blocks(text)]
    assert ["run", "LOGS..."] in readme
    assert any(call[:3] == ["sql", "--lake", "LAKE"] and call[3].endswith("ORDER BY sequence") for call in readme)
    assert any("--out" in call for call in called_in_prose(prose(ROOT / "README.md")))


@pytest.mark.skipif(sys.platform != "linux", reason="brokers run on Linux: the script uses its ls")
def test_the_script_that_collects_a_broker_gives_an_archive_of_which_every_file_is_read(
    unpacked: Unpacker, tmp_path: Path
) -> None:
    capture = unpacked("checkpoints-1.1.1")
    broker = capture / "broker-2"
    directory = tmp_path / "data1"
    directory.mkdir()
    for copies in sorted((broker / "checkpoints").iterdir()):
        (directory / copies.name).write_bytes(max(copies.iterdir()).read_bytes())
    for checkpoint in sorted((broker / "leader-epoch-checkpoint").iterdir()):
        partition = directory / checkpoint.name
        partition.mkdir()
        (partition / "leader-epoch-checkpoint").write_bytes(checkpoint.read_bytes())
        (partition / f"{0:020}.log").write_bytes(b"records of users, which must not be copied")
    shutil.copytree(ROOT / "tests" / "data" / "kraft-4.1.0" / "broker-1" / METADATA, directory / METADATA)
    (directory / "meta.properties").write_bytes((broker / "meta.properties").read_bytes())
    properties = (broker / "server.properties").read_text()
    configuration = tmp_path / "kafka.properties"
    configuration.write_text(re.sub(r"(?m)^log\.dirs=.*$", f"log.dirs={directory}", properties))

    script = next(text for text in blocks(SOURCE_INDEX, "sh") if text.startswith("# sh broker.sh"))
    done = subprocess.run(
        ["sh", "-s", str(configuration), str(broker / "logs")], input=script.encode(), capture_output=True, check=True
    )
    assert done.stderr == b""
    (tmp_path / "broker.tar.gz").write_bytes(done.stdout)
    assert b"records of users" not in done.stdout

    files = [file for found in list_files(str(tmp_path / "broker.tar.gz")) for file in inspect(found)]
    owners, warnings = attribute(files, cluster_id=None, brokers={}, known_cluster=None)
    assert warnings == []
    assert {owner.file.status for owner in owners} == {"ingested"}
    assert {owner.broker_id for owner in owners} == {2}
    assert len({owner.cluster_id for owner in owners}) == 1
    kinds = {owner.file.kind for owner in owners}
    assert kinds >= {"state_change_log", "controller_log", "server_log", "server_properties", "meta_properties"}
    assert kinds >= {"replication_offset_checkpoint", "leader_epoch_checkpoint", "directory_listing"}
    assert kinds >= {"metadata_log", "metadata_snapshot", "quorum_state"}
    of_instants = [owner.file for owner in owners if owner.file.kind.endswith("_offset_checkpoint")]
    assert all(file.captured_at_ms is not None for file in of_instants)


def test_the_reading_of_znodes_that_the_documents_show_gives_a_snapshot_that_is_read(monkeypatch, capsys) -> None:
    tree = {
        "/": b"",
        "/brokers": None,
        "/brokers/ids": b"",
        "/brokers/ids/1": b'{"host":"k1"}',
        "/config": b"",
        "/config/users": b"",
        "/config/users/alice": b"SCRAM",
    }
    in_stat = ("czxid", "mzxid", "pzxid", "ctime", "mtime", "version", "cversion", "ephemeralOwner")

    class Client:
        def __init__(self, hosts: str, read_only: bool) -> None:
            assert hosts == "zookeeper-1:2181/kafka"

        def start(self) -> None:
            pass

        def get_children(self, path: str) -> list[str]:
            above = path.rstrip("/") + "/"
            below = [name[len(above) :] for name in tree if name.startswith(above)]
            return [name for name in below if name and "/" not in name]

        def get(self, path: str) -> tuple[bytes | None, SimpleNamespace]:
            stat = dict.fromkeys(in_stat, 7)
            return tree[path], SimpleNamespace(**stat, numChildren=len(self.get_children(path)))

    monkeypatch.setattr("kazoo.client.KazooClient", Client)
    monkeypatch.setattr(sys, "argv", ["znodes.py", "zookeeper-1:2181/kafka"])
    (script,) = blocks(ROOT / "docs" / "sources" / "zookeeper.md", "python")
    exec(compile(script, "znodes.py", "exec"), {})
    printed = capsys.readouterr().out.encode()

    assert recognise(printed, ("snapshot",), is_whole=True).kind == "znode_snapshot"
    item = WorkItem(
        location="",
        member=None,
        source_file="snapshot",
        kind="znode_snapshot",
        cluster_id="",
        broker_id=None,
        file_id="",
        record_base="",
        end=len(printed),
    )
    rows = list(znode_snapshots.read(item, [printed]))
    assert all(isinstance(row, Kept) for row in rows)
    assert {row.values["path"] for row in rows} == set(tree) - {"/config/users/alice"}
    assert [json.loads(row.values["data"]) for row in rows if row.values["path"] == "/brokers/ids/1"] == [
        {"host": "k1"}
    ]


def test_each_improvement_proposal_that_a_page_names_has_its_link():
    listed = set(re.findall(r"^\| \[(KIP-\d+)\]\(", (ROOT / "docs" / "glossary.md").read_text("utf-8"), re.MULTILINE))
    named = {name for page in PAGES for name in re.findall(r"KIP-\d+", page.read_text("utf-8"))}
    assert named == listed


@for_each(page=[page for page in PAGES if page.name not in ("CHANGELOG.md", "glossary.md")])
def test_each_number_of_an_issue_or_proposal_is_a_link(page: Path) -> None:
    text = page.read_text("utf-8")
    glossary = "../" * (len(page.relative_to(ROOT).parts) - 2) + "glossary.md"
    linked = with_markdown_links(text, glossary)
    both = zip(text.splitlines(), linked.splitlines(), strict=True)
    assert [line for line, with_links in both if line != with_links] == []
