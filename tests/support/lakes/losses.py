"""A lake made by hand whose partition ``ledger-0`` loses records, and others that lose none: what curves are of.

Leader 1 has committed up to offset 300 when it dies; leader 2, outside the ISR, begins epoch 1 at offset 100. Replica
1 comes back, cuts its log to 290 only and so keeps records of its own; replica 3 does as it should.
"""

from __future__ import annotations

from typing import Any, Final

from ingest.lake.delta import Lake
from ingest.lake.tables import gold as g
from ingest.lake.tables import silver as s
from ingest.lake.tables.events import OFFSET_OBSERVATIONS, REPLICATION_EVENTS
from tests.support.lakes.story import Story

ELECTED: Final = 252.31
CUT: Final = 481.5
#: Rows of each replica of the busiest partition, many more than are drawn.
BUSY_ROWS: Final = 3_000


def write_losses(lake: Lake, quiet: int = 12) -> None:
    """``ledger-0`` lost records; ``maybe-0`` had an unclean election; ``clicks-0`` is busy; ``quiet-N`` are not."""
    story = Story("loss-fixture")
    for broker in (1, 2, 3):
        story.file(broker, "server_log", "server.log", 900)
    story.log("cut-1", 1, "server_log", 77, CUT, "Truncating log ledger-0 to offset 290.", event_type="log_truncated")
    _lossy(story)
    _offsets(story, "maybe", 2, (10, None, 5, 9, 5, None))
    _elected(story, "maybe", 50, 3, 1, is_unclean=True)
    for replica in (1, 2, 3):
        _offsets(story, "clicks", replica, *_busy())
    for number in range(quiet):
        _offsets(story, f"quiet{number:02d}", 1, (10, None, number, None, number + 1, None))
    story.write(lake)


def _lossy(story: Story) -> None:
    place = _place("ledger")
    story.led("ledger", 0, (5, 1, 0, [1, 2, 3]), (120, 1, 0, [1]), (ELECTED, 2, 1, [2]), (495, 2, 1, [2, 1, 3]))
    _elected(story, "ledger", 5, 1, 0, is_unclean=False, election_kind="new_partition", previous_leader=None)
    _elected(story, "ledger", ELECTED, 2, 1, is_unclean=True, evidence=["cut-1"])
    story.add(
        g.DATA_LOSS_BOUNDS,
        **place,
        event_at=ELECTED,
        cause="unclean_election",
        leader=2,
        previous_leader=1,
        leader_epoch=1,
        lost_from_offset=100,
        lost_to_offset_lower=299,
        lost_to_offset_upper=309,
        lost_count_lower=200,
        lost_count_upper=210,
        diverging_replicas=[1],
        diverging_offsets=["100-289"],
        evidence=["cut-1"],
    )
    _offsets(
        story,
        "ledger",
        1,
        (10, 60, None, 120, 40, None),
        (60, 245, 300, None, 300, 310),
        (480, CUT, 300, 310, 310, 310),
        (CUT, None, 290, None, 290, None),
        evidence=["hw-1"],
    )
    _offsets(story, "ledger", 2, (10, ELECTED, 90, 100, 100, 100), (ELECTED, None, 100, None, 100, None))
    _offsets(story, "ledger", 3, (10, 400, 90, None, 95, None), (400, None, 400, 500, 400, None))
    for shape, instant in ((1, CUT), (2, CUT + 0.2)):  # two lines tell of the same truncation
        story.add(
            REPLICATION_EVENTS,
            **place,
            event_id=f"cut-{shape}",
            record_id="cut-1",
            broker_id=1,
            offset=290,
            event_type="log_truncated",
            event_time=instant,
            corrected_time=instant,
            source_file="f",
        )
    story.add(
        OFFSET_OBSERVATIONS,
        **place,
        observation_id="o1",
        replica_id=1,
        offset_kind="high_watermark",
        offset=300,
        observed_at=59.5,
        observed_at_upper=60.5,
        source="replication_offset_checkpoint",
        evidence=["hw-1"],
    )


def _busy() -> list[tuple[Any, ...]]:
    """A row every tenth of a second, a bound not known now and then, and a gap."""
    rows = []
    for number in range(BUSY_ROWS):
        begin, end = 100 + number / 10, 100 + (number + 1) / 10 if number != 1500 else 100 + number / 10 + 0.02
        upper = None if 2000 <= number < 2100 else 50 * number + 90
        rows.append((begin, end, 50 * number, upper, 50 * number + 10, None))
    return rows


def _place(topic: str) -> dict[str, Any]:
    return {"topic": topic, "partition_id": 0}


def _elected(story: Story, topic: str, when: float, leader: int, epoch: int, **values: Any) -> None:
    row = {"election_kind": "offline_partition", "previous_leader": 1, "previous_isr": [1]} | values
    story.add(g.LEADER_ELECTIONS, **_place(topic), elected_at=when, observed_leader=leader, leader_epoch=epoch, **row)


def _offsets(story: Story, topic: str, replica: int, *rows: tuple[Any, ...], **values: Any) -> None:
    """Rows of silver.replica_offset_timeline: from, to, HW lower, upper, LEO lower, upper."""
    for begin, end, *bounds in rows:
        names = ("high_watermark_lower", "high_watermark_upper", "log_end_offset_lower", "log_end_offset_upper")
        story.add(
            s.REPLICA_OFFSET_TIMELINE,
            **_place(topic),
            replica_id=replica,
            valid_from=begin,
            valid_to=end,
            inferred_from="replication_rules",
            **dict(zip(names, bounds, strict=True)),
            **values,
        )
