"""Listings of data directories, by the command that printed them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.readers.log_dirs.listings import read, recognise_listing
from ingest.readers.work import Kept
from tests.unit.ingest.readers.log_dirs.log_files import assert_tiled, blocks, item, kept, rejected

LOG = "00000000000000000000.log"
INDEX = "00000000000000000000.index"

LS_LR = f"""\
/var/lib/kafka:
total 24
drwxr-xr-x 2 kafka kafka 4096 Nov 21 09:12 orders-0
-rw-r--r-- 1 kafka kafka    8 Nov 21 09:12 recovery-point-offset-checkpoint

/var/lib/kafka/orders-0:
total 1052
-rw-r--r-- 1 kafka kafka 10485760 Nov 21 09:12 {INDEX}
-rw-r--r--. 1 kafka kafka     1234 Mar  3  2025 {LOG}
-rw-r--r-- 1 kafka kafka        8 Nov 21 09:12 leader-epoch-checkpoint

/var/lib/kafka/a.b_c-12:
total 0
-rw-r--r-- 1 1000 1000 0 Nov 21 09:12 {LOG}
"""
FULL_ISO = f"""\
./orders-0:
total 8
drwxr-xr-x 2 1000 1000 4096 2026-11-21 09:12:33.123456789 +0100 .
-rw-r--r-- 1 1000 1000 1234 2026-11-21 09:12:33.123456789 +0100 {LOG}
"""
MICROS = 1_795_248_753_123_456


def rows_of(text: str, **known: Any) -> list[Any]:
    data = text.encode()
    rows = list(read(item("directory_listing", **known), blocks(data, 37)))
    assert_tiled(rows, len(data))
    return rows


def files(text: str, **known: Any) -> list[tuple[Any, ...]]:
    names = ("directory", "file_name", "size_bytes", "modified_at")
    return [tuple(row[name] for name in names) for row in kept(rows_of(text, **known))]


def test_a_recursive_ls_names_the_directory_above_its_files() -> None:
    rows = rows_of(LS_LR)
    assert [(row["topic"], row["partition_id"], row["file_kind"], row["size_bytes"]) for row in kept(rows)][:2] == [
        ("orders", 0, "offset_index", 10485760),
        ("orders", 0, "log_segment", 1234),
    ]
    assert kept(rows)[-1]["directory"] == "a.b_c-12"
    assert {row["modified_at"] for row in kept(rows)} == {None}, "without a year, or without a time"
    assert {row["is_read"] for row in kept(rows)} == {False}
    assert rejected(rows) == []


def test_full_iso_says_the_instant() -> None:
    assert files(FULL_ISO) == [("orders-0", LOG, 1234, MICROS)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (f"-rw-r--r-- 1 k k 5 2026-11-21 09:12 /d/o-1/{LOG}", ("o-1", LOG, 5, 1_795_252_320_000_000)),
        (f"-rw-r--r-- 1 k k 5 1795248753 /d/o-1/{LOG}", ("o-1", LOG, 5, 1_795_248_753_000_000)),
        (f"-rw-r--r-- 1 1000 1000 1073741824 Nov 21 09:12 o-1/{LOG}", ("o-1", LOG, 1073741824, None)),
        (f"-rw-r--r-- 1 1000 1073741824 Nov 21 09:12 o-1/{LOG}", ("o-1", LOG, 1073741824, None)),
        (f"-rw-r--r-- 1 1073741824 Nov 21 09:12 o-1/{LOG}", ("o-1", LOG, 1073741824, None)),
        (f"-rw-r--r-- 1 k k 1.0G 21. Nov 09:12 o-1/{LOG}", ("o-1", LOG, None, None)),
        (f"-rw-r--r-- 1 k k 5 11-21 09:12 o-1/{LOG}", ("o-1", LOG, 5, None)),
        (
            f"  1573 4 -rw-r--r--   1 kafka    kafka        1234 Nov 21 09:12 /d/o-1/{LOG}",
            ("o-1", LOG, 1234, None),
        ),
        (f"1234 1795248753.1234567890 /d/o-1/{LOG}", ("o-1", LOG, 1234, MICROS)),
        (f"/d/o-1/{LOG}\t1234\t1795248753.1234567890", ("o-1", LOG, 1234, MICROS)),
        (f"1795248753.1234567890 /d/o-1/{LOG}", ("o-1", LOG, None, MICROS)),
        (f"1235\t/d/o-1/{LOG}", ("o-1", LOG, 1235, None)),
        (f"1235 ./o-1/{LOG}", ("o-1", LOG, 1235, None)),
        (f"/d/o-1/{LOG}", ("o-1", LOG, None, None)),
        (f"./a.b-c-1/{LOG}.deleted", ("a.b-c-1", f"{LOG}.deleted", None, None)),
    ],
)
def test_one_line_of_each_dialect(line: str, expected: tuple[Any, ...]) -> None:
    assert files(line + "\n", time_zone="UTC") == [expected]
    assert files(line) == [expected], "a last line without a line end"


def test_times_without_a_zone_are_in_the_brokers() -> None:
    line = f"-rw-r--r-- 1 k k 5 2026-11-21 09:12:33.123456789 o-1/{LOG}\n"
    assert files(line, time_zone="+01:00") == [("o-1", LOG, 5, MICROS)]


def test_du_in_blocks_says_no_size() -> None:
    assert files(f"4\t/d/o-1/{LOG}\n10240\t/d/o-1/{INDEX}\n10248\t/d/o-1\n") == [
        ("o-1", LOG, None, None),
        ("o-1", INDEX, None, None),
    ]
    assert files(f"4\t/d/o-1/{LOG}\n10485756\t/d/o-1/{INDEX}\n43\t/d/o-1/partition.metadata\n")[0][2] == 4


def test_names_below_a_header_are_of_its_directory() -> None:
    assert files(f"./o-1:\n{INDEX}\n{LOG}\n\n./o-2:\n{LOG}\n") == [
        ("o-1", INDEX, None, None),
        ("o-1", LOG, None, None),
        ("o-2", LOG, None, None),
    ]


def test_a_listing_of_one_directory_is_of_the_item_it_lies_in() -> None:
    text = f"total 4\n-rw-r--r-- 1 k k 5 Nov 21 09:12 {LOG}\n"
    assert files(text, directory="o-1") == [("o-1", LOG, 5, None)]
    ((line, reason),) = rejected(rows_of(text))
    assert line == 1
    assert reason == "nothing in the listing says which partition's file it is: list it with its path"


def test_directories_links_and_other_files_hold_nothing() -> None:
    text = f"""\
total 4
drwxr-xr-x 2 k k 4096 Nov 21 09:12 /d/o-1
lrwxrwxrwx 1 k k 5 Nov 21 09:12 /d/o-1/{INDEX} -> /e/{INDEX}
-rw-r--r-- 1 k k 5 Nov 21 09:12 /d/meta.properties
-rw-r--r-- 1 k k 5 Nov 21 09:12 /d/o-1/{LOG}
-rw-r--r-- 1 k k 5 Nov 21 09:12 /d/o-1/{LOG}.bak
"""
    assert files(text) == [("o-1", LOG, 5, None)]


def test_a_line_that_cannot_be_read_is_rejected_only_if_it_names_a_partitions_file() -> None:
    good = f"-rw-r--r-- 1 k k 5 Nov 21 09:12 /d/o-1/{LOG}\n"
    rows = rows_of(f"{good * 4}ls: cannot access '/d/o-2/{LOG}': Permission denied\n{good}-rw garbage\n{good * 20}")
    assert [line for line, _ in rejected(rows)] == [5]
    assert len(kept(rows)) == 25


def test_a_listing_of_nothing_of_interest_is_one_rejected_record() -> None:
    assert rejected(rows_of("total 0\ndrwxr-xr-x 2 k k 4096 Nov 21 09:12 logs\n")) == [
        (1, "a listing that names no file of a partition's directory")
    ]
    assert rows_of("") == []


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        (LS_LR, "ls"),
        (FULL_ISO, "ls"),
        (f"1234 1795248753.1 /d/o-1/{LOG}", "find_printf"),
        (f"1235\t/d/o-1/{LOG}", "du_bytes"),
        (f"4\t/d/o-1/{LOG}", "du_blocks"),
        (f"/d\n/d/o-1\n/d/o-1/{LOG}", "names"),
        ("/etc/passwd\n/etc/hosts", None),
        ("", None),
        (f"[2026-11-21 09:12:33,123] INFO Deleted log /d/o-1/{LOG}.deleted. (kafka.log.LogSegment)", None),
        (f"2026-11-21 09:12:33,123 INFO Deleted log segment /d/o-1/{LOG}", None),
        (f"1795248753 INFO Deleted log /d/o-1/{LOG}", None),
        ("0\n1\norders 0 12", None),
        (f"broker.id=1\nlog.dirs=/d/o-1/{LOG}", None),
    ],
)
def test_a_listing_is_recognised_by_its_lines(text: str, dialect: str | None) -> None:
    assert recognise_listing([line.encode() for line in text.split("\n")]) == dialect


@pytest.mark.parametrize(
    ("command", "says_time"),
    [
        ("ls -lR", False),
        ("ls -lan --time-style=full-iso orders-0 b.c-12", True),
        ("ls -l --full-time orders-0/* b.c-12/*", True),
        ("ls -gG orders-0/* b.c-12/*", False),
        ("ls -liR --time-style=+%s", True),
        ("find . -printf '%s %T@ %p\\n'", True),
        ("find . -type f -printf '%p\\t%s\\t%T@\\n'", True),
        ('find "$PWD" -ls', False),
        ("du -ab .", False),
    ],
)
def test_what_the_commands_of_this_machine_print(tmp_path: Path, command: str, says_time: bool) -> None:
    sizes = {("orders-0", LOG): 1235, ("orders-0", INDEX): 10485760, ("b.c-12", LOG): 0}
    for (directory, name), size in sizes.items():
        path = tmp_path / directory / name
        path.parent.mkdir(exist_ok=True)
        with path.open("wb") as file:
            file.truncate(size)
        os.utime(path, (1_795_248_753, 1_795_248_753))
    (tmp_path / "meta.properties").write_text("broker.id=1\n")
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C", "TZ": "UTC"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout
    assert recognise_listing([line.encode() for line in done.stdout.splitlines()]) is not None
    instant = 1_795_248_753_000_000 if says_time else None
    expected = {(directory, name, size, instant) for (directory, name), size in sizes.items()}
    assert set(files(done.stdout)) == expected


@settings(max_examples=150, deadline=None)
@given(
    texts=st.lists(
        st.one_of(
            st.sampled_from([*LS_LR.splitlines(), *FULL_ISO.splitlines(), f"1235\t/d/o-1/{LOG}", f"/d/o-1/{LOG}"]),
            st.text(max_size=30),
        ),
        max_size=15,
    )
)
def test_no_lines_are_lost_whatever_they_are(texts: list[str]) -> None:
    data = "\n".join(texts).encode("utf-8", "replace")
    rows = list(read(item("directory_listing"), blocks(data, 50)))
    if data:
        assert_tiled(rows, len(data))
    assert sum(isinstance(row, Kept) for row in rows) <= len(data.split(b"\n"))
