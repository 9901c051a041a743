"""The question's asker, and the register of the answers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from pyspark.sql import Row

from dashboards.questions.question import questions
from jobs.ask.answer import rows_of
from reconstruct.time.instants import to_datetime
from tests.support.lakes.kraft import WHOLE, Recorded
from tests.support.lakes.shared import SharedLake

#: When the recording ends.
END: Final = datetime(2026, 11, 25, 10, 12, 47, tzinfo=UTC)


class Asked:
    """The lake's answers, and the recording."""

    def __init__(self, lake: SharedLake) -> None:
        self._spark = lake.lake.spark
        self.recorded = Recorded(lake.folders[WHOLE])

    def __call__(self, name: str, **given: Any) -> list[Any]:
        question = questions()[name]
        bound = dict.fromkeys(question.parameters) | given | {"cluster": WHOLE}
        return [Row(**_aware(row.asDict())) for row in rows_of(self._spark, question, bound).collect()]

    def at(self, offset: int) -> datetime:
        """When the record of that offset was appended."""
        return to_datetime(next(row.at for row in self.recorded.records if row.offset == offset))

    def done(self, what: str, **details: Any) -> datetime:
        """When the scenario did so."""
        return datetime.fromtimestamp(self.recorded.event(what, **details)["ts"], UTC)


def _aware(row: dict[str, Any]) -> dict[str, Any]:
    """Spark gives times as this process's local ones, without their zone."""
    return {name: value.astimezone(UTC) if isinstance(value, datetime) else value for name, value in row.items()}


ANSWERS: dict[str, Callable[[Asked], None]] = {}


def of(name: str) -> Callable[[Callable[[Asked], None]], Callable[[Asked], None]]:
    """Registers the function as the test of a question's answer."""

    def register(test: Callable[[Asked], None]) -> Callable[[Asked], None]:
        assert name not in ANSWERS
        ANSWERS[name] = test
        return test

    return register
