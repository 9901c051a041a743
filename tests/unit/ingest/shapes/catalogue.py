"""The catalogue of Kafka's messages that the shapes were made from, as the tests read it."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from typing import Any, Final

from tests import ROOT

DATA: Final = ROOT / "tests" / "data"

SOURCE_KINDS: Final = {
    "state-change.log": "state_change_log",
    "controller.log": "controller_log",
    "server.log": "server_log",
}

#: Templates with no text of their own to recognise: a name, a colon and anything.
WITHOUT_A_SHAPE: Final = frozenset({"KR-0183"})


def templates() -> list[dict[str, Any]]:
    """Every template of a log message; stack-trace lines, which reach no record's message, are left out."""
    with lzma.open(DATA / "message-templates.jsonl.xz", "rt", encoding="utf-8") as lines:
        entries = [json.loads(line) for line in lines]
    return [entry for entry in entries if entry["kind"] != "exception_line"]


def examples(template: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(source kind, logger, message) of every example of a template."""
    texts = {template["example"], *(variant["example"] for variant in template.get("example_variants", ()))}
    for logger in {template["logger"], *template.get("loggers", ())}:
        for text in texts:
            yield SOURCE_KINDS[template["log_file"]], logger, text
