"""How often a cluster was created again in the same folders."""

from __future__ import annotations

from reconstruct.cluster.generations import GenerationFact, generation_starts


def elected(at: int, epoch: int) -> GenerationFact:
    return GenerationFact(at, f"e{at}", controller_epoch=epoch)


def led(at: int, broker_id: int, epoch: int, log_file: str = "logs/a", *, is_act: bool = True) -> GenerationFact:
    """An epoch that a broker's log shows, ``at`` in minutes."""
    return GenerationFact(at * 60_000_000, f"l{at}", epoch, None, broker_id, is_act, log_file)


def started(at: int, broker_id: int | None, log_file: str = "logs/s") -> GenerationFact:
    return GenerationFact(at * 60_000_000, f"s{at}", broker_id=broker_id, log_file=log_file)


def minutes(*facts: GenerationFact) -> list[int]:
    return [at // 60_000_000 for at in starts(*facts)]


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


def test_an_epoch_that_falls_in_the_logs_of_one_folder_is_of_another_cluster() -> None:
    # also where hourly logs lack the first election
    assert minutes(led(1, 0, 22), led(2, 0, 23), led(60, 0, 2), led(90, 1, 3), led(120, 1, 2)) == [60, 120]
    assert minutes(led(1, 0, 4), led(60, 1, 3)) == [60], "a broker that never was controller in that epoch"
    assert minutes(led(1, 0, 4), led(60, 1, 4)) == [60], "nor the one that was"
    assert minutes(led(1, 0, 4), led(60, 0, 4)) == [], "its controller goes on"
    assert minutes(led(1, 0, 4), led(60, 0, 5), led(61, 1, 3)) == [61], "though the epoch rose just now"
    assert minutes(led(60, 0, 4), led(60, 0, 5), led(61, 1, 3)) == [], "all within a minute"


def test_a_deposed_controller_goes_on_in_its_own_epoch() -> None:
    assert minutes(led(1, 1, 2), led(2, 0, 3), led(60, 1, 2)) == []
    assert minutes(led(1, 1, 2), led(2, 1, 4), led(60, 1, 2)) == [60], "but not once it has another"


def test_two_clusters_that_take_turns_in_one_folder_are_told_apart() -> None:
    other = led(1, 2, 7), led(5, 3, 1)
    assert minutes(*other, led(6, 2, 8), led(7, 3, 1), led(8, 3, 2), led(20, 2, 8), led(60, 2, 9)) == [5, 6, 7, 20]
    assert minutes(*other, led(6, 3, 8)) == [5], "its own controller, some elections later"
    assert minutes(*other, led(6, 2, 9)) == [5], "a controller of the new cluster, for what is known"
    assert minutes(led(1, 2, 1), led(5, 3, 1), led(6, 2, 2)) == [5], "the next one of the new cluster"
    assert minutes(led(1, 2, 7), led(5, 2, 1), led(6, 2, 8)) == [5], "of a broker that both clusters had"


def test_logs_of_two_folders_may_be_of_two_clocks() -> None:
    assert minutes(led(1, 0, 4, "broker-0/a"), led(60, 1, 3, "broker-1/a")) == []


def test_logs_whose_times_jump_back_show_no_order() -> None:
    set_back = GenerationFact(0, "", log_file="logs/b", is_set_back=True)
    assert minutes(led(60, 0, 5), led(70, 0, 2)) == [70]
    assert minutes(led(60, 0, 5), led(70, 0, 2), set_back) == []
    assert minutes(led(60, 0, 5, "other/a"), led(70, 0, 2, "other/a"), set_back) == [70]


def test_a_controller_that_starts_again_raises_the_epoch() -> None:
    assert minutes(led(1, 0, 1), started(50, 0), led(60, 0, 1)) == [50], "with its process another cluster began"
    assert minutes(led(1, 0, 1), started(50, 1), led(60, 0, 1)) == []
    assert minutes(led(1, 0, 1), started(50, 0), led(60, 0, 2), led(61, 0, 2)) == []


def test_another_cluster_began_after_the_longest_time_in_which_nothing_tells_of_either() -> None:
    before = (led(1, 0, 1), led(2, 2, 2), led(3, 2, 2))
    assert minutes(*before, led(90, 0, 1), led(91, 2, 2, is_act=False)) == [90]
    assert minutes(*before, led(4, 0, 1), led(91, 2, 2, is_act=False)) == [91]


def test_a_broker_is_elected_once_with_an_epoch() -> None:
    first = led(1, 0, 1, is_act=False)
    assert minutes(first, led(60, 0, 1, is_act=False)) == [60]
    assert minutes(first, started(59, None), led(60, 0, 1, is_act=False)) == [59]
    assert minutes(first, led(60, 1, 1, "other/a", is_act=False)) == []
