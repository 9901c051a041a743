"""Damaged logs: nothing raises, nothing is lost, whatever the layout and the wrapper."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.readers.logs import records
from ingest.readers.logs.layouts import detect, explain
from ingest.readers.work import Rejected, WorkItem
from tests.unit.ingest.readers.logs.rendering import LAYOUT_RENDERERS, WRAPPER_RENDERERS, Record

RECORDS = [Record("[Broker id=1] x", stack=("java.lang.E: y", "\tat a.b(C.java:1)")), Record("z", level="WARN")]
_DAMAGE = st.tuples(st.integers(0, 400), st.integers(0, 20), st.binary(max_size=30) | st.just(bytes(40)))


@settings(max_examples=400)
@given(
    st.sampled_from(sorted(LAYOUT_RENDERERS)),
    st.lists(st.sampled_from(sorted(WRAPPER_RENDERERS)), max_size=2, unique=True),
    st.lists(_DAMAGE, max_size=4),
)
def test_every_byte_is_kept_or_rejected(layout: str, wrappers: list[str], damage: list[tuple[int, int, bytes]]) -> None:
    lines = [line for record in RECORDS for line in LAYOUT_RENDERERS[layout](record)]
    for wrapper in reversed(wrappers):
        lines = [WRAPPER_RENDERERS[wrapper](line, "k") for line in lines]
    data = "".join(line + "\n" for line in lines).encode()
    for position, length, put in damage:
        data = data[:position] + put + data[position + length :]
    name = "+".join([*wrappers, layout])
    item = WorkItem("/l", None, "l", "server_log", "c", 1, "f", "f", len(data), layout=name, time_zone="Europe/Berlin")
    found = list(records.read(item, [data], lambda *_: None))
    rejected = [one for one in found if isinstance(one, Rejected)]
    kept = [row for batch in found if not isinstance(batch, Rejected) for row in batch.to_pylist()]
    assert sum(row["byte_length"] for row in kept) + sum(one.place.length for one in rejected) == len(data)
    detect(data.split(b"\n"))
    explain(data)
