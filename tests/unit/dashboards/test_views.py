"""The views over tables, without Spark."""

import pytest

from dashboards.views import RECORD_TEXTS, VIEWS
from ingest.lake.tables import TABLES


def test_whatever_is_a_record_can_be_looked_up():
    records = {name for name, spec in TABLES.items() if spec.schema == "bronze" and "record_id" in spec.key}
    assert {spec.full_name for spec, _ in RECORD_TEXTS} == records
    assert len(records) > 10


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_a_view_reads_tables_and_has_no_table_s_name(view):
    assert view.tables
    assert view.full_name not in TABLES
