"""What a run of the checks leaves behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from checks.catalog import WARNING
from checks.measure import Measurement
from ingest.lake.delta import Lake
from ingest.lake.tables.quality import CHECK_RESULTS
from reconstruct.findings.verdicts import BROKEN
from reconstruct.model.versions import MODEL_VERSION


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The columns of ``quality.check_results`` that the results of one run do not share.

    ``examples`` is a JSON array of objects, None where there are none; the counts are None where nothing was counted.
    """

    check_id: str
    table_name: str
    severity: str
    verdict: str
    checked_count: int | None
    broken_count: int | None
    examples: str | None
    explanation: str


@dataclass(frozen=True, slots=True)
class CheckReport:
    """All results of a run; ``failed_gates`` has a sentence for each critical check that does not hold.

    ``measurements`` are what the results were judged by, those of Kafka's rules excepted.
    """

    run_id: str
    run_at: datetime
    rules_fingerprint: str
    results: tuple[CheckResult, ...]
    failed_gates: tuple[str, ...]
    measurements: tuple[Measurement, ...]

    @property
    def warnings(self) -> tuple[CheckResult, ...]:
        """The checks of severity warning that are broken."""
        return tuple(one for one in self.results if one.verdict == BROKEN and one.severity == WARNING)


def examples_array(examples: Sequence[str]) -> str | None:
    """Examples, each a JSON object, as one JSON array; None where there are none."""
    return f"[{','.join(examples)}]" if examples else None


def write_results(lake: Lake, report: CheckReport) -> None:
    """Add the results of a run to ``quality.check_results``."""
    of_run = {
        "run_id": report.run_id,
        "run_at": report.run_at,
        "rules_fingerprint": report.rules_fingerprint,
        "model_version": MODEL_VERSION,
    }
    lake.append_known([asdict(result) | of_run for result in report.results], CHECK_RESULTS)
