"""A reassignment that nobody begins (R16, KAFKA-9478): histories by hand, and captures bent."""

from __future__ import annotations

import json

import pytest

from reconstruct.cluster.spans import LogSpan, Registration, Tenure
from reconstruct.cluster.view import ClusterView
from reconstruct.findings.verdicts import Verdicts
from reconstruct.model.versions import VersionRange, v
from reconstruct.partitions.evidence import (
    ZNODE_ASSIGNMENT,
    ZNODE_DELETION_REQUESTED,
    ZNODE_REASSIGNMENT,
    ZNODE_REASSIGNMENT_DONE,
    Evidence,
)
from reconstruct.partitions.timeline import fold_partition
from reconstruct.time.intervals import Interval
from tests.support.bends.reassignments import REQUEST, Request, last_round, not_begun, requests, with_rows
from tests.support.captures.packed import Unpacker
from tests.support.captures.text import CaptureText
from tests.support.evidence.partitions import plain_capture

SECOND = 1_000_000
KAFKA_2_5 = VersionRange.exactly(v(2, 5))
ASSIGNED = Evidence("assigned", ZNODE_ASSIGNMENT, 0, replicas=(1, 2))
LATER = Evidence("later", "isr_update_failed", 900 * SECOND, broker_id=1, source_kind="server_log")


def asked(stood: int | None = 400) -> Evidence:
    stood_us = None if stood is None else stood * SECOND
    return Evidence("asked", ZNODE_REASSIGNMENT, 10 * SECOND, replicas=(2, 3), stood_us=stood_us)


def judged(
    *facts: Evidence,
    version: VersionRange = KAFKA_2_5,
    tenure_from: int = 0,
    registered_until: int | None = None,
    logs_until: int = 0,
) -> Verdicts:
    end = None if registered_until is None else registered_until * SECOND
    view = ClusterView(
        "c",
        version,
        (Tenure(1, 1, tenure_from * SECOND, None, ("t",)),),
        liveness={1: (Interval(0, end, Registration(), ()),)},
        logs={1: (LogSpan(0, logs_until * SECOND, "INFO", True),)},
    )
    return fold_partition("t", list(facts), view).verdicts


def found(*facts: Evidence, **given: object) -> list[str | None]:
    every = judged(*facts, **given).findings  # type: ignore[arg-type]
    return [one.known_issue for one in every if one.divergence_type == "reassignment_not_begun"]


def test_a_reassignment_that_no_controller_begins_is_a_finding() -> None:
    (finding,) = judged(ASSIGNED, asked(), LATER).findings
    assert (finding.rule_id, finding.severity, finding.broker_id) == ("R16", "warning", 1)
    assert finding.known_issue == "KAFKA-9478 (since 2.4, not fixed)"
    assert "unchanged for 400 s" in finding.explanation
    assert found(ASSIGNED, asked(), logs_until=400), "or the controller's own log goes on"


@pytest.mark.parametrize(
    ("facts", "given"),
    [
        ((ASSIGNED, asked(None), LATER), {}),  # one snapshot, and logs that do not say that it began
        ((ASSIGNED, asked(200), LATER), {}),
        ((asked(), LATER), {}),  # of the topic's znode nothing is known
        ((ASSIGNED, asked()), {"logs_until": 100}),  # the snapshots' clock alone
        ((ASSIGNED, asked(), LATER), {"tenure_from": 100}),
        ((ASSIGNED, asked(), LATER), {"registered_until": 200}),
        ((ASSIGNED, asked(), LATER), {"version": VersionRange(v(2, 3), v(2, 4))}),
        ((ASSIGNED, asked(), Evidence("d", ZNODE_DELETION_REQUESTED, 20 * SECOND), LATER), {}),
        ((ASSIGNED, asked(), Evidence("o", ZNODE_REASSIGNMENT_DONE, 300 * SECOND), LATER), {}),
        ((ASSIGNED, asked(), Evidence("b", "reassignment_assignment_updated", 20 * SECOND), LATER), {}),
        (
            (
                ASSIGNED,
                asked(),
                Evidence("b", ZNODE_ASSIGNMENT, 12 * SECOND, replicas=(2, 3, 1), adding_replicas=(3,)),
                LATER,
            ),
            {},
        ),
        ((ASSIGNED, asked(), Evidence("b", ZNODE_ASSIGNMENT, 12 * SECOND, replicas=(2, 3)), LATER), {}),
    ],
)
def test_what_does_not_prove_it_accuses_nobody(facts: tuple[Evidence, ...], given: dict[str, object]) -> None:
    assert found(*facts, **given) == []


def accused(text: CaptureText) -> list[tuple[str, int]]:
    return [
        partition
        for partition, finding in plain_capture(text).findings()
        if finding.divergence_type == "reassignment_not_begun"
    ]


def test_all_that_are_put_into_a_capture_are_found_and_losses_accuse_nobody(unpacked: Unpacker) -> None:
    text = CaptureText.read(unpacked("lifecycle-3.9.1"))
    places = list(requests(text))
    assert len(places) > 20
    for place in places[::5]:
        bent = not_begun(text, place)
        assert accused(bent) == [place.partition], place
        assert lossy(bent, place) == {}


def lossy(bent: CaptureText, place: Request) -> dict[str, list[tuple[str, int]]]:
    """Of what is lost, or shows that it began after all: where somebody is accused nevertheless."""
    late, topic = last_round(bent), f"/brokers/topics/{place.partition[0]}"
    files = dict(bent.files)
    del files[late]
    data = next(json.loads(row["data"]) for row in map(json.loads, bent.files[late]) if row["path"] == topic)
    number = str(place.partition[1])
    at = int(late.removeprefix("znodes/").removesuffix(".jsonl"))
    begun = data | {"adding_replicas": data.get("adding_replicas", {}) | {number: [place.target[0]]}}
    texts = {
        "the last round": CaptureText(files),
        "the topic's row": with_rows(bent, late, topic),
        "the request's row": with_rows(bent, late, REQUEST),
        "another controller": with_rows(
            bent, late, "/controller_epoch", data="9", mzxid=99_999, version=9, mtime=at - 300_000
        ),
        "begun": with_rows(bent, late, topic, data=json.dumps(begun), mzxid=99_999, version=99),
    }
    return {name: found for name, each in texts.items() if (found := accused(each))}
