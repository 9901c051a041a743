"""What an explanation knows of the whole cluster is that of the lake as it is."""

from __future__ import annotations

from typing import Any

import pytest

from ingest.lake.delta import Lake
from reconstruct.cluster.spark.step import HISTORY_TABLES
from reconstruct.explain.spark import step
from tests.support.lakes.rows import frame_of, row_of


def test_a_history_is_made_anew_when_any_table_that_it_is_made_of_is_another(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Lake] = []

    def history(cluster_id: str) -> Any:
        return step._histories(step._Cluster.of(lake, cluster_id))

    def noted(of: Lake) -> list[Lake]:
        made.append(of)
        return [of]

    monkeypatch.setattr(step, "cluster_histories", noted)
    assert history("c") is history("c")
    assert history("c") is not history("d")
    for spec in HISTORY_TABLES:
        before = history("c")
        lake.append(frame_of(lake, spec, [row_of(spec, {"cluster_id": "c"})]), spec)
        assert history("c") is not before, spec.full_name
        assert [row.cluster_id for row in made[-1].read(spec).collect()] == ["c"], "and of the rows as they are"
    assert len(made) == 2 + len(HISTORY_TABLES)
