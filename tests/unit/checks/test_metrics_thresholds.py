"""Thresholds from a TOML file: what they set, and the sentence that a wrong one gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from checks.metrics.catalog import HIGHER, LOWER, Metric
from checks.metrics.passes import METRICS
from checks.metrics.thresholds import Limits, ThresholdError, Thresholds, parse_thresholds, read_thresholds

KEPT = Metric("kept_ratio", "share kept", HIGHER, "avg(kept)", warning=0.9, critical=0.5)
WIDTH = Metric("width_ms", "width", LOWER, "max(width)", warning=100.0)
KNOWN = {metric.name: metric for metric in (KEPT, WIDTH)}


def parsed(text: str) -> Thresholds:
    return parse_thresholds(text, KNOWN)


def test_an_empty_file_sets_the_defaults() -> None:
    assert parsed("") == Thresholds()
    assert parsed("").of(KEPT) == Limits(0.9, 0.5, 0.10)
    assert parsed("").of(WIDTH) == Limits(100.0, None, 0.10)


def test_what_a_file_does_not_name_keeps_its_default() -> None:
    given = parsed("[metrics.kept_ratio]\nwarning = 1\n[metrics.width_ms]\ncritical = 500\nmax_fall_ratio = 0.5")
    assert given.of(KEPT) == Limits(1.0, 0.5, 0.10)
    assert given.of(WIDTH) == Limits(100.0, 500.0, 0.5)


def test_false_sets_none() -> None:
    given = parsed("[metrics.kept_ratio]\nwarning = false\ncritical = false\n[trend]\nmax_fall_ratio = false")
    assert given.of(KEPT) == Limits(None, None, None)
    assert given.of(WIDTH) == Limits(100.0, None, None)


def test_the_trend_of_all_is_that_of_each_unless_it_says_otherwise() -> None:
    given = parsed("[trend]\nmax_fall_ratio = 0.25\n[metrics.kept_ratio]\nmax_fall_ratio = false")
    assert (given.of(KEPT).max_fall_ratio, given.of(WIDTH).max_fall_ratio) == (None, 0.25)


def test_a_threshold_may_equal_the_other() -> None:
    assert parsed("[metrics.width_ms]\ncritical = 100").of(WIDTH) == Limits(100.0, 100.0, 0.10)
    assert parsed("[metrics.kept_ratio]\nwarning = 0.5").of(KEPT) == Limits(0.5, 0.5, 0.10)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[metrics.kept_ratoi]\nwarning = 1", "there is no metric 'kept_ratoi': do you mean kept_ratio?"),
        ("[metrics.zzz]\nwarning = 1", "there is no metric 'zzz': there are kept_ratio, width_ms"),
        ("[metrics.kept_ratio]\nwarnings = 1", "[metrics.kept_ratio] has 'warnings': it takes warning, critical"),
        ("[metric.kept_ratio]\nwarning = 1", "the file has 'metric': it takes metrics, trend"),
        ("[trend]\nruns = 4", "[trend] has 'runs': it takes max_fall_ratio"),
        ("metrics = 1", "[metrics] is 1: give a table"),
        ("trend = 'x'", "[trend] is 'x': give a table"),
        ("[metrics]\nkept_ratio = 0.5", "[metrics.kept_ratio] is 0.5: give a table"),
        ("[metrics.kept_ratio]\nwarning = '0.9'", "warning is '0.9': give a number, or false for none"),
        ("[metrics.kept_ratio]\nwarning = true", "warning is true: give a number, or false for none"),
        ("[metrics.kept_ratio]\nwarning = nan", "warning is nan: give a number"),
        ("[metrics.width_ms]\nwarning = inf", "warning is inf: give a number"),
        ("[metrics.kept_ratio]\nwarning = [1]", "warning is [1]: give a number"),
        ("[metrics.kept_ratio]\nwarning = 99", "warning is 99: give a share from 0 to 1"),
        ("[metrics.width_ms]\nwarning = -1", "warning is -1: give 0 or more"),
        ("[trend]\nmax_fall_ratio = 10", "[trend] max_fall_ratio is 10: give a share from 0 to 1"),
        ("[metrics.kept_ratio]\nmax_fall_ratio = true", "max_fall_ratio is true: give a number"),
        (
            "[metrics.kept_ratio]\nwarning = 0.6\ncritical = 0.8",
            "critical = 0.8 is above warning = 0.6, but of this metric higher is better: set critical to 0.6 or less",
        ),
        ("[metrics.kept_ratio]\nwarning = 0.4", "critical = 0.5 (the default) is above warning = 0.4"),
        ("[metrics.kept_ratio]\ncritical = 0.95", "critical = 0.95 is above warning = 0.9 (the default)"),
        (
            "[metrics.width_ms]\nwarning = 50\ncritical = 20",
            "critical = 20 is below warning = 50, but of this metric lower is better: set critical to 50 or more",
        ),
        ("[metrics", "no valid TOML"),
        ("[trend]\nmax_fall_ratio = 0.1\nmax_fall_ratio = 0.2", "no valid TOML"),
    ],
)
def test_a_wrong_file_gets_a_sentence(text: str, words: str) -> None:
    with pytest.raises(ThresholdError) as raised:
        parsed(text)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_is_read_by_the_names_of_the_catalogue(tmp_path: Path) -> None:
    file = tmp_path / "thresholds.toml"
    file.write_text("[metrics.rejected_records_ratio]\nwarning = 0.5\n", encoding="utf-8")
    assert read_thresholds(str(file)).of(METRICS["rejected_records_ratio"]).warning == 0.5
    file.write_text("[metrics.nothing]\n", encoding="utf-8")
    with pytest.raises(ThresholdError, match=r"thresholds\.toml: there is no metric 'nothing'"):
        read_thresholds(str(file))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ThresholdError, match=r"cannot read .*none\.toml: No such file"):
        read_thresholds(str(tmp_path / "none.toml"))
    with pytest.raises(ThresholdError, match="cannot read"):
        read_thresholds(str(tmp_path))
    (tmp_path / "latin.toml").write_bytes(b"# \xe9")
    with pytest.raises(ThresholdError, match="is not UTF-8"):
        read_thresholds(str(tmp_path / "latin.toml"))
