"""Names that no file of Kafka has."""

from __future__ import annotations

import pytest

from ingest.files.not_of_kafka import in_words, not_of_kafka


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("src/Main.java", ".java"),
        ("site/Dialog.CSS", ".css"),
        ("a/README", "readme"),
        ("x/.git/objects/aa/bb", ".git/"),
        ("node_modules/left/server.log", "node_modules/"),
        ("bin/kafka-log-dirs.sh", ".sh"),
        ("libs/kafka-log4j-appender-2.5.0.jar", ".jar"),
        ("a/server.log", None),
        ("a/server.log.html", None),
        ("a/kafka-broker.json", None),
        ("a/state-change.md", None),
        ("a/notes.txt", None),
        ("a/zoo.cfg", None),
        ("a/x", None),
    ],
)
def test_names(path: str, expected: str | None) -> None:
    assert not_of_kafka(path.split("/")) == expected


def test_counts_in_words() -> None:
    assert in_words({}) == ""
    assert in_words({".md": 2, ".java": 1200}) == ".java 1,200, .md 2"
    assert in_words(dict.fromkeys("abcdefg", 1)) == "a 1, b 1, c 1, d 1, e 1 and 2 more kinds"
