"""docs/kraft-cases.md names each of Kafka's cases once, and ours where they are."""

from __future__ import annotations

import re

from tests import ROOT

PAGE = (ROOT / "docs" / "kraft-cases.md").read_text(encoding="utf-8")
SECTION = re.compile(
    r"^### (?P<of>\w+): (?P<ours>\d+) of (?P<all>\d+)\n(?P<text>.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL
)
NAME = re.compile(r"`((?:test|can|leadership)\w+)`")
CONTROLLER = {
    "PartitionChangeBuilderTest": 30,
    "PartitionReassignmentReplicasTest": 12,
    "ReplicationControlManagerTest": 49,
    "ClusterControlManagerTest": 16,
}


def snake(name: str) -> str:
    plain = name.replace("KRaft", "Kraft").replace("ISR", "Isr").replace("_", "")
    return re.sub(r"(?<!^)(?=[A-Z])", "_", plain).lower()


def test_each_case_is_tried_where_the_page_says_or_left_out() -> None:
    sections = list(SECTION.finditer(PAGE))
    assert {one["of"]: int(one["all"]) for one in sections}.items() >= CONTROLLER.items()
    for section in sections:
        ported, _, left = section["text"].partition("Left out:")
        ours = []
        for file, names in re.findall(r"In `([\w/.]+)`:(.*?)(?=^In|\Z)", ported, re.MULTILINE | re.DOTALL):
            path = ROOT / file if (ROOT / file).exists() else ROOT / "tests/unit/reconstruct" / file
            written = path.read_text(encoding="utf-8")
            found = NAME.findall(names)
            ours += found
            assert [n for n in found if not re.search(rf"\b(?:{n}|{snake(n)})\b", written)] == [], section["of"]
        items = [_split(item) for item in re.split(r"^\* ", left, flags=re.MULTILINE)[1:]]
        assert all(reason for reason, _ in items), section["of"]
        others = [name for _, names in items for name in names]
        assert len({*ours, *others}) == len(ours) + len(others) == int(section["all"]), section["of"]
        assert len(ours) == int(section["ours"]), section["of"]


def _split(item: str) -> tuple[str, list[str]]:
    """The reason, which may name a case itself, and the names behind it."""
    reason, _, names = " ".join(item.split()).rpartition(": ")
    return reason, NAME.findall(names)
