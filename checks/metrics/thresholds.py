"""Thresholds of the metrics: the defaults, and what a TOML file says instead."""

from __future__ import annotations

import difflib
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from checks.metrics.catalog import HIGHER, Metric
from checks.metrics.passes import METRICS

#: How much worse than the median of earlier runs a value may be, as a share of that median.
DEFAULT_MAX_FALL_RATIO: Final = 0.10

_WARNING, _CRITICAL, _FALL = "warning", "critical", "max_fall_ratio"


class ThresholdError(Exception):
    """The thresholds cannot be used; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a value of one metric must keep to; None sets no limit. A value that equals a limit keeps to it."""

    warning: float | None
    critical: float | None
    max_fall_ratio: float | None


@dataclass(frozen=True)
class Thresholds:
    """The limits of every metric, by its name; those that ``given`` does not name are the defaults."""

    given: Mapping[str, Limits] = field(default_factory=dict)
    max_fall_ratio: float | None = DEFAULT_MAX_FALL_RATIO

    def of(self, metric: Metric) -> Limits:
        """The limits of ``metric``."""
        default = Limits(metric.warning, metric.critical, self.max_fall_ratio)
        return self.given.get(metric.name, default)


def read_thresholds(path: str) -> Thresholds:
    """The thresholds of a TOML file on this machine; raises :class:`ThresholdError`."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ThresholdError(f"{path} is not UTF-8, as TOML has to be") from None
    except OSError as error:
        raise ThresholdError(f"cannot read {path}: {error.strerror or error}") from error
    try:
        return parse_thresholds(text, METRICS)
    except ThresholdError as error:
        raise ThresholdError(f"{path}: {error}") from error


def parse_thresholds(text: str, metrics: Mapping[str, Metric]) -> Thresholds:
    """The thresholds that a TOML text sets for ``metrics``, all there are by name; raises :class:`ThresholdError`.

    ``[metrics.NAME]`` takes ``warning``, ``critical`` and ``max_fall_ratio``, ``[trend]`` the ``max_fall_ratio`` of all
    others; ``false`` sets none.
    """
    try:
        read = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ThresholdError(f"no valid TOML: {error}") from None
    _require_known(read, ("metrics", "trend"), "the file")
    trend = _table(read.get("trend", {}), "[trend]")
    _require_known(trend, (_FALL,), "[trend]")
    fall = _limit(trend.get(_FALL, DEFAULT_MAX_FALL_RATIO), f"[trend] {_FALL}", is_share=True)
    given = {}
    for name, table in _table(read.get("metrics", {}), "[metrics]").items():
        if name not in metrics:
            raise ThresholdError(f"there is no metric {name!r}: {_instead(name, metrics)}")
        given[name] = _limits(metrics[name], _table(table, f"[metrics.{name}]"), fall)
    return Thresholds(given, fall)


def _limits(metric: Metric, table: Mapping[str, Any], fall: float | None) -> Limits:
    where = f"[metrics.{metric.name}]"
    _require_known(table, (_WARNING, _CRITICAL, _FALL), where)
    read = {
        key: _limit(value, f"{where} {key}", is_share=key == _FALL or metric.is_ratio) for key, value in table.items()
    }
    limits = replace(Limits(metric.warning, metric.critical, fall), **read)
    _require_order(metric, limits, table)
    return limits


def _require_order(metric: Metric, limits: Limits, table: Mapping[str, Any]) -> None:
    """A value that is critical must be one that warns: the gate is the last resort."""
    warning, critical = limits.warning, limits.critical
    if warning is None or critical is None or warning == critical or metric.is_worse(critical, warning):
        return
    default = {key: "" if key in table else " (the default)" for key in (_WARNING, _CRITICAL)}
    side = "above" if metric.better == HIGHER else "below"
    raise ThresholdError(
        f"[metrics.{metric.name}] critical = {critical:g}{default[_CRITICAL]} is {side} warning = {warning:g}"
        f"{default[_WARNING]}, but of this metric {metric.better} is better: set critical to {warning:g} or"
        f" {'less' if metric.better == HIGHER else 'more'}, or to false"
    )


def _limit(value: Any, where: str, *, is_share: bool) -> float | None:
    """A number that is a limit, or None for ``false``."""
    if value is False:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ThresholdError(f"{where} is {_formatted(value)}: give a number, or false for none")
    if value < 0 or (is_share and value > 1):
        raise ThresholdError(f"{where} is {value:g}: give {'a share from 0 to 1' if is_share else '0 or more'}")
    return float(value)


def _table(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ThresholdError(f"{where} is {_formatted(value)}: give a table")
    return value


def _require_known(table: Mapping[str, Any], keys: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in keys:
            raise ThresholdError(f"{where} has {key!r}: it takes {', '.join(keys)}")


def _instead(name: str, metrics: Mapping[str, Metric]) -> str:
    near = difflib.get_close_matches(name, metrics, n=1, cutoff=0.5)
    return f"do you mean {near[0]}?" if near else f"there are {', '.join(sorted(metrics))}"


def _formatted(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "a table" if isinstance(value, dict) else repr(value)
