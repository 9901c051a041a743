"""The reasons of an election end where the election does."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reconstruct.model.election_reasons import reasons
from reconstruct.model.elections import Brokers, Elected, ElectionKind, PartitionView, elect
from reconstruct.model.versions import v

VERSIONS = [v(0, 8, 0), v(0, 8, 1), v(0, 8, 2), v(0, 9), v(0, 10), v(1, 0), v(1, 1), v(2, 1), v(2, 2), v(3, 9)]
IDS = st.sampled_from(range(1, 6))


@given(
    kind=st.sampled_from(list(ElectionKind)),
    assignment=st.lists(IDS, unique=True, min_size=1, max_size=4),
    isr=st.lists(IDS, unique=True, max_size=4),
    target=st.none() | st.lists(IDS, unique=True, min_size=1, max_size=4),
    live=st.frozensets(IDS),
    leaving=st.frozensets(IDS, max_size=2),
    unclean=st.booleans(),
    version=st.sampled_from(VERSIONS),
    leader=st.sampled_from([-1, 1, 2, 3]),
)
def test_the_last_reason_is_the_election_s_outcome(
    kind, assignment, isr, target, live, leaving, unclean, version, leader
):
    view = PartitionView(tuple(assignment), tuple(isr), leader, 7, None if target is None else tuple(target))
    brokers = Brokers(live | leaving, leaving)
    told = reasons(kind, view, brokers, unclean, version)
    result = elect(kind, view, brokers, unclean, version)
    assert told.result == result
    leads = [step for step in told.steps if step.endswith("It leads.")]
    if isinstance(result, Elected):
        assert [step.split(":")[0] for step in leads] == [str(result.leader)]
        assert told.steps[-1].startswith(f"Leader {result.leader}")
        assert ("uncleanly" in told.steps[-1]) is result.is_unclean
    else:
        assert leads == []
        assert told.steps[-1] == f"No leader is elected ({result.value})."


def test_an_unclean_election_says_who_was_passed_over():
    view = PartitionView((1, 2, 3), (1,), 1, 4)
    told = reasons(ElectionKind.OFFLINE_PARTITION, view, Brokers(frozenset({2, 3})), True, v(3, 9))
    assert told.steps == (
        "The assigned replicas are asked in their order: 1,2,3.",
        "1: not live.",
        "2: not in the ISR.",
        "3: not in the ISR.",
        "No live replica is in the ISR; unclean.leader.election.enable is true: any live assigned replica may lead,"
        " and is the ISR then.",
        "1: not live.",
        "2: live. It leads.",
        "Leader 2, uncleanly, ISR 2, leader epoch 5; told: 2,3.",
    )
