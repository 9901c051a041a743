"""A fold that is given the same answers gives the same rows: so every question is noted, and none that is not asked."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconstruct.cluster import view as cluster_view
from reconstruct.cluster.spans import LiveView, LogSpan, Tenure
from reconstruct.cluster.view import ClusterView
from reconstruct.kept.asking import ALWAYS, Answers, Asked, plain
from reconstruct.offsets.bound_steps import EVER_AFTER
from reconstruct.offsets.clocks import OffsetClocks
from reconstruct.offsets.spark import context as offset_context
from reconstruct.offsets.spark.context import OffsetContext

#: What :data:`ALWAYS` answers: a fold may ask it without being noted.
UNNOTED = {"cluster_id", "version", "tenures", "recreations", "settings", "noted"}
instants = st.integers(0, 30)
spans = st.builds(
    lambda start, length, level, in_order, shared: LogSpan(start, start + length, level, in_order, shared),
    instants,
    instants,
    st.sampled_from(["TRACE", "INFO"]),
    st.booleans(),
    st.booleans(),
)
logs = st.dictionaries(st.integers(1, 2), st.lists(spans, max_size=4).map(tuple))
LISTED = LiveView(9, 1, frozenset({1}), "r")
windows = st.lists(st.tuples(st.integers(1, 2), instants, instants), max_size=4)


def asked_of(facts: ClusterView, *questions: tuple[str, tuple[object, ...]]) -> list[str]:
    asked = Asked()
    noting = facts.noting(asked)
    for method, arguments in questions:
        assert getattr(noting, method)(*arguments) == getattr(facts, method)(*arguments), method
    return asked.questions()


def test_every_field_is_noted_or_always_answered() -> None:
    noted = {*cluster_view._BY_KEY, "lossy_logs", "live_views"}
    assert {field.name for field in fields(ClusterView)} == noted | UNNOTED
    assert {field.name for field in fields(OffsetContext)} == {*offset_context._BY_BROKER, "view", "clocks"}


@given(logs, logs, windows, st.frozensets(st.integers(1, 2)), st.frozensets(st.integers(1, 2)))
def test_logs_that_answer_alike_are_taken_for_the_same_and_others_never(before, after, asked, lossy, lossy_after):
    """What is kept of a log is one span of time for all that was asked of it: never too little of it."""
    first, then = ClusterView("c", logs=before, lossy_logs=lossy), ClusterView("c", logs=after, lossy_logs=lossy_after)
    questions = [(method, window) for window in asked for method in ("logs_all", "is_in_one_file")]
    noted = asked_of(first, *questions)
    if Answers(first).fingerprint(noted) == Answers(then).fingerprint(noted):
        for method, window in questions:
            assert getattr(first, method)(*window) == getattr(then, method)(*window)


def test_a_log_that_goes_on_after_what_was_asked_changes_no_answer() -> None:
    before = ClusterView("c", logs={1: (LogSpan(0, 90, "TRACE"),), 2: (LogSpan(0, 90, "TRACE"),)})
    later = replace(before, logs={1: (LogSpan(0, 500, "TRACE"), LogSpan(500, 900, "INFO")), 2: ()})
    noted = asked_of(before, ("logs_all", (1, 10, 80)), ("logs_all", (1, 40, 85)))
    assert noted == ['["always"]', '["logs", 1, 10, 85]']
    assert Answers(before).fingerprint(noted) == Answers(later).fingerprint(noted)
    cut = replace(before, logs={1: (LogSpan(0, 84, "TRACE"),)})
    assert Answers(before).fingerprint(noted) != Answers(cut).fingerprint(noted)


@pytest.mark.parametrize(
    ("ask", "other"),
    [
        (lambda view: view.process_starts.get(1), {"process_starts": {1: ((7, "r"),)}}),
        (lambda view: 1 in view.shutdown_requests, {"shutdown_requests": {1: ()}}),
        (lambda view: list(view.liveness), {"liveness": {3: ()}}),
        (lambda view: view.is_live(1, 5), {"liveness": {1: ()}}),
        (lambda view: view.at_generation_of(5).live_views_of(1, 0, None), {"live_views": (LISTED,)}),
        (lambda view: view.first_list_after(3), {"live_views": (LISTED,)}),
        (lambda view: view.asked_to_leave(0, 10), {"shutdown_requests": {4: ((7, "r"),)}}),
        (lambda view: view.keeps_order(1), {"logs": {1: (LogSpan(0, 1, "INFO", is_in_order=False),)}}),
        (lambda view: view.logs.get(1), {"logs": {1: (LogSpan(0, 1, "INFO"),)}}),
        (lambda view: view.tenure_at(5), {"tenures": (Tenure(1, 1, 0, None, ("r",)),)}),
        (lambda view: 2 in view.lossy_logs, {"lossy_logs": frozenset({2})}),
        (lambda view: 2 in view.set_back, {"set_back": {2: 5}}),
    ],
)
def test_an_answer_that_changed_is_noticed_and_one_that_nobody_asked_for_is_not(ask, other) -> None:
    view = ClusterView("c")
    changed = replace(view, **other)
    asked, nothing = Asked(), Asked()
    ask(view.noting(asked))
    view.noting(nothing)
    assert Answers(view).fingerprint(asked.questions()) != Answers(changed).fingerprint(asked.questions())
    is_unnoted = set(other) <= UNNOTED
    same = Answers(view).fingerprint(nothing.questions()) == Answers(changed).fingerprint(nothing.questions())
    assert same is not is_unnoted


def test_of_facts_before_an_instant_later_ones_change_no_answer() -> None:
    view = ClusterView("c", process_starts={1: ((5, "r"),)}, tenures=(Tenure(1, 1, 0, None, ("r",)),))
    asked = Asked(before=100)
    assert view.before(100).noting(asked).process_starts.get(1) == ((5, "r"),)
    assert asked.questions() == ['["before", 100]', '["always"]', '["process_starts", 1]']
    known = Answers(view).fingerprint(asked.questions())
    tenures = (*view.tenures, Tenure(2, 2, 150, None, ()))
    later = replace(view, live_views=(LiveView(200, 1, frozenset(), "s"),), tenures=tenures)
    assert Answers(later).fingerprint(asked.questions()) == known
    assert Answers(later).fingerprint(asked.questions()[1:]) != Answers(view).fingerprint(asked.questions()[1:])
    for other in ({1: ((6, "r"),)}, {1: ((5, "r"), (99, "s"))}):
        assert Answers(replace(view, process_starts=other)).fingerprint(asked.questions()) != known


def test_facts_before_many_instants_are_told_apart() -> None:
    starts = tuple((at, "r") for at in range(100))
    answers = Answers(ClusterView("c", process_starts={1: starts}))
    for _ in range(2):
        for instant in range(1, 100):
            assert answers.before(instant).facts.process_starts[1] == starts[: instant + 1]
    assert answers.before(None) is answers


def test_the_context_of_offsets_notes_what_is_asked_of_it_and_of_its_view() -> None:
    context = OffsetContext(ClusterView("c"), covered={1: [(0, 5)]})
    asked = Asked()
    noting = context.noting(asked)
    assert noting.covered.get(1) == [(0, 5)]
    assert noting.view.process_starts.get(2) is None
    assert asked.questions() == ['["always"]', '["covered", 1]', '["process_starts", 2]']
    known = Answers(context).fingerprint(asked.questions())
    for other in (
        replace(context, covered={1: [(0, 6)]}),
        replace(context, clocks=OffsetClocks({1: 9})),
        replace(context, view=replace(context.view, process_starts={2: ((1, "r"),)})),
    ):
        assert Answers(other).fingerprint(asked.questions()) != known
    assert context.before(6) == context
    assert context.before(5) == replace(context, covered={1: [(0, EVER_AFTER)]})
    assert context.before(0) == replace(context, covered={1: []})
    unasked = replace(context, covered={1: [(0, 5)], 2: []}, view=replace(context.view, liveness={2: ()}))
    assert Answers(unasked).fingerprint(asked.questions()) == known


def test_equal_values_are_plain_alike() -> None:
    assert plain({2: {3, 1}, 1: "a"}) == plain({1: "a", 2: frozenset({1, 3})})
    assert plain((ALWAYS, [1])) != plain((ALWAYS, [1, 1]))
