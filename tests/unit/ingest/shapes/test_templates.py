"""The template of an unrecognised message: stable, idempotent, the same for messages that differ in values only."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.shapes import SHAPES
from ingest.shapes.templates import MAX_TEMPLATE_LENGTH, normalised_template


@pytest.mark.parametrize(
    ("messages", "template"),
    [
        (
            ["Awaiting socket connections on 10.0.0.2:9092.", "Awaiting socket connections on 127.0.0.1:19093."],
            "Awaiting socket connections on <host>.",
        ),
        (
            ["Removed 5 expired offsets in 12 milliseconds.", "Removed 0 expired offsets in 3 milliseconds."],
            "Removed N expired offsets in N milliseconds.",
        ),
        (
            ["failed for partition [orders,4] at -1", "failed for partition [a-b.c_1,0] at 77"],
            "failed for partition <partition> at N",
        ),
        (["partition orders-4 is gone", "partition a-1.b_2-3-0 is gone"], "partition <partition> is gone"),
        (["Deleted /var/lib/kafka/data/x.log now", "Deleted C:\\kafka\\data\\y.log now"], "Deleted <path> now"),
        (["unknown topic 'orders' here", "unknown topic 'a b' here"], "unknown topic <text> here"),
        (
            ["client (clientId=probe, topic=orders)", "client (clientId=other-7, topic=x)"],
            "client (clientId=<name>, topic=<name>)",
        ),
        (['{"clientId":"probe","size":5}', '{"clientId":"a","size":17}'], '{"clientId":<text>,"size":N}'),
        (["commit b0a1c2ff00d1", "commit 1234567890abcdef"], "commit <id>"),
        (
            [
                "id l4Sg4IrvRXSzJUeejx637Q of 9b2ff3ea-2f32-4d7f-8f3a-f5ef27b9f2a0",
                "id Fk3SYnmFQoGlW6AtDmbJzw of 00000000-0000-4000-8000-000000000001",
            ],
            "id <id> of <id>",
        ),
        (["brokers Set(1, 2, 3)", "brokers Set(7)"], "brokers Set(N)"),
        (["Map(t-0 -> 5, t-1 -> 6) read", "Map(x-2 -> 5) read"], "Map(<partition> -> N) read"),
        (["session 0x15a3f timed out", "session 0x2 timed out"], "session N timed out"),
        (["[ReplicaFetcherThread-0-2]: late", "[ReplicaFetcherThread-1-3]: late"], "[ReplicaFetcherThread-N-N]: late"),
        (["a\n  b", "a b"], "a b"),
        (["took 2.5 s.", "took 10.25 s."], "took N s."),
    ],
)
def test_messages_that_differ_in_values_have_one_template(messages: list[str], template: str) -> None:
    assert [normalised_template(message) for message in messages] == [template] * len(messages)


def test_a_list_longer_than_what_is_looked_at_is_one_value() -> None:
    lists = [
        ", ".join(f"{topic}-{number} -> {number}" for number in range(count))
        for topic, count in (("orders", 1000), ("a.b", 5000))
    ]
    templates = {normalised_template(f"Adding Map({partitions}) to the purgatory") for partitions in lists}
    assert templates == {"Adding Map(<partition> -> N"}


def test_what_is_no_value_stays() -> None:
    assert normalised_template("Broker doesn't host it, can't say") == "Broker doesn't host it, can't say"
    assert normalised_template("log4j is loaded") != normalised_template("http is loaded")


SOME_TEXT = st.one_of(
    st.text(max_size=400),
    st.text(alphabet="aB1-.,:/'\"[]()=<>N x{}\\_", max_size=400),
    st.lists(st.sampled_from(["N", "<host>", "t-0", "a,1", " -> ", ", ", "'", '"', "/a", "[t,0]", "x=", "topic="])).map(
        "".join
    ),
)


@given(SOME_TEXT)
def test_the_template_of_a_template_is_itself(text: str) -> None:
    template = normalised_template(text)
    assert len(template) <= MAX_TEMPLATE_LENGTH
    assert normalised_template(template) == template


@given(st.sampled_from([sample for shape in SHAPES for sample in shape.samples if len(sample) < 150]), st.data())
def test_numbers_do_not_matter(sample: str, data: st.DataObject) -> None:
    numbers = st.integers(1, 99_999).map(str)
    texts = ["".join(_with_numbers(sample, data.draw(st.lists(numbers, min_size=8, max_size=8)))) for _ in range(2)]
    assert normalised_template(texts[0]) == normalised_template(texts[1])


def _with_numbers(sample: str, numbers: list[str]) -> list[str]:
    """The words of a sample, each followed by a number."""
    return [
        f"{word} {numbers[index % len(numbers)]} " if word.isalpha() else f"{word} "
        for index, word in enumerate(sample.split(" "))
    ]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("filling", ["a", "1", "a-", "/a", "'", '"', "a1.", "-1,", "<a>, ", "N -> N, ", "[", "="])
def test_a_message_of_a_megabyte_takes_no_longer_than_its_length(filling: str) -> None:
    assert len(normalised_template(filling * (1_000_000 // len(filling)))) <= MAX_TEMPLATE_LENGTH
