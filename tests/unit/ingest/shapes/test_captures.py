"""Real logs of three eras: everything of state-change.log is typed, and no shape is of another release than the log."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from ingest.shapes import SHAPES, match, match_cause, versions_of
from tests.support.captures.packed import Unpacker, capture_names, kafka_version

HEADER = re.compile(r"\[[^\]]+\] [A-Z]+ +(?P<message>.*) \((?P<logger>[\w.$]+)\)", re.ASCII)
EXCEPTION = re.compile(r"kafka\.common\.\w+Exception: |java\.lang\.(?:IllegalState|Assertion)\w+: ", re.ASCII)
KINDS = {"state-change.log": "state_change_log", "controller.log": "controller_log", "server.log": "server_log"}
BY_ID = {shape.id: shape for shape in SHAPES}


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("-")[0].split("."))


@pytest.mark.parametrize("name", capture_names())
def test_real_logs(name: str, unpacked: Unpacker) -> None:
    version = _order(kafka_version(name))
    unknown: Counter[str] = Counter()
    of_another_release: set[str] = set()
    bounds: list[tuple[str, str]] = []
    for path in sorted(Path(unpacked(name)).glob("broker-*/logs/*.log")):
        source_kind = KINDS.get(path.name)
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if source_kind else ():
            header = HEADER.fullmatch(line)
            if header is None:
                if source_kind == "state_change_log" and EXCEPTION.match(line) and match_cause(line) is None:
                    unknown[line] += 1
                continue
            found = match(str(source_kind), header["logger"], header["message"])
            if found is None:
                if source_kind == "state_change_log":
                    unknown[line] += 1
                continue
            shape = BY_ID[found.shape_id]
            if not any(_order(first) <= version <= _order(last) for first, last in shape.versions):
                of_another_release.add(shape.id)
            if source_kind == "state_change_log":
                assert shape.event_type != "other"
                bounds.append(versions_of(shape.id))
    assert unknown == Counter()
    assert of_another_release == set()
    if bounds:
        assert max(_order(first) for first, _ in bounds) <= version <= min(_order(last) for _, last in bounds)
