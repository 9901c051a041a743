"""What each generated page says: a template beside this module, and what fills it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import jinja2

from dashboards.questions.question import PARAMETERS, questions
from dashboards.texts.numbers import with_markdown_links
from dashboards.views import VIEWS
from ingest.lake.tables import SCHEMAS, TABLES
from ingest.lake.tables.bronze.kinds import SourceKind
from ingest.shapes import MEANINGS, SHAPES
from jobs.docs.event_uses import REASONS, event_uses, not_read
from jobs.docs.mechanisms import MECHANISMS
from reconstruct.model import states
from reconstruct.model.versions import OLDEST
from reconstruct.rule_book import RULES

PAGES: Final = ("tables.md", "transitions.md", "rules.md", "event-types.md", "articles.md", "questions.md")
#: The pages on which each kind of finding has its section.
FINDINGS: Final = Path(__file__).parents[2] / "docs" / "findings"
_SECTION: Final = re.compile(r"^## (\w+) \((R\d\d(?:, R\d\d)*)\)$", re.MULTILINE)
_SCHEMA_SENTENCES: Final = {
    "bronze": "What was read, as it was read: every file, every record, every record that could not be read.",
    "silver": "Typed events, and the timelines replayed from them.",
    "gold": "What the timelines amount to: elections, findings, availability, losses.",
    "quality": "What was checked, what was measured, and what cannot be said.",
}
_ARTICLES: Final = {
    1: "The controller's state machines",
    2: "Segments, high watermarks and the ISR",
    3: "A replica's high watermark and log end, and whom it fetches from",
}
#: What writes the messages of each kind of shape.
_SHAPE_TITLES: Final = {
    SourceKind.STATE_CHANGE_LOG: "state-change.log",
    SourceKind.CONTROLLER_LOG: "controller.log",
    SourceKind.SERVER_LOG: "server.log",
    "exception": "Exceptions",
}
#: Valid previous states by state. Any of the machines': a Mapping's keys are invariant.
_Table = Mapping[Any, frozenset[Any]]


@dataclass(frozen=True)
class Machine:
    """A state machine of the controller: the state before the first, and the table of each era by its name."""

    title: str
    first: StrEnum
    eras: Mapping[str, _Table]

    @property
    def states(self) -> tuple[StrEnum, ...]:
        return tuple(type(self.first))

    def sources(self, table: _Table, target: StrEnum) -> list[StrEnum]:
        """The states from which ``target`` may be entered."""
        return [source for source in self.states if source in table.get(target, ())]

    def arrows(self) -> Iterator[tuple[StrEnum, StrEnum, str]]:
        """Every transition of any era, in the order of the states, with a label where not all eras have it."""
        last = list(self.eras)[-1]
        for source in self.states:
            for target in self.states:
                named = [era for era, table in self.eras.items() if source in table.get(target, ())]
                if len(named) == len(self.eras):
                    yield source, target, ""
                elif named and named[-1] == last:  # "since 0.8.1" for what lasts to the last era
                    yield source, target, f": since {named[0].split()[-1 if len(named) == 1 else 0]}"
                elif named:
                    yield source, target, f": {', '.join(named)}"


_MACHINES: Final = (
    Machine(
        "Partitions",
        states.PartitionState.NON_EXISTENT,
        {"0.8.0": states.VALID_PREVIOUS_PARTITION_STATES_0_8_0, "since 0.8.1": states.VALID_PREVIOUS_PARTITION_STATES},
    ),
    Machine(
        "Replicas",
        states.ReplicaState.NON_EXISTENT,
        {
            "0.8.0": states.VALID_PREVIOUS_REPLICA_STATES_0_8_0,
            "0.8.1 to 2.2": states.VALID_PREVIOUS_REPLICA_STATES_0_8_1,
            "since 2.3": states.VALID_PREVIOUS_REPLICA_STATES,
        },
    ),
)


def page(name: str) -> str:
    """The whole page of that name."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )
    environment.filters["code"] = lambda value: f"`{value}`"
    environment.filters["cell"] = lambda text: text.replace("|", "\\|").replace("\n", " ")
    written = environment.get_template(f"{name}.j2").render(
        schemas=SCHEMAS,
        schema_sentences=_SCHEMA_SENTENCES,
        tables=TABLES.values(),
        machines=_MACHINES,
        rules=RULES.values(),
        oldest=OLDEST,
        sections=sections(),
        shape_titles=_SHAPE_TITLES,
        shapes=SHAPES,
        meanings=MEANINGS,
        event_uses=event_uses(),
        not_read=dict(not_read()),
        reasons=REASONS,
        mechanisms=MECHANISMS,
        articles=_ARTICLES,
        questions=questions().values(),
        views=VIEWS.values(),
        parameters=PARAMETERS,
    )
    return with_markdown_links(written.rstrip("\n") + "\n", "glossary.md")


def sections() -> dict[tuple[str, tuple[str, ...]], str]:
    """By (kind of finding, its rules), as the headings have them: the page and the anchor that Markdown gives it."""
    return {
        (name, tuple(rules.split(", "))): f"findings/{found.name}#{name}-{rules.lower().replace(', ', '-')}"
        for found in sorted(FINDINGS.glob("*.md"))
        for name, rules in _SECTION.findall(found.read_text(encoding="utf-8"))
    }
