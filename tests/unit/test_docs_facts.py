"""Numbers, limits and names that the documents state are those of the program."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from dashboards.questions.question import questions
from dashboards.sections.coverage.limits import MOST_SENTENCES
from dashboards.source import Limits
from dashboards.views import QUESTION_FUNCTIONS, QUESTION_VIEWS, VIEWS
from ingest.containers import limits, nesting, storage, tar_archives, zip_directory
from ingest.lake.tables import TABLES
from ingest.readers.lines import MAX_RECORD_BYTES, MAX_RECORD_LINES
from ingest.readers.work import RAW_BYTES
from jobs.assistants import tools
from jobs.cli import JOBS
from jobs.lab.machines.releases import BY_NAME
from reconstruct.rule_book import RULES
from tests import ROOT
from tests.support.captures.packed import capture_names
from tests.support.loops import for_each
from tests.unit.test_architecture import LAYERS

DOCS: Final = ROOT / "docs"
PAGES: Final = (ROOT / "README.md", ROOT / "Makefile", *sorted(DOCS.rglob("*.md")))
#: What the pages on how to add one make up.
EXAMPLES: Final = {"R17", "silver.py", "gold.py"}
MIB: Final = 1 << 20
GIB: Final = 1 << 30


def numbers(text: str) -> list[int]:
    return [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*(?<!,)", text)]


def table(page: str, heading: str) -> dict[str, str]:
    """The second cell of each row of the first table below the heading, by its first cell."""
    below = (DOCS / page).read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2]
    found = re.search(r"(?:^\|.*\n)+", below, re.MULTILINE)
    assert found, f"{page} has no table below {heading}"
    rows = [row.strip("| ").split(" | ") for row in found[0].splitlines()[2:]]
    return {row[0]: row[1] for row in rows}


KINDS_OF_FAULTS: Final = [kind for kind in table("findings.md", "How sure they are") if kind != "**all**"]


@pytest.mark.parametrize(
    ("pattern", "count"),
    [
        (r"(\d+) \[saved questions\]", len(questions())),
        (r"the (\d+) captures of the tests", len(capture_names())),
        (r"[Ff]aults of (\d+) kinds", len(KINDS_OF_FAULTS)),
        (r"(\d+) kinds of faults", len(KINDS_OF_FAULTS)),
    ],
)
def test_a_number_of_things_that_can_be_counted_is_right(pattern: str, count: int) -> None:
    texts = {str(page.relative_to(ROOT)): page.read_text(encoding="utf-8") for page in PAGES}
    stated = {name: found for name, text in texts.items() if (found := re.findall(pattern, text))}
    assert stated
    assert {
        name: found for name, found in stated.items() if {n for text in found for n in numbers(text)} != {count}
    } == {}


def test_the_readme_has_a_row_for_each_command() -> None:
    rows = re.findall(r"^\| `(\w+)", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(rows) == sorted(job.name for job in JOBS)


@pytest.mark.parametrize("package", ["ingest", "reconstruct"])
def test_every_room_is_described_and_drawn(package: str) -> None:
    rooms = {path.parent.name for path in (ROOT / package).glob("*/__init__.py")}
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    picture = " ".join(
        re.findall(r"<t[^>]*>([^<]*)", (DOCS / "images" / "architecture.svg").read_text(encoding="utf-8"))
    )
    assert sorted(room for room in rooms if f"`{package}/{room}" not in page) == []
    assert sorted(room for room in rooms if not re.search(rf"\b{room}\b", picture)) == []


def test_the_way_of_one_line_is_there_in_the_code_and_as_long_as_is_said() -> None:
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    way = re.findall(r"^\| \d+ \| (.*?) \| `([\w/.]+)` \| (.*?)\|$", page, re.MULTILINE)
    missing = [
        f"{name} in {place}"
        for functions, place, _ in way
        for name in re.findall(r"`(\w+)`", functions)
        if not any(
            f"def {name}(" in path.read_text("utf-8")
            for path in (ROOT / place, *(ROOT / place).rglob("*.py"))
            if path.is_file()
        )
    ]
    assert missing == []
    changes = [number for _, _, form in way for number in re.findall(r"\*\*(\d+)\*\*", form)]
    assert changes == [str(number + 1) for number in range(len(changes))]
    assert f"{len(way)} functions hand it on" in page
    assert f"{len(changes)} times it takes another form" in page


def test_the_page_of_the_lab_names_every_release() -> None:
    page = (DOCS / "lab.md").read_text(encoding="utf-8")
    (released, of_quorums) = re.findall(
        r"are the released jars of ([^;]*); without ZooKeeper, of ([^;]*?)\.\sThe", page
    )[0]
    kraft = [release for release in BY_NAME.values() if release.is_kraft]
    assert re.findall(r"\d+(?:\.\d+)+", released) == [r.version for r in BY_NAME.values() if not r.is_kraft]
    assert list(dict.fromkeys(re.findall(r"\d+(?:\.\d+)+", of_quorums))) == [release.version for release in kraft]


def test_what_is_capped_in_the_report_is_capped_so() -> None:
    caps, of = table("report.md", "What is capped"), Limits()
    assert numbers(caps["clusters"]) == [of.clusters]
    assert numbers(caps["partitions drawn"])[0] == of.lanes
    assert numbers(caps["partitions whose offsets are drawn"])[0] == of.curves
    assert numbers(caps["steps of their replicas"]) == [of.curve_steps]
    assert numbers(caps["elections, leaders, truncations; losses of one"]) == [of.curve_events, of.curve_losses]
    assert numbers(caps["intervals drawn"]) == [of.segments, of.segments_per_lane]
    assert numbers(caps["findings shown"]) == [of.findings, of.findings_per_type]
    assert numbers(caps["evidence lines of a finding"]) == [of.evidence_per_finding, of.text_characters]
    assert numbers(caps["controller tenures, registrations"]) == [of.tenures, of.liveness]
    assert numbers(caps["reasons of rejection, templates"]) == [of.groups]
    assert numbers(caps["sentences of what cannot be said"])[0] == MOST_SENTENCES


def test_what_hostile_input_is_limited_to_is_limited_so() -> None:
    most = table("reliability.md", "Limits")
    unpacked = [storage.FREE_BYTES // GIB, storage.MAX_RATIO]
    assert numbers(most["a record"]) == [MAX_RECORD_BYTES // MIB, MAX_RECORD_LINES]
    assert numbers(most["a rejected record's text"]) == [RAW_BYTES // 1024]
    assert numbers(most["archives in one another; layers of compression"]) == [nesting.MAX_ARCHIVES, nesting.MAX_LAYERS]
    assert numbers(most["what comes out of each such layer of a file"]) == unpacked
    assert numbers(most["a file that is nearly nothing but a hole"]) == unpacked
    assert numbers(most["files in one archive, those of archives in it included; their names"]) == [
        limits.MAX_MEMBERS,
        limits.MAX_NAMES_CHARACTERS // MIB,
    ]
    assert numbers(most["holes of a sparse file in a tar archive"]) == [tar_archives.MAX_HOLES_BYTES // GIB]
    assert numbers(most["a tar header with its extensions; a zip directory read at once"]) == [
        tar_archives.MAX_HEADER_BYTES // MIB,
        zip_directory.MAX_DIRECTORY_BYTES // MIB,
    ]


def test_what_an_assistant_gets_at_most_is_bounded_so() -> None:
    (bounds,) = re.findall(
        r"\*\*Answers are bounded\*\*: ([^.]*)\. What takes more than (\d+) s", (DOCS / "assistants.md").read_text()
    )
    of = (tools.MOST_ROWS, tools.MOST_CHARACTERS, tools.MOST_RECORDS, tools.RECORD_CHARACTERS)
    assert numbers(bounds[0])[1:] == [*of]
    assert numbers(bounds[1]) == [tools.MOST_SECONDS]


MODULES: Final = [path for layer in LAYERS for path in sorted((ROOT / layer).rglob("*.py"))]


@for_each(path=(*PAGES, *MODULES))
def test_every_table_rule_and_file_that_a_page_or_a_docstring_names_exists(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tables = set(re.findall(r"`((?:bronze|silver|gold|quality|questions)\.[a-z]\w+)`", text))
    files = set(re.findall(r"``((?:ingest|reconstruct|checks|dashboards|jobs|tests|docs)/[\w./*]+)``", text))
    assert sorted(tables - {*TABLES, *VIEWS, *QUESTION_VIEWS, *QUESTION_FUNCTIONS} - EXAMPLES) == []
    assert sorted(set(re.findall(r"\bR\d\d\b", text)) - {*RULES} - EXAMPLES) == []
    assert [name for name in files if not any(ROOT.glob(name.rstrip("/")))] == []
