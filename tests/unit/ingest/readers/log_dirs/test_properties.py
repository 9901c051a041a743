"""Properties files as Java reads them; secrets stay where they are."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ingest.readers.lines import MAX_RECORD_BYTES
from ingest.readers.properties import read
from ingest.readers.secrets import HIDDEN
from ingest.readers.work import WorkItem
from tests.support.captures.packed import Unpacker
from tests.unit.ingest.readers.log_dirs.log_files import blocks, item, kept, rejected

SERVER = item("server_properties")
META = item("meta_properties")


def read_all(data: bytes, where: WorkItem = SERVER) -> tuple[dict[str, str], list[tuple[int, str]]]:
    rows = list(read(where, [data]))
    return {row["config_key"]: row["config_value"] for row in kept(rows)}, rejected(rows)


def test_secrets_are_hidden_and_lines_joined() -> None:
    assert read_all(
        b"# comment\n\nbroker.id=3\nlog.dirs = /a,\\\n   /b\nssl.keystore.password=geheim\nssl.keystore.type=JKS\n"
        b'listener.name.x.sasl.jaas.config=org.x password="p";\nzookeeper.connect: a:2181/kafka\nsasl.url=http://u:pw@h/\n'
    ) == (
        {
            "broker.id": "3",
            "log.dirs": "/a,/b",
            "ssl.keystore.password": HIDDEN,
            "ssl.keystore.type": "JKS",
            "listener.name.x.sasl.jaas.config": HIDDEN,
            "zookeeper.connect": "a:2181/kafka",
            "sasl.url": f"http://u:{HIDDEN}@h/",
        },
        [],
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("key=value", ("key", "value")),
        ("  key = value ", ("key", "value ")),
        ("key:value", ("key", "value")),
        ("key value", ("key", "value")),
        ("key = = value", ("key", "= value")),
        ("key", ("key", "")),
        ("key=", ("key", "")),
        (r"a\ b\=c\:d=e", ("a b=c:d", "e")),
        (r"key=a\tb\nc\\d\z", ("key", "a\tb\nc\\dz")),
        (r"key=\u00e4\u0041", ("key", "äA")),
        (r"key=\ud83d\ude00", ("key", "😀")),
        (r"key=\ud83d", ("key", "\ufffd")),
        (r"key=C:\\data", ("key", "C:\\data")),
        ("key=a\\\n  b\\\n\tc", ("key", "abc")),
        ("key=a\\\r\n  b", ("key", "ab")),
        ("key=a\\\n# no comment", ("key", "a# no comment")),
        ("key=a\\\\", ("key", "a\\")),
        ("key=a\\", ("key", "a")),
        ("key=a#b!c", ("key", "a#b!c")),
        ("key=ä", ("key", "ä")),
    ],
)
def test_a_property_as_java_reads_it(text: str, expected: tuple[str, str]) -> None:
    assert read_all(text.encode()) == (dict([expected]), [])


def test_a_blank_after_the_backslash_ends_the_continuation() -> None:
    assert read_all(b"a=1\\ \nb=2\n")[0] == {"a": "1 ", "b": "2"}


def test_a_blank_line_ends_a_continuation() -> None:
    assert read_all(b"a=1\\\n\nb=2\n")[0] == {"a": "1", "b": "2"}


def test_latin_1_is_what_java_reads_where_it_is_no_utf_8() -> None:
    assert read_all(b"key=\xe4\n")[0] == {"key": "ä"}


def test_comments_and_blank_lines_are_no_records() -> None:
    assert read_all(b"#a=1\n  ! b=2\n \t\n\r\n") == ({}, [])


def test_of_a_key_set_twice_the_later_value_counts() -> None:
    assert read_all(b"a=1\nb=2\na=3\na=4\n") == (
        {"b": "2", "a": "4"},
        [
            (1, "a is set again on line 3: of two the later counts"),
            (3, "a is set again on line 4: of two the later counts"),
        ],
    )


def test_what_java_refuses_or_no_property_can_be() -> None:
    good, bad = read_all(b"a=\\u12x4\n=value\nb=2\n\0\0\0\0\n")
    assert good == {"b": "2"}
    assert [line for line, _ in bad] == [1, 2, 4]


@pytest.mark.parametrize(
    "text",
    [
        "ssl.key.password=geheim",
        "SSL.TRUSTSTORE.PASSWORD=geheim",
        "password.encoder.secret=geheim",
        "sasl.oauthbearer.client.secret=geheim",
        "delegation.token.master.key=geheim",
        "ssl.keystore.key=-----BEGIN geheim",
        "ssl.keystore.certificate.chain=geheim",
        "listener.name.a.scram-sha-256.sasl.jaas.config=geheim",
        r"sasl.jaas\.config=geheim",
        "aws.secret.access.key=geheim",
        'my.own.login=org.x.Login required username="a" password="geheim";',
        "metrics.reporter.options=user=a,api_key=geheim",
        "proxy=http://user:geheim@host:80/",
        "ssl.keystore.password=a\\\n  geheim",
        "ssl.keystore.password=geheim\nssl.keystore.password=geheim",
        "ssl.keystore.password=geheim\\u12",
    ],
)
def test_no_secret_leaves_the_file(text: str) -> None:
    for row in read(SERVER, [text.encode()]):
        if hasattr(row, "values"):
            assert "geheim" not in str(row.values)
        else:
            assert b"geheim" not in row.place.data
            assert "geheim" not in row.reason


@pytest.mark.parametrize(
    "text",
    [
        "ssl.keystore.location=/etc/kafka/ks.jks",
        "ssl.keystore.type=PKCS12",
        "delegation.token.expiry.time.ms=86400000",
        "password.encoder.iterations=4096",
        "unclean.leader.election.enable=true",
    ],
)
def test_what_only_sounds_like_a_secret_is_kept(text: str) -> None:
    key, _, value = text.partition("=")
    assert read_all(text.encode())[0] == {key: value}


def test_meta_properties_of_both_versions() -> None:
    data = b"#\n#Sat Nov 21 05:22:07 UTC 2026\ncluster.id=x_-1\nversion=0\nbroker.id=3\n"
    assert read_all(data, META) == ({"cluster.id": "x_-1", "version": "0", "broker.id": "3"}, [])
    data = b"node.id=3\nversion=1\ncluster.id=x\ndirectory.id=JsnDDNVyTL289kYk6sPzig\n"
    good, bad = read_all(data, META)
    assert good["directory.id"] == "JsnDDNVyTL289kYk6sPzig"
    assert bad == []


def test_meta_properties_that_kafka_cannot_read() -> None:
    assert read_all(b"version=2\nbroker.id=x\ncluster.id=c\n", META) == (
        {"cluster.id": "c"},
        [(1, "version '2' of meta.properties is not known: only 0 and 1 are"), (2, "broker.id is not a number: 'x'")],
    )


def test_a_property_that_is_too_long_is_rejected_without_its_text() -> None:
    parts = (b"a=1\nb=", *(b"x" * (1 << 20) for _ in range(9)), b"\nc=3\n")
    rows = list(read(SERVER, parts))
    assert [row["config_key"] for row in kept(rows)] == ["a", "c"]
    (row,) = (row for row in rows if hasattr(row, "reason"))
    assert (row.place.line, row.place.length, row.place.data) == (2, 2 + (9 << 20) + 1, b"")
    continued = (b"a=1\nb=", *(b"x" * (1 << 20) + b"\\\n" for _ in range(9)), b"\nc=3\n")
    rows = list(read(SERVER, continued))
    assert [row["config_key"] for row in kept(rows)] == ["a", "c"]
    assert MAX_RECORD_BYTES < 9 << 20


def test_what_real_brokers_are_configured_with(unpacked: Unpacker) -> None:
    for name in ("lifecycle-0.8.2.2", "lifecycle-1.1.1", "lifecycle-3.9.1"):
        folder = unpacked(name)
        for path in sorted(folder.glob("broker-*/*.properties")):
            where = META if path.name == "meta.properties" else SERVER
            good, bad = read_all(path.read_bytes(), where)
            assert "broker.id" in good
            assert bad == []


@settings(max_examples=200, deadline=None)
@given(
    data=st.one_of(
        st.binary(max_size=100),
        st.text(alphabet="ab=: \\\n\r#!u00", max_size=60).map(str.encode),
    ),
    block=st.integers(1, 30),
)
@example(data=b"\\\n\\\n", block=1)
@example(data=b"a=\\", block=1)
def test_any_bytes_are_read_and_what_gives_no_record_is_blank_or_comment(data: bytes, block: int) -> None:
    rows = list(read(SERVER, blocks(data, block)))
    assert rows == list(read(SERVER, [data]))
    end = 0
    for row in rows:
        between = data[end : row.place.offset]
        assert all(not line.strip() or line.strip()[:1] in b"#!" for line in between.split(b"\n"))
        assert row.place.offset >= end
        end = row.place.offset + row.place.length
    keys = [row["config_key"] for row in kept(rows)]
    assert len(keys) == len(set(keys))
    for row in kept(rows):
        row["config_value"].encode("utf-8")
