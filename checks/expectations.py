"""Our own expectations, as Great Expectations runs and renders them.

They validate a small batch: the measurements of one stage, one row per check with the columns ``check_id``,
``checked_count``, ``broken_count`` and ``examples`` (a list of JSON objects). Spark has counted before; Great
Expectations explains and shows.
"""

from __future__ import annotations

import html
import json
from typing import Any, ClassVar, Final

from great_expectations.core.metric_domain_types import MetricDomainTypes
from great_expectations.execution_engine.pandas_execution_engine import PandasExecutionEngine
from great_expectations.expectations.expectation import BatchExpectation, render_suite_parameter_string
from great_expectations.expectations.metrics.metric_provider import metric_value
from great_expectations.expectations.metrics.table_metric_provider import TableMetricProvider
from great_expectations.render.components import (
    CollapseContent,
    LegacyDiagnosticRendererType,
    LegacyRendererType,
    RenderedStringTemplateContent,
    RenderedTableContent,
)
from great_expectations.render.renderer.renderer import renderer

from checks.catalog import CRITICAL

MEASUREMENT: Final = "table.check_measurement"


class CheckMeasurement(TableMetricProvider):
    """The row of the batch that belongs to one check."""

    metric_name = MEASUREMENT
    value_keys = ("check_id",)

    @metric_value(engine=PandasExecutionEngine)
    def _pandas(
        cls,
        execution_engine: PandasExecutionEngine,
        metric_domain_kwargs: dict[str, Any],
        metric_value_kwargs: dict[str, Any],
        metrics: dict[str, Any],
        runtime_configuration: dict[str, Any],
    ) -> dict[str, Any]:
        batch, _, _ = execution_engine.get_compute_domain(
            domain_kwargs=metric_domain_kwargs, domain_type=MetricDomainTypes.TABLE
        )
        rows = batch[batch["check_id"] == metric_value_kwargs["check_id"]].to_dict("records")
        if len(rows) != 1:
            raise ValueError(f"check {metric_value_kwargs['check_id']} was measured {len(rows)} times, not once")
        return dict(rows[0])


class ExpectNoCaseToBreakCheck(BatchExpectation):
    """Expect that a check was judged and that no case breaks it."""

    check_id: str
    explanation: str

    metric_dependencies: ClassVar[tuple[str, ...]] = (MEASUREMENT,)
    success_keys: ClassVar[tuple[str, ...]] = ("check_id",)

    def _validate(
        self,
        metrics: dict[str, Any],
        runtime_configuration: dict[str, Any] | None = None,
        execution_engine: Any = None,
    ) -> dict[str, Any]:
        row = metrics[MEASUREMENT]
        if row["broken_count"] is None:
            observed = "cannot be judged: a table it reads has not the declared columns"
        else:
            observed = f"{row['broken_count']} of {row['checked_count']} cases break it"
        result = {"observed_value": observed, "details": {"examples": list(row["examples"])}}
        return {"success": row["broken_count"] == 0, "result": result}

    @classmethod
    @renderer(renderer_type=LegacyRendererType.PRESCRIPTIVE)
    @render_suite_parameter_string
    def _prescriptive_renderer(
        cls, configuration: Any = None, result: Any = None, runtime_configuration: Any = None, **_: Any
    ) -> list[RenderedStringTemplateContent]:
        configuration = configuration or (result.expectation_config if result is not None else None)
        if configuration is None:
            return []
        severity = str(getattr(configuration.severity, "value", configuration.severity))
        params = {
            "check_id": configuration.kwargs["check_id"],
            "explanation": configuration.kwargs["explanation"],
            "severity": severity,
        }
        badge = {"classes": ["badge", "badge-dark" if severity == CRITICAL else "badge-secondary"]}
        template = {
            "template": "$check_id $severity\n$explanation",
            "params": params,
            "styling": {"params": {"check_id": {"classes": ["font-weight-bold"]}, "severity": badge}},
        }
        return [RenderedStringTemplateContent(content_block_type="string_template", string_template=template)]

    @classmethod
    @renderer(renderer_type=LegacyDiagnosticRendererType.UNEXPECTED_TABLE)
    def _diagnostic_unexpected_table_renderer(
        cls, configuration: Any = None, result: Any = None, runtime_configuration: Any = None
    ) -> list[RenderedTableContent | CollapseContent] | None:
        details = (result.result or {}).get("details") if result is not None else None
        if not details or not details["examples"]:
            return None
        header, rows = example_table(details["examples"])
        styling = {"body": {"classes": ["table-bordered", "table-sm", "mt-3"]}}
        return [RenderedTableContent(content_block_type="table", header_row=header, table=rows, styling=styling)]


def example_table(examples: list[str]) -> tuple[list[str], list[list[str]]]:
    """Examples as HTML texts: columns in the order in which they first appear, a cut example in one of its own.

    Great Expectations puts the cells of a table into the page as they are; a log can say anything, so they are escaped.
    """
    parsed = [_parsed(example) for example in examples]
    header = list(dict.fromkeys(name for row in parsed for name in row))
    return [html.escape(name) for name in header], [[_formatted(row.get(name)) for name in header] for row in parsed]


def _parsed(example: str) -> dict[str, Any]:
    try:
        found = json.loads(example)
    except json.JSONDecodeError:
        return {"example": example}
    return found if isinstance(found, dict) else {"example": example}


def _formatted(value: Any) -> str:
    if value is None:
        return "NULL"
    return html.escape(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
