"""A session ends without waiting for what ends by itself."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from jobs.session.session import stop_session


@pytest.mark.timeout(30)
def test_the_server_of_accumulators_is_ended_and_not_waited_for():
    may_end, has_ended, stopped_with = threading.Event(), threading.Event(), []

    class Server:
        def shutdown(self):
            may_end.wait()
            has_ended.set()

    context = SimpleNamespace(_accumulatorServer=Server())
    # what pyspark's own stop waits for is what the context has by then
    stop_session(SimpleNamespace(sparkContext=context, stop=lambda: stopped_with.append(context._accumulatorServer)))
    assert stopped_with == [None]
    assert not has_ended.is_set()
    may_end.set()
    assert has_ended.wait(10)


def test_a_session_without_one_is_stopped_alike():
    stopped = []
    stop_session(SimpleNamespace(sparkContext=SimpleNamespace(), stop=lambda: stopped.append(True)))
    assert stopped == [True]


def test_pyspark_has_the_server_where_it_is_looked_for():
    from pyspark import SparkContext

    assert "_accumulatorServer" in SparkContext.stop.__code__.co_names
