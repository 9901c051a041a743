"""Great Expectations over the measurements: suites from the checks, a checkpoint per stage, Data Docs.

What holds is known without it (:attr:`checks.measure.Measurement.holds`); it judges the same for those who read its
pages.

Great Expectations keeps global state and is not safe with threads: one gate at a time in a process.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final

import great_expectations as gx
import pandas as pd
from great_expectations.core.run_identifier import RunIdentifier
from great_expectations.data_context.types.base import (
    DataContextConfig,
    InMemoryStoreBackendDefaults,
    ProgressBarsConfig,
)
from great_expectations.data_context.types.resource_identifiers import ExpectationSuiteIdentifier
from great_expectations.expectations.metadata_types import FailureSeverity

from checks.catalog import Check
from checks.expectations import ExpectNoCaseToBreakCheck
from checks.measure import Measurement

_SITE: Final = "data_docs"
#: The folder of the validation results, below the Data Docs.
_RESULTS: Final = "results"
#: So many results the first page lists, the latest: some ten runs.
_LISTED_COUNT: Final = 320
#: The schema of the tables judged, and the point of the pipeline at which a checkpoint stands.
CHECKPOINTS: Final = (
    ("bronze", "after_ingest"),
    ("silver", "after_reconstruct"),
    ("gold", "before_publish"),
    ("quality", "after_measuring"),
)


class GateError(Exception):
    """Great Expectations could not judge: a fault of this program, not of the data."""


def judge(measurements: Sequence[Measurement], docs_dir: str | None = None) -> dict[str, bool]:
    """Whether each check holds, by its id; Data Docs are written to ``docs_dir`` if it is given.

    The results behind its pages are kept there too, so that the first page lists the runs before this one. A check that
    cannot be judged does not hold. Raises :class:`GateError` where an expectation raised.
    """
    logging.getLogger("great_expectations").setLevel(logging.ERROR)
    context: Any = gx.get_context(mode="ephemeral", project_config=_config(docs_dir))
    source = context.data_sources.add_pandas("measurements")
    verdicts: dict[str, bool] = {}
    pages: list[Any] = []
    for schema, title in CHECKPOINTS:
        of_schema = [m for m in measurements if m.check.table.startswith(f"{schema}.")]
        if of_schema:
            outcome = _run(context, source, title, of_schema)
            verdicts |= _verdicts(outcome)
            pages += [*outcome.run_results, *(ExpectationSuiteIdentifier(m.check.table) for m in of_schema)]
    if docs_dir is not None:
        # Once: the action that Great Expectations has for it makes the first page anew after each suite.
        context.build_data_docs(site_names=[_SITE], resource_identifiers=list(dict.fromkeys(pages)))
    return verdicts


def _config(docs_dir: str | None) -> DataContextConfig:
    """Nothing is kept but, where there are Data Docs, the validation results beside their pages."""
    defaults: Any = InMemoryStoreBackendDefaults()
    defaults.data_docs_sites = {}
    if docs_dir is not None:
        defaults.data_docs_sites = {_SITE: _site(docs_dir)}
        defaults.stores[defaults.validation_results_store_name]["store_backend"] = _folder(f"{docs_dir}/{_RESULTS}")
    return DataContextConfig(
        store_backend_defaults=defaults, progress_bars=ProgressBarsConfig(globally=False), analytics_enabled=False
    )


def suite_of(table: str, checks: Sequence[Check]) -> gx.ExpectationSuite:
    """The table's suite: an expectation per check."""
    expectations = [
        ExpectNoCaseToBreakCheck(
            check_id=check.check_id, explanation=check.explanation, severity=FailureSeverity(check.severity)
        )
        for check in checks
    ]
    return gx.ExpectationSuite(name=table, expectations=expectations)


def _run(context: Any, source: Any, title: str, measurements: Sequence[Measurement]) -> Any:
    """One checkpoint: a suite per table, all over the one batch of measurements."""
    definitions = []
    for table in dict.fromkeys(m.check.table for m in measurements):
        batch = source.add_dataframe_asset(table).add_batch_definition_whole_dataframe(title)
        suite = context.suites.add(suite_of(table, [m.check for m in measurements if m.check.table == table]))
        definition = gx.ValidationDefinition(name=table, data=batch, suite=suite)
        definitions.append(context.validation_definitions.add(definition))
    checkpoint = context.checkpoints.add(gx.Checkpoint(name=title, validation_definitions=definitions))
    return checkpoint.run({"dataframe": _batch(measurements)}, run_id=RunIdentifier(run_name=title))


def _verdicts(outcome: Any) -> dict[str, bool]:
    return {
        result.expectation_config.kwargs["check_id"]: _success(result)
        for of_table in outcome.run_results.values()
        for result in of_table.results
    }


def _batch(measurements: Sequence[Measurement]) -> pd.DataFrame:
    """One row per check, counts as Python integers or None: pandas would make floats of them."""
    rows = [(m.check.check_id, m.checked_count, m.broken_count, list(m.examples)) for m in measurements]
    return pd.DataFrame(rows, columns=["check_id", "checked_count", "broken_count", "examples"], dtype=object)


def _success(result: Any) -> bool:
    info = result.exception_info or {}
    raised = [info] if "raised_exception" in info else list(info.values())
    messages = [each["exception_message"] for each in raised if each.get("raised_exception")]
    if messages:
        check_id = result.expectation_config.kwargs["check_id"]
        raise GateError(f"the check {check_id} could not be run: {messages[0]}")
    return bool(result.success)


def _site(docs_dir: str) -> dict[str, Any]:
    return {
        "class_name": "SiteBuilder",
        "site_index_builder": {"class_name": "DefaultSiteIndexBuilder", "validation_results_limit": _LISTED_COUNT},
        "store_backend": _folder(docs_dir),
        "show_how_to_buttons": False,
    }


def _folder(path: str) -> dict[str, Any]:
    return {"class_name": "TupleFilesystemStoreBackend", "base_directory": path}
