"""Clocks solved from causal pairs: the bounds hold the truth, wrong pairs are dropped, and changes are found."""

from __future__ import annotations

import doctest
import json
import random
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.lake.tables.quality import CLOCK_VERDICTS
from ingest.shapes import match
from reconstruct.clocks import bounds as clock_bounds
from reconstruct.clocks import lateness
from reconstruct.clocks import timeline as clocks
from reconstruct.clocks.evidence import (
    RULES,
    LogFact,
    ZnodeFact,
    log_marks,
    znode_marks,
)
from reconstruct.clocks.timeline import (
    TOLERANCE_MS,
    VERDICTS,
    ZOOKEEPER,
    CausalPair,
    ClockSegment,
    correction_us,
    solve_clocks,
    zone_minutes,
)
from reconstruct.time.instants import to_micros
from tests.support.captures.packed import Unpacker, capture_names
from tests.support.evidence.clocks import pair_up, segment_at, with_announcements, with_previous

#: No whole second: of a line of one its milliseconds may be lost.
START = 1_795_230_000_300_000
SECOND = 1_000_000
HOUR = 3600 * SECOND
_HEADER = re.compile(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\] (\w+) (.*) \(([\w.$]+)\)$")


def test_the_table_declares_the_verdicts_that_are_given() -> None:
    assert set(CLOCK_VERDICTS) == set(VERDICTS)


def printed(true_us: int, offset_us: int) -> int:
    """As a log prints it: whole milliseconds, cut off."""
    return (true_us + offset_us) // 1000 * 1000


def events(
    offset: Callable[[int, int], int], clock_ids: Iterable[int], count: int = 400, seed: int = 1
) -> list[CausalPair]:
    """One pair a second between two random clocks; ``offset(clock, true time)`` in µs."""
    chance, ids = random.Random(seed), list(clock_ids)
    pairs = []
    for number in range(count):
        cause = START + number * SECOND
        earlier, later = chance.sample(ids, 2)
        effect = cause + int(chance.expovariate(1 / 20_000))
        pairs.append(
            CausalPair(
                earlier,
                later,
                printed(cause, offset(earlier, cause)),
                printed(effect, offset(later, effect)),
                "made",
                (str(number), f"{number}'"),
            )
        )
    return pairs


def of(segments: Iterable[ClockSegment], broker_id: int) -> list[ClockSegment]:
    return [segment for segment in segments if segment.broker_id == broker_id]


def holds(segment: ClockSegment, offset_ms: float) -> bool:
    lower, upper = segment.offset_lower_ms, segment.offset_upper_ms
    return (lower is None or lower <= offset_ms) and (upper is None or offset_ms <= upper)


@given(
    offsets=st.lists(st.integers(-15 * HOUR, 15 * HOUR), min_size=2, max_size=4),
    count=st.integers(1, 60),
    has_zookeeper=st.booleans(),
    seed=st.integers(0, 10_000),
)
def test_the_bounds_hold_the_truth(offsets: list[int], count: int, has_zookeeper: bool, seed: int) -> None:
    true = dict(enumerate(offsets, 1)) | ({ZOOKEEPER: 0} if has_zookeeper else {})
    segments = solve_clocks(events(lambda clock, _: true[clock], true, count, seed))
    for segment in segments:
        assert segment.verdict in VERDICTS
        assert holds(segment, (true[segment.broker_id] - true[segment.reference]) / 1000)
        assert segment.dropped_pairs_count == 0
    assert len({segment.broker_id for segment in segments}) == len(segments)


@given(seed=st.integers(0, 10_000))
def test_the_order_of_the_pairs_does_not_matter(seed: int) -> None:
    true = {ZOOKEEPER: 0, 1: 0, 2: 2 * HOUR}
    pairs = events(lambda clock, _: true[clock], true, 40)
    shuffled = list(pairs)
    random.Random(seed).shuffle(shuffled)
    assert solve_clocks(shuffled) == solve_clocks(pairs)


def test_many_pairs_bound_a_clock_to_milliseconds() -> None:
    true = {ZOOKEEPER: 0, 1: 0, 2: 2 * HOUR, 3: -60 * SECOND, 4: SECOND // 2}
    found = {s.broker_id: s for s in solve_clocks(events(lambda clock, _: true[clock], true))}
    assert [found[b].verdict for b in (1, 2, 3, 4)] == ["agrees", "other_zone", "skewed", "skewed"]
    assert found[2].zone_offset_minutes == 120
    for broker_id, segment in found.items():
        assert segment.offset_lower_ms is not None
        assert segment.offset_upper_ms is not None
        assert segment.offset_upper_ms - segment.offset_lower_ms <= 10
        assert abs((correction_us(segment) or 0) - true[broker_id]) <= 10_000


def test_a_clock_that_lost_its_milliseconds_is_right() -> None:
    """Some tool cut the times of broker 2's lines to whole seconds."""
    cut = [
        replace(
            pair,
            earlier_us=pair.earlier_us // SECOND * SECOND if pair.earlier_clock == 2 else pair.earlier_us,
            later_us=pair.later_us // SECOND * SECOND if pair.later_clock == 2 else pair.later_us,
        )
        for pair in events(lambda clock, _: 0, (ZOOKEEPER, 1, 2))
    ]
    for segment in solve_clocks(cut):
        assert (segment.verdict, segment.dropped_pairs_count) == ("agrees", 0)
        assert holds(segment, 0)


def test_a_pair_against_hundreds_is_dropped_and_counted() -> None:
    pairs = events(lambda clock, _: 0, (ZOOKEEPER, 1, 2))
    wrong = CausalPair(ZOOKEEPER, 2, START + 50 * SECOND, START - 900 * SECOND, "made", ("wrong", "pair"))
    (one,), (two,) = (of(solve_clocks([*pairs, wrong]), broker) for broker in (1, 2))
    assert (one.verdict, one.dropped_pairs_count) == ("agrees", 0)
    assert (two.verdict, two.dropped_pairs_count) == ("agrees", 1)


def test_two_pairs_against_each_other_are_both_dropped() -> None:
    pairs = [CausalPair(ZOOKEEPER, 1, START, START - HOUR), CausalPair(1, ZOOKEEPER, START, START - HOUR)]
    ((segment),) = solve_clocks(pairs)
    assert (segment.offset_lower_ms, segment.offset_upper_ms, segment.dropped_pairs_count) == (None, None, 2)
    assert segment.verdict == "unknown"


@pytest.mark.parametrize("jump_s", [3600, -3600, 30, -30, 1])
@pytest.mark.parametrize("broker_id", [1, 3])
@pytest.mark.parametrize("has_zookeeper", [True, False])
def test_a_clock_that_was_set_has_two_segments(jump_s: int, broker_id: int, has_zookeeper: bool) -> None:
    base = {ZOOKEEPER: 0, 1: 0, 2: 0, 3: 0, 4: 0}
    ids = [1, 2, 3, 4] + ([ZOOKEEPER] if has_zookeeper else [])
    middle = START + 200 * SECOND

    def offset(clock: int, at: int) -> int:
        return base[clock] + (jump_s * SECOND if clock == broker_id and at >= middle else 0)

    segments = solve_clocks(events(offset, ids))
    before, after = of(segments, broker_id)
    assert holds(before, 0)
    assert not holds(after, 0)
    assert holds(after, jump_s * 1000)
    assert not any(segment.is_disputed for segment in segments)
    for other in {1, 2, 3, 4} - {broker_id}:
        (steady,) = of(segments, other)
        assert steady.verdict == "agrees"
    if jump_s > 0:
        assert segment_at((before, after), middle - 10 * SECOND) == before
        assert segment_at((before, after), middle + (jump_s + 10) * SECOND) == after


def test_where_one_of_two_clocks_was_set_and_nothing_else_is_heard_of_them_both_are_disputed() -> None:
    middle = START + 200 * SECOND

    def offset(clock: int, at: int) -> int:
        return 3600 * SECOND if clock == 2 and at >= middle else 0

    before = [pair for pair in events(offset, (ZOOKEEPER, 1, 2, 3)) if max(pair.earlier_us, pair.later_us) < middle]
    after = [pair for pair in events(offset, (1, 2)) if min(pair.earlier_us, pair.later_us) >= middle]
    segments = solve_clocks([*before, *after])
    assert {segment.broker_id for segment in segments if segment.is_disputed} == {1, 2}


@pytest.mark.parametrize("ahead_s", [30, 3600])
def test_a_clock_that_only_follows_late_by_the_same_may_have_been_set_forward(ahead_s: int) -> None:
    middle = START + 200 * SECOND

    def offset(clock: int, at: int) -> int:
        return ahead_s * SECOND if clock == 2 and at >= middle else 0

    found = events(offset, (ZOOKEEPER, 1, 2))
    pairs = [p for p in found if max(p.earlier_us, p.later_us) < middle or p.earlier_clock != 2]
    followed = [pair for pair in pairs if pair.later_clock == 2 and pair.later_us > middle]
    others = [pair for pair in pairs if pair not in followed]
    for known, is_disputed in ((followed, True), (followed[:2], True), (followed[:1], False), ([], False)):
        assert {s.broker_id for s in solve_clocks([*others, *known]) if s.is_disputed} == (
            {2} if is_disputed else set()
        )


@pytest.mark.parametrize("is_heard_by_others", [True, False])
def test_a_clock_that_a_disputed_one_alone_bounds_is_disputed_too(is_heard_by_others: bool) -> None:
    middle = START + 200 * SECOND

    def offset(clock: int, at: int) -> int:
        return HOUR if clock == 2 and at >= middle else 0

    found = events(offset, (ZOOKEEPER, 1, 2))
    pairs = [p for p in found if max(p.earlier_us, p.later_us) < middle or p.earlier_clock != 2]
    pairs += [p for p in events(offset, (2, 3)) if max(p.earlier_us, p.later_us) < middle]
    if is_heard_by_others:
        pairs += events(offset, (1, 3))
    assert {s.broker_id for s in solve_clocks(pairs) if s.is_disputed} == ({2} if is_heard_by_others else {2, 3})


def test_a_clock_whose_own_events_by_zookeeper_s_are_dropped_is_disputed() -> None:
    """Clock 2 is set forward soon: one registration of each clock's says that it was right, and many requests among
    them that it was not."""
    soon = START + 10 * SECOND

    def offset(clock: int, at: int) -> int:
        return 3 * SECOND if clock == 2 and at >= soon else 0

    def registers(clock: int, at: int) -> CausalPair:
        return CausalPair(clock, ZOOKEEPER, printed(at, offset(clock, at)), printed(at + 1_000, 0))

    requests = [p for p in events(offset, (1, 2, 3)) if min(p.earlier_us, p.later_us) > soon + 4 * SECOND]
    shown = [p for p in events(offset, (ZOOKEEPER, 1, 2, 3)) if p.earlier_clock == ZOOKEEPER]
    segments = solve_clocks([*requests, *shown, *(registers(clock, START + clock * SECOND) for clock in (1, 2, 3))])
    assert 3 in {segment.broker_id for segment in segments if segment.dropped_pairs_count}
    assert {segment.broker_id for segment in segments if segment.is_disputed} == {3}
    # a record that contradicts all others of its kind is wrong by itself
    steady = events(lambda clock, at: 0, (ZOOKEEPER, 1, 2, 3))
    wrong = CausalPair(2, ZOOKEEPER, START + 100 * SECOND, START + 90 * SECOND)
    kept = solve_clocks([*steady, wrong])
    assert [(s.broker_id, s.is_disputed) for s in kept if s.dropped_pairs_count] == [(2, False)]


def test_clocks_that_were_all_set_forward_are_late_by_zookeeper_s() -> None:
    middle = START + 200 * SECOND

    def offset(clock: int, at: int) -> int:
        return HOUR if clock != ZOOKEEPER and at >= middle else 0

    found = events(offset, (ZOOKEEPER, 1, 2))
    pairs = [p for p in found if max(p.earlier_us, p.later_us) < middle or p.later_clock != ZOOKEEPER]
    assert {segment.broker_id for segment in solve_clocks(pairs) if segment.is_disputed} == {1, 2}


def test_what_is_late_by_an_hour_and_some_seconds_is_late_by_daylight_saving_time() -> None:
    pairs = events(lambda clock, _: 0, (ZOOKEEPER, 1, 2), 100)
    at = START + 200 * SECOND

    def shown(ahead: int, *late_s: int) -> list[CausalPair]:
        return [
            CausalPair(ZOOKEEPER, 2, at + n * SECOND, at + n * SECOND + ahead + late * SECOND, "", (str(n),))
            for n, late in enumerate(late_s)
        ]

    for ahead, late_s, is_disputed in (
        (HOUR, (5, 7, 2), True),
        (HOUR, (5,), False),
        (HOUR // 2 + 100 * SECOND, (5, 7, 2), False),
        (0, (5, 7, 2), False),
    ):
        segments = solve_clocks([*pairs, *shown(0, 8), *shown(ahead, *late_s)])
        assert {s.broker_id for s in segments if s.is_disputed} == ({2} if is_disputed else set()), (ahead, late_s)


def test_what_is_shown_again_at_a_start_is_late_but_no_clock_set_forward() -> None:
    pairs = events(lambda clock, _: 0, (ZOOKEEPER, 1, 2), 100)
    started = START + 4_000 * SECOND
    again = [CausalPair(ZOOKEEPER, 2, START + n * 1000, started + n * 1000, "", (str(n),)) for n in range(50)]
    spread = [CausalPair(ZOOKEEPER, 2, START + n * SECOND, started + n * 9 * SECOND, "", (str(n),)) for n in range(50)]
    for late in (again, spread):
        assert not any(segment.is_disputed for segment in solve_clocks([*pairs, *late]))


def test_an_hour_that_was_printed_twice_is_told_apart_by_the_order_in_the_file() -> None:
    """The end of daylight saving time: the clocks of the log go back, the cluster's time does not."""
    middle = START + 200 * SECOND
    pairs = events(lambda clock, at: 100 * SECOND if clock == 1 and at < middle else 0, (ZOOKEEPER, 1, 2))
    before, after = of(solve_clocks(pairs), 1)
    twice = START + 250 * SECOND
    assert segment_at((before, after), twice) is None
    assert segment_at((before, after), twice, is_after_step_back=False) == before
    assert segment_at((before, after), twice, is_after_step_back=True) == after


def test_a_clock_that_wanders_a_little_was_not_set() -> None:
    pairs = events(lambda clock, at: (at - START) // 40_000 if clock == 1 else 0, (ZOOKEEPER, 1, 2))  # 25 ppm
    (segment,) = of(solve_clocks(pairs), 1)
    assert segment.verdict == "agrees"
    assert holds(segment, 0)
    assert holds(segment, 10)


def test_a_clock_with_evidence_on_one_side_is_not_bounded() -> None:
    (segment,) = solve_clocks([CausalPair(ZOOKEEPER, 1, START, START + SECOND)], brokers=[1])
    assert (segment.verdict, segment.offset_lower_ms, correction_us(segment)) == ("unbounded", None, None)
    (nothing,) = solve_clocks([], brokers=[7])
    assert (nothing.broker_id, nothing.verdict) == (7, "unknown")


def test_without_znodes_offsets_are_relative_to_the_clock_most_agree_with() -> None:
    true = {1: HOUR, 2: 0, 3: 0}
    segments = solve_clocks(events(lambda clock, _: true[clock], true))
    assert {s.reference for s in segments} == {2}
    assert [s.zone_offset_minutes for s in segments] == [60, None, None]


def test_a_zone_is_the_only_multiple_of_15_minutes_near_the_bounds() -> None:
    hour = 3_600_000
    assert zone_minutes(2 * hour - 30, 2 * hour + 30) == 120
    assert zone_minutes(5 * hour + hour // 2, 5 * hour + hour // 2 + 5) == 330
    assert zone_minutes(-5 * hour + 60_000, -5 * hour + 61_000) == -300
    assert zone_minutes(0, 5) is None
    assert zone_minutes(400_000, 410_000) is None  # near 0: no other zone
    assert zone_minutes(hour + 300_000, hour + 300_100) is None  # five minutes beside the nearest
    assert zone_minutes(hour, 2 * hour) is None  # several would do
    assert zone_minutes(None, hour) is None


@given(
    lower=st.integers(-16 * 3_600_000, 16 * 3_600_000),
    width=st.integers(0, 200_000),
    share=st.floats(0, 1, allow_nan=False),
)
def test_a_correction_never_leads_away_from_the_truth(lower: int, width: int, share: float) -> None:
    zone = zone_minutes(lower, lower + width)
    verdict = "other_zone" if zone is not None else "skewed"
    segment = ClockSegment(1, 0, None, None, lower, lower + width, 9, 0, ZOOKEEPER, zone, verdict)
    truth = lower + width * share
    corrected = correction_us(segment)
    if corrected is not None:
        # beside a zone only what is beyond the tolerance was proven
        assert abs(truth - corrected / 1000) <= abs(truth - (zone or 0) * 60_000) + 1
        assert abs(truth - corrected / 1000) <= abs(truth) + TOLERANCE_MS


def test_the_examples_in_the_documentation_hold() -> None:
    assert [doctest.testmod(module).failed for module in (clocks, clock_bounds, lateness)] == [0, 0, 0]


# --- real clusters ---------------------------------------------------------------------------------------------------


def capture_facts(folder: Path) -> tuple[list[LogFact], list[ZnodeFact]]:
    """What a capture's logs and znode snapshots say, without Spark."""
    logged: list[LogFact] = []
    for log in sorted(folder.glob("broker-*/logs/*.log")):
        kind, broker_id = re.sub(r"\W", "_", log.name), int(log.parts[-3].removeprefix("broker-"))
        of_file = []
        for number, text in enumerate(log.read_text(errors="replace").splitlines(), 1):
            header = _HEADER.match(text)
            matched = match(kind, header[4], header[3]) if header else None
            if header is not None and matched is not None:
                instant = datetime.strptime(f"{header[1]}000", "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=UTC)
                of_file.append(
                    LogFact(
                        f"{broker_id}/{log.name}:{number}",
                        kind,
                        matched.event_type,
                        to_micros(instant),
                        broker_id,
                        matched.fields,
                    )
                )
        logged += with_announcements(of_file)
    writes: dict[tuple[str, int], ZnodeFact] = {}
    for snapshot in sorted(folder.glob("znodes/*.jsonl")):
        for number, text in enumerate(snapshot.read_text().splitlines(), 1):
            row = json.loads(text)
            fact = ZnodeFact(
                f"{snapshot.name}:{number}",
                row["path"],
                row["data"],
                row["mtime"] * 1000,
                row["czxid"],
                row["mzxid"],
                row["version"],
            )
            writes.setdefault((fact.path, fact.mzxid), fact)
    return logged, with_previous(writes.values())


@pytest.fixture(scope="module")
def pairs_of_captures(unpacked: Unpacker) -> dict[str, list[CausalPair]]:
    found = {}
    for name in capture_names():
        logged, written = capture_facts(unpacked(name))
        marks = [mark for fact in logged for mark in log_marks(fact)]
        found[name] = pair_up([*marks, *(mark for fact in written for mark in znode_marks(fact))])
    return found


def bent(pairs: Iterable[CausalPair], broker_id: int, by: Callable[[int], int]) -> list[CausalPair]:
    """The pairs as they would be had a broker's clock printed ``by(true time)`` more, µs."""

    def shift(clock: int, at: int) -> int:
        return at + by(at) if clock == broker_id else at

    return [
        replace(p, earlier_us=shift(p.earlier_clock, p.earlier_us), later_us=shift(p.later_clock, p.later_us))
        for p in pairs
    ]


def without_znodes(pairs: Iterable[CausalPair]) -> list[CausalPair]:
    return [p for p in pairs if ZOOKEEPER not in (p.earlier_clock, p.later_clock)]


def test_every_rule_but_those_of_other_versions_is_seen(pairs_of_captures: dict[str, list[CausalPair]]) -> None:
    seen = {pair.rule for pairs in pairs_of_captures.values() for pair in pairs}
    assert seen == set(RULES) - {"registered_before_replayed"}  # no capture here is of a KRaft cluster


@pytest.mark.parametrize("name", capture_names())
def test_the_clocks_of_one_machine_agree(name: str, pairs_of_captures: dict[str, list[CausalPair]]) -> None:
    for pairs in (pairs_of_captures[name], without_znodes(pairs_of_captures[name])):
        for segment in solve_clocks(pairs, brokers=(1, 2, 3)):
            assert segment.verdict == "agrees", segment
            assert segment.dropped_pairs_count == 0
            assert correction_us(segment) is None
            assert segment.offset_lower_ms is not None
            assert segment.offset_upper_ms is not None
            assert segment.offset_upper_ms - segment.offset_lower_ms <= 250


@pytest.mark.parametrize("name", capture_names())
@pytest.mark.parametrize("skew_s", [7200, 0.5, -60, -5.5 * 3600])
def test_a_clock_that_is_wrong_is_bounded_around_its_error(
    name: str, skew_s: float, pairs_of_captures: dict[str, list[CausalPair]]
) -> None:
    for broker_id in (1, 2, 3):
        segments = solve_clocks(bent(pairs_of_captures[name], broker_id, lambda _: int(skew_s * SECOND)), (1, 2, 3))
        for segment in segments:
            assert holds(segment, skew_s * 1000 if segment.broker_id == broker_id else 0), segment
        (wrong,) = of(segments, broker_id)
        assert wrong.verdict == ("other_zone" if abs(skew_s) >= 3600 else "skewed")
        assert abs((correction_us(wrong) or 0) - skew_s * SECOND) <= 130_000


#: Captures in which every broker takes part before and after the middle; the others have their evidence at the start.
BUSY = tuple(name for name in capture_names() if not name.startswith(("quiet", "unclean")))


@pytest.mark.parametrize("name", BUSY)
@pytest.mark.parametrize("jump_s", [3600, -3600, -30])
def test_daylight_saving_time_in_the_middle_gives_two_segments(
    name: str, jump_s: int, pairs_of_captures: dict[str, list[CausalPair]]
) -> None:
    pairs = pairs_of_captures[name]
    middle = sorted(pair.later_us for pair in pairs)[len(pairs) // 2]
    for broker_id in (1, 2, 3):
        segments = solve_clocks(bent(pairs, broker_id, lambda at: jump_s * SECOND if at > middle else 0), (1, 2, 3))
        before, after = of(segments, broker_id)
        assert holds(before, 0)
        assert holds(after, jump_s * 1000)
        assert after.verdict != "agrees"
        assert {s.verdict for s in segments if s.broker_id != broker_id} == {"agrees"}
