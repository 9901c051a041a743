"""When a process started, by the lines of its steps."""

from __future__ import annotations

from reconstruct.cluster.brokers import StartStep, process_starts

CONTROLLER, LEAVES, BROKER = StartStep


def test_the_steps_of_one_process_are_one_start() -> None:
    assert process_starts([(3, 12, BROKER, "c"), (3, 11, LEAVES, "b"), (3, 5, CONTROLLER, "a")]) == [(3, 5, "a")]


def test_a_step_that_comes_again_is_of_another_process() -> None:
    lines = [(3, 5, CONTROLLER, "a"), (3, 12, BROKER, "b"), (3, 20, CONTROLLER, "c"), (3, 24, CONTROLLER, "d")]
    assert process_starts([*lines, (3, 28, BROKER, "e")]) == [(3, 5, "a"), (3, 20, "c"), (3, 24, "d")]


def test_a_broker_of_zookeeper_tells_one_step_each_time() -> None:
    assert process_starts([(1, 5, BROKER, "a"), (2, 6, BROKER, "b"), (1, 9, BROKER, "c")]) == [
        (1, 5, "a"),
        (1, 9, "c"),
        (2, 6, "b"),
    ]
