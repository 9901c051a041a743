"""How often a cluster was created again in the same folders."""

from __future__ import annotations

from reconstruct.cluster.generations import GenerationFact, generation_starts


def elected(at: int, epoch: int) -> GenerationFact:
    return GenerationFact(at, f"e{at}", controller_epoch=epoch)


def stated(at: int, cluster_id: str, broker_id: int | None = None) -> GenerationFact:
    return GenerationFact(at, f"i{at}", stated_cluster_id=cluster_id, broker_id=broker_id)


def starts(*facts: GenerationFact) -> list[int]:
    found = [start.at for start in generation_starts(facts)]
    assert found == [start.at for start in generation_starts(reversed(facts))]
    return found


def test_epochs_that_rise_are_of_one_cluster() -> None:
    assert starts(elected(1, 1), elected(2, 2), elected(3, 2), elected(4, 7)) == []


def test_the_first_epoch_after_a_higher_one_is_of_another_cluster() -> None:
    assert starts(elected(1, 1), elected(2, 2), elected(3, 1), elected(4, 2), elected(5, 1)) == [3, 5]


def test_a_lower_epoch_that_is_not_the_first_is_a_clock_that_lags() -> None:
    assert starts(elected(1, 1), elected(2, 3), elected(3, 2)) == []


def test_a_first_epoch_that_two_sources_show_is_one_election() -> None:
    assert starts(elected(1, 1), elected(2, 2), elected(3, 1), elected(4, 1)) == [3]


def test_an_id_never_stated_before_is_of_another_cluster() -> None:
    assert starts(stated(1, "A"), stated(2, "A"), stated(3, "B"), stated(4, "A"), stated(5, "B")) == [3]


def test_an_id_that_a_broker_comes_back_to_is_of_another_cluster() -> None:
    assert starts(*(stated(at, name, 1) for at, name in enumerate("AABBA", 1))) == [3, 5]
    # each recreation once, whoever states it
    both = [stated(10 * at + broker, name, broker) for at, name in enumerate("ABA") for broker in (1, 2)]
    assert starts(*both) == [11, 21]


def test_a_broker_whose_clock_lags_does_not_bring_an_id_back() -> None:
    assert starts(stated(1, "A", 1), stated(2, "A", 2), stated(3, "B", 1), stated(4, "A", 2), stated(5, "B", 2)) == [3]


def test_a_recreation_that_shows_both_ways_is_one() -> None:
    before = (stated(1, "A"), elected(2, 1), elected(3, 2))
    assert starts(*before, stated(10, "B"), elected(11, 1), stated(12, "B")) == [10]
    assert starts(*before, elected(10, 1), stated(11, "B"), stated(12, "B")) == [10]


def test_what_is_first_stated_later_begins_nothing() -> None:
    assert starts(elected(1, 1), elected(2, 2), stated(3, "A")) == []
