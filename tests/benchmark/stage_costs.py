"""``python -m tests.benchmark.stage_costs COMMAND ...``: the program's command, and what each of its stages costs.

Its last line is a JSON object: seconds of the processors' time by stage, of this process and all below it. What a
stage does in the background counts for the one that runs by then.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from jobs import cli
from jobs.command import execution
from jobs.session.progress import Progress
from tests.benchmark.process_tree import cpu_seconds


class CountingProgress(Progress):
    """Notes what was spent when each stage begins and when the last ends."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.costs: dict[str, float] = {}
        self._name, self._spent = "", 0.0
        made.append(self)

    def __call__(self, stage: str) -> None:
        super().__call__(stage)
        spent = cpu_seconds()
        if self._name:
            self.costs[self._name] = round(self.costs.get(self._name, 0.0) + spent - self._spent, 2)
        self._name, self._spent = stage, spent


made: list[CountingProgress] = []

if __name__ == "__main__":
    execution.Progress = CountingProgress  # type: ignore[attr-defined]
    exit_code = cli.main(sys.argv[1:])
    print(json.dumps(made[0].costs))
    sys.exit(exit_code)
