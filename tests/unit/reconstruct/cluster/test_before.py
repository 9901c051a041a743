"""What is known of what was before an instant is the same, whatever is known of later."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconstruct.cluster.settings import Configuration, SettingChange, SettingsOverTime
from reconstruct.cluster.spans import CountedRequests, Departure, LiveView, LogSpan, Registration, Tenure
from reconstruct.cluster.view import ClusterView
from reconstruct.time.intervals import Interval

instants = st.integers(0, 20)
later = st.none() | st.integers(0, 20)


def in_order(*values: int) -> tuple[int, ...]:
    return tuple(sorted(values))


@st.composite
def spans_of_time(draw: st.DrawFn) -> tuple[int, int | None]:
    start, end = draw(instants), draw(later)
    return start, None if end is None else start + end


def by_broker(values: st.SearchStrategy[object]) -> st.SearchStrategy[dict[int, tuple[object, ...]]]:
    return st.dictionaries(st.integers(1, 2), st.lists(values, max_size=3).map(tuple))


acts = st.dictionaries(
    st.integers(1, 2), st.lists(st.tuples(instants, st.sampled_from("ab"))).map(lambda all_: tuple(sorted(all_)))
)
views = st.builds(
    ClusterView,
    st.just("c"),
    tenures=st.lists(spans_of_time().map(lambda span: Tenure(1, 1, *span, ("raised", "resigned"))), max_size=3).map(
        tuple
    ),
    liveness=by_broker(
        st.builds(
            lambda span, reason, after: Interval(*span, Registration(reason, after), ("began", "ended"), "gap"),
            spans_of_time(),
            st.sampled_from(["crash", None]),
            later,
        )
    ),
    departures=by_broker(
        st.builds(lambda *at: Departure(*in_order(*at), evidence=("r",)), instants, instants, instants, instants)
    ),
    recreations=st.lists(instants).map(tuple),
    configurations=st.dictionaries(
        st.integers(1, 2),
        st.lists(st.tuples(instants, st.just({"a": "b"}))).map(lambda printed: Configuration(None, tuple(printed))),
    ),
    settings=st.builds(
        SettingsOverTime,
        st.dictionaries(st.just("t"), st.lists(instants.map(SettingChange), min_size=1).map(tuple)),
        st.dictionaries(st.just(1), st.lists(instants.map(SettingChange), min_size=1).map(tuple)),
    ),
    process_starts=acts,
    shutdown_requests=acts,
    logs=by_broker(st.builds(lambda start, length: LogSpan(start, start + length, "TRACE"), instants, instants)),
    counted_requests=by_broker(
        st.builds(lambda start, length: CountedRequests(1, 1, 5, 9, start, start + length), instants, instants)
    ),
    live_views=st.lists(instants.map(lambda at: LiveView(at, 1, frozenset({1}), "r"))).map(tuple),
)


@given(views, instants, instants)
def test_what_was_known_by_then_and_what_is_known_now_say_the_same_of_earlier(view, one, other) -> None:
    earlier, then = sorted((one, other))
    assert view.before(then).before(earlier) == view.before(earlier)


@given(views)
def test_before_the_end_of_time_is_all_but_what_may_go_on(view) -> None:
    """Of what has not ended, what may tell of its end is left out."""
    known = view.before(100)
    for field in fields(ClusterView):
        if field.name not in ("tenures", "liveness"):
            assert getattr(known, field.name) == getattr(view, field.name), field.name
    assert [(t.start, t.end) for t in known.tenures] == [(t.start, t.end) for t in view.tenures]
    for broker_id, spans in view.liveness.items():
        assert [(s.start, s.end) for s in known.liveness[broker_id]] == [(s.start, s.end) for s in spans]


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (
            {"tenures": (Tenure(1, 3, 2, 9, ("raised", "elected", "resigned")),)},
            {"tenures": (Tenure(1, 3, 2, None, ("raised", "elected")),)},
        ),
        (
            {"liveness": {1: (Interval(2, 9, Registration("crash", 7), ("began", "ended"), "gap"),)}},
            {"liveness": {1: (Interval(2, None, Registration(None, 5), ("began",)),)}},
        ),
        (
            {"liveness": {1: (Interval(2, None, Registration(None, 4), ("began",)),)}},
            {"liveness": {1: (Interval(2, None, Registration(None, 4), ("began",)),)}},
        ),
        (
            {"departures": {1: (Departure(1, 2, 3, 4, ()), Departure(3, None, 4, 5, ()))}},
            {"departures": {1: (Departure(1, 2, 3, 4, ()),)}},
        ),
        ({"logs": {1: (LogSpan(0, 9, "TRACE"), LogSpan(5, 9, "INFO"))}}, {"logs": {1: (LogSpan(0, 5, "TRACE"),)}}),
        (
            # what a broker went on with its next start ended
            {"process_starts": {1: ((4, "a"), (5, "b"), (6, "c")), 2: ((4, "d"),)}},
            {"process_starts": {1: ((4, "a"), (5, "b")), 2: ((4, "d"),)}},
        ),
        ({"shutdown_requests": {1: ((4, "a"), (5, "b"))}}, {"shutdown_requests": {1: ((4, "a"),)}}),
        (
            # the first change says whether the place was made then
            {"settings": SettingsOverTime({"t": (SettingChange(7), SettingChange(8))})},
            {"settings": SettingsOverTime({"t": (SettingChange(7),)})},
        ),
    ],
)
def test_what_is_known_before_the_fifth_microsecond(known, expected) -> None:
    assert ClusterView("c", **known).before(5) == ClusterView("c", **expected)


def test_requests_that_are_counted_on_and_on_are_all_counted_until_then() -> None:
    view = ClusterView("c", counted_requests={1: (CountedRequests(1, 1, 5, 9, 2, 30),)})
    (run,) = view.before(20).counted_requests[1]
    assert (run.start, run.end, run.first_id) == (2, 20, 5)
    assert run.last_id > 1 << 32, "any that was received by then is one of them"
    assert view.before(31) == view
    more = replace(view, counted_requests={1: (CountedRequests(1, 1, 5, 90, 2, 300),)})
    assert more.before(20) == view.before(20)
