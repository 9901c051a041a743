"""The saved questions: SQL files with parameters, each with a header of comments that says what it answers.

A question is a file ``SUBJECT/NAME.sql`` beside this module. Its first comment is its title; then ``numbers`` (of
:data:`reconstruct.coverage.questions.QUESTIONS`, by which coverage tells what is not known), ``needs`` (kinds of
evidence), ``give`` (parameters without which it cannot be asked), ``read`` (how to read the answer) and ``next``
(questions to ask then). Parameters are Spark's named ones, NULL where not given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

#: Every parameter that a question may have, and what it is.
PARAMETERS: Final[Mapping[str, str]] = {
    "cluster": "cluster",
    "topic": "topic",
    "partition": "number of the partition",
    "broker": "id of a broker",
    "from": "only what lasted, or happened, at or after this time",
    "to": "only what began, or happened, before this time",
    "at": "the instant asked about",
}
TIMES: Final = ("from", "to", "at")
_TYPES: Final = {"partition": "INT", "broker": "INT", **dict.fromkeys(TIMES, "TIMESTAMP")}
_HERE: Final = Path(__file__).parent
_COMMENT: Final = re.compile(r"^-- ?(.*)$")
_FIELD: Final = re.compile(r"^(numbers|needs|give|read|next): (.*)$")
_MARKER: Final = re.compile(r":(" + "|".join(PARAMETERS) + r")\b")


@dataclass(frozen=True)
class Question:
    """One saved question; ``parameters`` are those that its SQL names, ``give`` those that must be given."""

    name: str
    subject: str
    title: str
    numbers: tuple[int, ...]
    needs: tuple[str, ...]
    give: tuple[str, ...]
    read: str
    next: tuple[str, ...]
    sql: str
    parameters: tuple[str, ...]

    @property
    def sql_of_all(self) -> str:
        """The query with no parameter given but those that must be, which are named ``NAME_given``: of all clusters,
        topics, brokers and times."""

        def of_all(marker: re.Match[str]) -> str:
            return f"{marker[1]}_given" if marker[1] in self.give else f"CAST(NULL AS {_type(marker[1])})"

        return _MARKER.sub(of_all, self.sql)

    @property
    def given_types(self) -> tuple[tuple[str, str], ...]:
        """The parameters that must be given, each with its type."""
        return tuple((name, _type(name)) for name in self.give)


def _type(parameter: str) -> str:
    return _TYPES.get(parameter, "STRING")


@cache
def questions() -> Mapping[str, Question]:
    """Every saved question by its name, in the order of subjects and names."""
    found = [parse(path.parent.name, path.stem, path.read_text("utf-8")) for path in sorted(_HERE.glob("*/*.sql"))]
    return {question.name: question for question in found}


def parse(subject: str, name: str, text: str) -> Question:
    """The question that the file's text holds; :class:`ValueError` where its header lacks something.

    >>> header = "-- Who?\\n-- numbers: 1\\n-- needs: znodes\\n-- read: a\\n--   b\\n-- next: n\\n"
    >>> parse("s", "n", header + "SELECT :at").read
    'a b'
    """
    lines = text.splitlines()
    comments = [match[1].strip() for match in map(_COMMENT.match, lines) if match]
    sql = "\n".join(lines[len(comments) :])
    header: dict[str, str] = {}
    field = ""
    for comment in comments[1:]:
        match = _FIELD.match(comment)
        if match:
            field = match[1]
            header[field] = match[2]
        else:
            header[field] += f" {comment}"
    missing = [wanted for wanted in ("numbers", "needs", "read", "next") if wanted not in header]
    if missing:
        raise ValueError(f"{subject}/{name}.sql lacks {', '.join(missing)} in its header")
    used = set(_MARKER.findall(sql))
    return Question(
        name,
        subject,
        comments[0],
        tuple(map(int, _words(header["numbers"]))),
        _words(header["needs"]),
        _words(header.get("give", "")),
        header["read"],
        _words(header["next"]),
        sql,
        tuple(parameter for parameter in PARAMETERS if parameter in used),
    )


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())
