"""Which logs several brokers' processes write."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Row

from reconstruct.cluster.spark.log_spans import as_log_spans
from reconstruct.cluster.view import ClusterView


def row(broker_id: int, source_file: str, unnamed_lines: int = 0) -> Row:
    given: dict[str, Any] = {"cluster_id": "c", "broker_id": broker_id, "file_id": source_file, "start": 0, "end": 9}
    given |= {
        "source_kind": "state_change_log",
        "source_file": source_file,
        "unnamed_lines": unnamed_lines,
        "level_floor": "TRACE",
    }
    return Row(**given, lines=5, jumps_back=0, far_jumps_back=0, most_back_us=None)


def shared(*rows: Row) -> list[bool]:
    spans = list(as_log_spans(rows))
    for one, span in spans:
        view = ClusterView("c", logs={one["broker_id"]: (span,)})
        assert view.logs_all(one["broker_id"], 2, 5) is not span.is_shared
        assert view.is_in_one_file(one["broker_id"], 2, 5)
    return [span.is_shared for _, span in spans]


def test_a_log_of_several_processes_proves_no_silence() -> None:
    assert shared(row(0, "logs/state-change.log", 5), row(2, "logs/state-change.log", 5)) == [True, True]
    # and what was rolled of it, though of one of them
    hours = ("logs/state-change.log.2020-01-01-10", "logs/state-change.log.2020-01-01-11")
    assert shared(row(0, hours[0]), row(2, hours[1])) == [True, True]


def test_a_broker_of_its_own_folder_or_of_its_own_log_or_with_its_name_on_each_line_shares_none() -> None:
    assert shared(row(0, "broker-0/state-change.log"), row(2, "broker-2/state-change.log")) == [False, False]
    assert shared(row(0, "logs/state-change-0.log"), row(2, "logs/state-change-2.log")) == [False, False]
    assert shared(row(0, "logs/state-change.log", 5), row(0, "logs/state-change.log.1", 5)) == [False, False]
    stream = [row(0, "compose.log"), row(2, "compose.log")]
    assert shared(*stream) == [False, False]
