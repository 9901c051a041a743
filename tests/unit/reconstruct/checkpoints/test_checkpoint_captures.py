"""R37 on every real capture: what was done to the files is found with what it led to, and nothing else is.

Then on the same files, bent at random places: ``pytest -s`` prints the recall of each kind of damage.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconstruct.checkpoints.rules import judge_checkpoints
from reconstruct.findings.verdicts import Finding
from tests.figures import Figure
from tests.support.bends.checkpoint_files import BENDS, places
from tests.support.budget import IS_HARD
from tests.support.captures.packed import Unpacker, capture_names
from tests.support.evidence.checkpoints import checkpoint_files, plain_checkpoints, read_checkpoints

DAMAGED = "checkpoints-1.1.1"
BENT_PER_BROKER = 8 if IS_HARD else 2


def found_in(capture: Path) -> dict[int, list[Finding]]:
    return {seen.broker_id: judge_checkpoints(seen).verdicts.findings for seen in plain_checkpoints(capture)}


@pytest.mark.parametrize("name", [name for name in capture_names() if name != DAMAGED])
def test_captures_whose_files_nobody_touched_give_no_finding(unpacked: Unpacker, name: str) -> None:
    shown = [
        f"{f.severity} {f.divergence_type}: {f.explanation}" for of in found_in(unpacked(name)).values() for f in of
    ]
    assert shown == []


def test_the_missing_the_corrupt_and_the_wiped_are_found_with_what_each_led_to(unpacked: Unpacker) -> None:
    capture = unpacked(DAMAGED)
    done = {}
    for line in (capture / "events.jsonl").read_text().splitlines():
        event = json.loads(line)
        if event["what"] in ("checkpoint_removed", "data_lost", "checkpoint_corrupted"):
            done[event["what"]] = (event["broker"], int(event["ts"] * 1_000_000))
    found = found_in(capture)
    expected = {
        "checkpoint_removed": (
            "checkpoint_missing",
            ["orders-0 (61), orders-1 (62), orders-2 (61)"],
            [
                "each began at high watermark 0, with a log up to 96",
                "orders-0 fell from 61 to 0",
                "until 281 was copied",
                "no log was cut",
            ],
        ),
        "data_lost": (
            "log_directory_wiped",
            ["orders-0 (354), orders-1 (355), orders-2 (355)"],
            ["no meta.properties, log directory created", "orders-1 fell from 355 to 0", "until 561 was copied"],
        ),
        "checkpoint_corrupted": (
            "checkpoint_malformed",
            ["replication-offset-checkpoint"],
            [
                "'orders 0 x701'",
                "Malformed line in checkpoint file",
                "log directory /var/lib/kafka/broker-1/data failed",
                "a broker without another directory stops",
            ],
        ),
    }
    assert done.keys() == expected.keys()
    for what, (divergence_type, had, led_to) in expected.items():
        broker, at = done[what]
        (finding,) = found.pop(broker)
        assert (finding.divergence_type, finding.severity, finding.broker_id) == (divergence_type, "error", broker)
        # a copy is made after its round began; a wiped directory shows when the broker starts, seven seconds later
        assert at - 1_000_000 <= finding.at <= at + 8_000_000
        assert all(text in finding.expected for text in had), finding.expected
        assert all(text in finding.explanation for text in led_to), finding.explanation
        assert finding.evidence
    assert found == {}


def test_bent_files_are_found_and_named(unpacked: Unpacker, record_property: Any) -> None:
    chance = random.Random(37)
    tried: Counter[str] = Counter()
    hit: Counter[str] = Counter()
    missed: list[str] = []
    for name in capture_names():
        for seen in plain_checkpoints(unpacked(name)):
            files = checkpoint_files(unpacked(name) / f"broker-{seen.broker_id}")
            known = {(f.divergence_type, f.at, f.observed) for f in judge_checkpoints(seen).verdicts.findings}
            bendable = places(files)
            for kind, (bend, divergence_type) in BENDS.items() if bendable else ():
                for place in chance.choices(bendable, k=BENT_PER_BROKER):
                    copies, entries = read_checkpoints({**files, place: bend(files[place] or b"", chance)})
                    found = judge_checkpoints(replace(seen, copies=copies, entries=entries)).verdicts.findings
                    new = [f for f in found if (f.divergence_type, f.at, f.observed) not in known]
                    tried[kind] += 1
                    if any(f.divergence_type == divergence_type and f.at == 1000 * place[2] for f in new):
                        hit[kind] += 1
                    else:
                        missed.append(f"{name} broker {seen.broker_id} {kind} at {place}")
    for kind in BENDS:
        print(f"{kind:28} {hit[kind]}/{tried[kind]} = {hit[kind] / tried[kind]:.1%}")
        assert tried[kind] > 25 * BENT_PER_BROKER
        assert hit[kind] >= 0.95 * tried[kind], missed
    record_property(Figure.PLANTED, tried.total())
    record_property(Figure.FOUND, hit.total())
