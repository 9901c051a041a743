"""The text and the data of the curves: the words for a loss, and what the script is given."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dashboards.payload import Packing
from dashboards.records import Record
from dashboards.render import render
from dashboards.sections.offsets import words
from dashboards.sections.offsets.rows import Curve, Election, Leader, Loss, Observation, OwnRecords, Step, Truncation
from dashboards.sections.offsets.steps import NEAR_MS, slices_of
from dashboards.source import Limits
from tests.support.lakes.incident import HOSTILE
from tests.unit.dashboards.test_render import Tags, cluster, data

LOSS = Loss(
    at_ms=5000,
    cause="unclean_election",
    leader=2,
    previous_leader=1,
    leader_epoch=7,
    lost_from_offset=74,
    lost_to_offset_lower=288,
    lost_to_offset_upper=305,
    lost_count_lower=215,
    lost_count_upper=232,
    diverging_replicas=(1,),
    diverging_offsets=("74-288",),
    evidence=("r1", "unplaced"),
)
UNCLEAN = Election(5000, "offline_partition", 1, 2, 7, True, "r1")
FIRST = Election(1000, "new_partition", None, 1, 6, False, None)
CUT = Truncation(6000, 1, 289, "r1")
MEASURES = {
    "losses_count": 0,
    "lost_lower": 0,
    "lost_upper": 0,
    "unbounded": 0,
    "diverging": 0,
    "unclean": 0,
    "rise": 10,
    "replicas": 2,
    "intervals": 4,
    "lost_at_ms": None,
}
TOTALS = {
    "curves_total": 2,
    "losing_total": 1,
    "proven_total": 1,
    "lost_lower_total": 215,
    "lost_upper_total": 232,
    "unbounded_total": 0,
    "diverging_total": 1,
}


def step(replica, from_ms, to_ms, hw, leo):
    return Step(replica, from_ms, to_ms, *hw, *leo, rows=1, rows_total=2, observations=(0,))


def undrawn(name="ledger", **values):
    return Curve(**({"topic": name, "topic_incarnation": "7", "partition_id": 0} | MEASURES | TOTALS | values))


def curve(**values):
    rows = {
        "is_drawn": True,
        "losses_count": 1,
        "lost_lower": 215,
        "lost_upper": 232,
        "lost_at_ms": 5000,
        "diverging": 1,
        "losses": (LOSS,),
        "elections": (FIRST, UNCLEAN),
        "truncations": (CUT,),
        "leaders": (Leader(1000, None, 1, 6),),
        "steps": (step(1, 2000, 4000, (None, 300), (289, None)), step(2, 2000, None, (74, 74), (74, 80))),
        "observations": (Observation("high_watermark", 289, 1, "replication_offset_checkpoint", 2000, 3000),),
    }
    return undrawn(**(rows | values))


def test_slices_are_few_and_narrow_near_what_matters():
    assert slices_of((0.0, 600_000.0), [], 100) == (6_000.0, 6_000.0, [], 100)
    assert slices_of((0.0, 86_400_000.0), [500.0], 100) == (1_728_000.0, 2 * NEAR_MS / 50, [500.0], 100)
    # Of a short span none is wider near than far, and no budget is too small.
    assert slices_of((0.0, 1_000.0), [1.0, 2.0], 1) == (1_000.0, 1_000.0, [1.0, 2.0], 1)
    assert slices_of((5.0, 5.0), [], 10)[0] > 0


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [(None, None, "not known"), (1, None, "1 or more"), (None, 2000, "2,000 or less"), (3, 3, "3"), (3, 9, "3 to 9")],
)
def test_bounds_are_given_as_far_as_they_are_known(lower, upper, expected):
    assert words.bounds(lower, upper) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {},
            "leader 2 began epoch 7 at offset 74, from outside the ISR, after leader 1: committed records at offsets"
            " 74 to 288 are lost, perhaps up to 305 (at least 215, at most 232 records)",
        ),
        (
            {"lost_to_offset_upper": 288, "lost_count_upper": 215, "cause": "clean_election"},
            "leader 2 began epoch 7 at offset 74, from the ISR, though its log lacked committed records, after leader"
            " 1: committed records at offsets 74 to 288 are lost (215 records)",
        ),
        (
            {"lost_to_offset_upper": None, "lost_count_upper": None},
            "leader 2 began epoch 7 at offset 74, from outside the ISR, after leader 1: committed records at offsets"
            " 74 to 288 are lost, and how many more is not known (at least 215 records, at most not known)",
        ),
        (
            {"lost_to_offset_lower": None, "lost_count_lower": 0},
            "leader 2 began epoch 7 at offset 74, from outside the ISR, after leader 1: no record is proven lost, those"
            " at 74 to 305 may be (at least 0, at most 232 records)",
        ),
    ],
)
def test_a_loss_is_described_with_what_is_proven_and_what_is_possible(changes, expected):
    assert words.loss_sentence(replace(LOSS, **changes)) == expected


def test_events_are_told_in_order_and_the_election_that_lost_is_told_once():
    found = words.events(curve())
    assert [(row.at_ms, row.replica, row.is_loss) for row in found] == [
        (1000, 1, False),
        (5000, None, True),
        (5000, 1, True),
        (6000, 1, False),
    ]
    assert found[0].text == "elected leader at epoch 6 (new partition)"
    assert "its own records at offsets 74 to 288" in found[2].text
    assert found[3].text == "cut its log to offset 289"


def test_the_headline_tells_losses_and_who_differs():
    assert words.headline(curve(), str) == (
        "at least 215, at most 232 records lost at 5000; replica 1 keeps records of its own"
    )
    calm = curve(losses=(), unclean=1, rise=1043)
    assert words.headline(calm, str) == "no loss is known, 1 unclean election; 1,043 offsets written in what is known"


def test_what_is_last_known_of_each_replica():
    assert words.last_known(curve(), str) == (
        "Replica 1, until 4000: LEO 289 or more, HW 300 or less.",
        "Replica 2, at the end: LEO 74 to 80, HW 74.",
    )


def test_the_verdict_tells_losses_first_and_says_what_is_not_proven():
    assert words.loss_verdict([]) == ""
    assert words.loss_verdict([undrawn(lost_lower=0)]) == ""
    assert words.loss_verdict([curve()]) == (
        "Committed records were lost: at least 215, at most 232 records in 1 partition: ledger-0 at 00:00:05.000"
        " (215 to 232). In ledger-0 a replica kept records of its own: logs differ, and nothing in Kafka says so."
    )
    maybe = undrawn(losses_count=1, proven_total=0, losing_total=1)
    assert words.loss_verdict([maybe]) == ("No record is proven lost, but ledger-0 may have lost committed records.")
    many = [replace(maybe, partition_id=number, losing_total=310) for number in range(58)]
    assert "but ledger-0, ledger-1, ledger-2 and 307 more may have lost" in words.loss_verdict(many)
    unbounded = curve(unbounded=1, unbounded_total=1, losing_total=3, diverging=0)
    assert "at least 215 records, at most not known" in words.loss_verdict([unbounded])
    assert "2 more partitions may have lost some" in words.loss_verdict([unbounded])


def test_the_payload_holds_the_bounds_the_loss_and_where_it_is_told():
    found = Packing(1000, {"r1": Record("a.log", 12)}).value(curve())
    place = {"file": ["a.log"], "line": [12]}
    assert found["steps"]["columns"] == {
        "replica_id": [1, 2],
        "from_ms": [1000, 1000],
        "to_ms": [3000, None],
        "high_watermark_lower": [None, 74],
        "high_watermark_upper": [300, 74],
        "log_end_offset_lower": [289, 74],
        "log_end_offset_upper": [None, 80],
        "rows": [1, 1],
        "rows_total": [2, 2],
        "observations": {"values": [[0]], "rows": [0, 0]},
    }
    # One observation, however many steps rest on it.
    assert found["observations"]["columns"]["offset"] == [289]
    assert found["observations"]["columns"]["to_ms"] == [2000]
    loss = found["losses"]["columns"]
    assert (loss["at_ms"], loss["lost_from_offset"], loss["lost_to_offset_upper"]) == ([4000], [74], [305])
    # A record that the lake does not hold has no place.
    assert loss["evidence"] == [[{"file": "a.log", "line": 12}]]
    assert found["elections"]["columns"]["previous_leader"] == [None, 1]
    assert found["elections"]["columns"]["file"] == [None, "a.log"]
    assert found["truncations"]["columns"] == {"at_ms": [5000], "replica_id": [1], "to_offset": [289]} | place
    assert LOSS.own_records == (OwnRecords(1, 74, 288),)
    assert replace(LOSS, diverging_replicas=(), diverging_offsets=()).own_records == ()


def test_the_page_holds_the_chart_its_text_and_what_is_not_drawn():
    rows = (curve(curves_total=90), undrawn("other", losses_count=1, lost_lower=4))
    page = render(data(cluster(offsets__offsets=rows)), "t")
    for text in (
        "Committed records were lost",
        'id="curve-0-0" data-name="ledger-0" open',
        "committed records at offsets 74 to 288 are lost",
        'data-zoom="5000"',
        "1 of 90 partitions are drawn",
        "other-0 (1 loss, at least 4 records)",
        "and 88 more",
        "Replica 2, at the end: LEO 74 to 80, HW 74.",
    ):
        assert text in page
    assert json.loads(Tags(page).scripts[0])["clusters"][0]["broker_ids"] == [1, 2]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_name_adds_no_element(text):
    plain = Tags(render(data(cluster(offsets__offsets=(curve(),))), "t"))
    hostile = Tags(render(data(cluster(offsets__offsets=(curve(topic=text, topic_incarnation=text),))), "t"))
    assert [tag for tag, _ in hostile.tags] == [tag for tag, _ in plain.tags]


def test_the_budget_is_shared():
    limits = Limits(curves=8, curve_steps=600)
    assert [limits.curves_per_cluster(n) for n in (1, 3, 20)] == [8, 2, 1]
    assert limits.curve_steps_each([]) == limits.curve_steps_each([100, 500]) == 600
    # What small ones leave goes to the others, and never more than there is.
    assert limits.curve_steps_each([100, 9_000, 10, 5_000]) == (600 - 110) // 2
    assert limits.curve_steps_each([9_000] * 6) == 100
    assert limits.curve_steps_each([9] * 10_000) == 1
