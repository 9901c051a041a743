"""A fixture's row is checked by its table's spec where it is written."""

from __future__ import annotations

from typing import Any

import pytest

from ingest.lake.tables import silver as s
from tests.support.lakes.rows import START, at, row_of

LED = {"cluster_id": "c", "topic": "ledger", "partition_id": 0, "leader": 1, "isr": [1, 2], "valid_from": 2.5}


def test_a_row_has_every_column_in_the_order_of_the_spec_with_instants_and_an_incarnation() -> None:
    row = row_of(s.LEADER_AND_ISR_TIMELINE, LED)
    assert tuple(row) == s.LEADER_AND_ISR_TIMELINE.column_names
    assert (row["valid_from"], row["valid_to"], row["topic_incarnation"]) == (at(2.5), None, "ledger-1")
    assert row_of(s.LEADER_AND_ISR_TIMELINE, LED | {"topic_incarnation": "other"})["topic_incarnation"] == "other"
    assert at(0) == START


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"leeder": 1}, "has no column leeder"),
        ({"leader": "one"}, r"leader cannot be 'one'"),
        ({"isr": [1, "2"]}, r"isr cannot be \[1, '2'\]"),
        ({"valid_to": "noon"}, "valid_to cannot be 'noon'"),
    ],
)
def test_a_wrong_name_or_value_is_refused_with_its_column(wrong: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=f"silver.leader_and_isr_timeline.{{1,2}}{reason}"):
        row_of(s.LEADER_AND_ISR_TIMELINE, LED | wrong)
