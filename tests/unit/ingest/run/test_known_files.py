"""What is noted of a file comes back as it was found."""

import json
import math

import pytest

from ingest.containers import storage
from ingest.files.inspected import SHARED, Inspected
from ingest.files.inspection import inspect
from ingest.run.known_files import _read, _written
from tests.support.captures.packed import capture_names, unpack


@pytest.mark.parametrize("name", capture_names())
def test_what_was_found_in_each_file_of_a_capture_comes_back_from_text(name, tmp_path):
    files = storage.list_files(str(unpack(name, tmp_path)))
    found = [one for file in files for one in inspect(file, split_bytes=4096)]
    assert len(found) >= len(files) > 0
    assert [_read(json.loads(json.dumps(_written(one)))) for one in found] == found


@pytest.mark.parametrize(
    "said",
    [
        {"streams": SHARED, "is_interleaved": True},
        {"streams": {"kafka-0": 0, "kafka-1": None}, "splits": ((5, 1), (90, 7))},
        {"statements": (("2026-11-21 04:40:22.700", "abc"),), "marks": frozenset({"b", "a"})},
        {"member": "a.log", "compression": "zip", "damage": "cut off", "raw": "\udc80", "snapshot_zxid": 0},
    ],
)
def test_what_is_rarely_found_comes_back_from_text(said):
    found = Inspected(
        "/logs/a.log", "a.log", said.pop("member", None), said.pop("compression", "none"), "x", "y", **said
    )
    assert _read(json.loads(json.dumps(_written(found)))) == found


@pytest.mark.parametrize(
    ("state", "size_bytes", "changed_at"),
    [
        ("7@1500000000@2500000000", 7, 2.5),
        ("7@1500000000", 7, 1.5),
        ("7@None", 7, math.inf),  # a file system that does not tell: never taken for settled
        ("", 0, math.inf),
    ],
)
def test_when_a_file_changed_is_known_only_where_its_file_system_tells(state, size_bytes, changed_at):
    file = storage.ListedFile("/logs/a.log", "a.log", state=state)
    assert (file.size_bytes, file.changed_at) == (size_bytes, changed_at)
