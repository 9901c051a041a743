"""The draft of a postmortem in Markdown, of the same data as the report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from typing import Final

from jinja2 import Environment, StrictUndefined, Template

from dashboards import overview, words
from dashboards.gather import ReportData
from dashboards.section import Cluster
from dashboards.sections import findings, incidents
from dashboards.sections.coverage import limits
from dashboards.texts import next_steps
from dashboards.texts.numbers import with_links

#: By kind of event, what the evidence leaves to ask of people and of other systems.
_QUESTIONS: Final = (
    (("records_lost", "records_perhaps_lost"), "Whose records were lost, and can their producers send them again?"),
    (("records_lost", "unclean_election"), "Is unclean.leader.election.enable meant to be on for these topics?"),
    (("uncommitted_records_cut",), "Which producers write with acks=1 or acks=0, and do they know what that means?"),
    (("under_min_isr",), "Which producers write with acks=all, and did they try again until they succeeded?"),
    (("no_live_leader", "offline"), "How long did clients wait or fail, by their own metrics?"),
    (("broker_died", "broker_halted"), "What do the operating system, the JVM and the hardware say of that time?"),
    (
        ("session_expired", "broker_lost"),
        "Was the broker paused (garbage collection, disk), or cut off by the network?",
    ),
    (("under_replicated",), "Had the replicas room to catch up: disk, network, num.replica.fetchers?"),
)


def postmortem(data: ReportData, title: str) -> str:
    """The draft; the same data gives the same text. Text of logs is text in it: nothing of it is Markdown or HTML."""
    return _template().render(
        data=data,
        title=title,
        count=words.count,
        incidents=incidents.SECTION,
        findings=findings.SECTION,
        summary=_summary,
        timeline=_timeline,
        limits_of=lambda cluster: limits.view(cluster, cluster.of(limits.SECTION)),
        questions_left=_questions_left,
        steps=_steps,
    )


@cache
def _template() -> Template:
    environment = Environment(autoescape=False, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {
        "md": words.markdown,
        "tracked": lambda text: with_links(words.markdown(text), lambda number, of: f"[{number}]({of})"),
        "instant": words.instant,
        "duration": words.duration,
        "named": words.named,
    }
    text = resources.files("dashboards.texts").joinpath("postmortem.md.j2").read_text(encoding="utf-8")
    return environment.from_string(text)


def _summary(cluster: Cluster) -> Sequence[str]:
    harm, over = cluster.of(findings.SECTION).harm, next_steps.state(cluster)
    said = (harm, overview.losses(cluster), over, *overview.verdict(cluster))
    return [sentence for sentence in said if sentence]


def _steps(shown: Iterable[incidents.Incident]) -> Iterable[next_steps.Step]:
    """What to do of all these, each once."""
    return dict.fromkeys(step for incident in shown for step in next_steps.next_steps(incident.events))


def _timeline(shown: Iterable[incidents.Incident]) -> list[incidents.Event]:
    return sorted((event for incident in shown for event in incident.events), key=lambda event: event.from_ms)


def _questions_left(shown: Iterable[incidents.Incident]) -> list[str]:
    happened = {event.event_kind for event in _timeline(shown)}
    return [question for kinds, question in _QUESTIONS if happened & set(kinds)]
