"""What is kept of a request for the next run is what a request has."""

from __future__ import annotations

from ingest.lake.tables.kept import MATCHED_REQUESTS
from reconstruct.engine.rows import columns_of
from reconstruct.requests.evidence import Request

#: By what each is put in order among those of its broker, and found again by the next run.
ORDER = {"stated_epoch", "begin", "acted_upon", "time_slot"}
#: What is known only beside all others, and is made anew in each run.
OF_ALL = {
    "sequence",
    "sent_before",
    "next_received_at",
    "next_acknowledged_at",
    "next_applied_at",
    "is_next_unsent",
    "is_lost_before",
    "unconnected_lines",
    "unconnected_refs",
    "accepted_epoch_before",
    "accepted_at_before",
    "accepted_ref_before",
}


def test_a_matched_request_has_the_fields_of_a_request_and_their_types() -> None:
    """Whole numbers are as wide as the lines' own, 32 bits, but instants."""
    kept = {column.name: column.type for column in MATCHED_REQUESTS.columns}
    fields = columns_of(Request)
    assert kept.keys() - fields.keys() == ORDER
    assert fields.keys() - kept.keys() == OF_ALL
    instants = {name for name in kept if name.endswith("_at")}
    narrow = {name: "int" if type_ == "bigint" and name not in instants else type_ for name, type_ in fields.items()}
    assert {name: kept[name] for name in kept.keys() - ORDER} == {name: narrow[name] for name in narrow.keys() - OF_ALL}
