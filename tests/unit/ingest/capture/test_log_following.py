"""Logs that grow, are rolled, cut and deleted: their copies hold every byte once."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from ingest.capture.machine.log_following import Followed, LogFollower

SECOND = 1_000_000_000


class Logs:
    """A folder of logs and the folder of their copies, with a clock of its own."""

    def __init__(self, path: Path) -> None:
        self.source, self.target = path / "logs", path / "copies"
        self.source.mkdir()
        self.now_ns = 1_795_231_546_000 * 1_000_000
        self.follower = LogFollower(str(self.source), self.target)

    def write(self, name: str, text: str) -> None:
        with open(self.source / name, "a") as file:
            file.write(text)
        os.utime(self.source / name, ns=(self.now_ns, self.now_ns))

    def follow(self) -> Followed:
        self.now_ns += SECOND
        return self.follower.follow(self.now_ns)

    def restart(self) -> None:
        self.follower.close()
        self.follower = LogFollower(str(self.source), self.target)

    def copies(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in sorted(self.target.glob("*"))}


@pytest.fixture
def logs(tmp_path: Path) -> Logs:
    return Logs(tmp_path)


def test_what_a_log_grows_by_is_taken_in_whole_lines(logs):
    logs.write("server.log", "one\ntwo\nthr")
    assert logs.follow().byte_count == 8
    logs.write("server.log", "ee\n")
    logs.follow()
    assert logs.copies() == {"server.log": "one\ntwo\nthree\n"}


def test_a_log_that_is_rolled_is_read_to_its_end_and_the_next_one_has_its_own_copy(logs):
    logs.write("server.log", "one\n")
    logs.follow()
    logs.write("server.log", "two\n")
    (logs.source / "server.log").rename(logs.source / "server.log.2026-11-21-03")
    logs.write("server.log", "three\n")
    logs.follow()
    assert logs.copies() == {"server.log": "one\ntwo\n", "server.2.log": "three\n"}


def test_two_logs_rolled_between_two_rounds_are_both_taken(logs):
    logs.write("server.log", "one\n")
    logs.follow()
    logs.write("server.log", "two\n")
    (logs.source / "server.log").rename(logs.source / "server.log.2")
    logs.write("server.log.1", "three\n")
    logs.write("server.log", "four\n")
    logs.follow()
    assert sorted(logs.copies().values()) == ["four\n", "one\ntwo\n", "three\n"]


def test_a_log_that_is_deleted_at_once_was_open(logs):
    logs.write("server.log", "one\n")
    logs.follow()
    logs.write("server.log", "two\nlast words")
    (logs.source / "server.log").unlink()
    logs.write("server.log", "three\n")
    logs.follow()
    assert logs.copies() == {"server.log": "one\ntwo\nlast words", "server.2.log": "three\n"}


def test_a_log_that_is_copied_and_cut_is_taken_once(logs):
    logs.write("server.log", "one\ntwo\n")
    logs.follow()
    logs.write("server.log", "three\n")
    logs.write("server.log.1", (logs.source / "server.log").read_text())
    os.truncate(logs.source / "server.log", 0)
    logs.follow()
    logs.write("server.log", "four\n")
    logs.follow()
    assert logs.copies() == {"server.log": "one\ntwo\nthree\n", "server.2.log": "four\n"}


def test_a_cut_log_is_said(logs):
    logs.write("server.log", "one\ntwo\n")
    logs.follow()
    os.truncate(logs.source / "server.log", 0)
    logs.write("server.log", "three\n")
    assert [name for name, _ in logs.follow().lost] == ["server.log"]


def test_logs_that_were_rolled_before_are_left(logs):
    logs.write("server.log.1", "old\n")
    logs.write("server.log", "new\n")
    logs.follow()
    assert logs.copies() == {"server.log": "new\n"}


@pytest.mark.parametrize("name", ["kafkaServer-gc.log", "kafka-request.log", "server.log.1.gz", "kafkaServer.out"])
def test_what_is_no_log_of_kafka_s_decisions_is_left(logs, name):
    logs.write(name, "something\n")
    logs.follow()
    assert logs.copies() == {}


def test_a_capturer_that_was_killed_goes_on_where_its_copy_ends(logs):
    logs.write("server.log", "one\n")
    logs.follow()
    logs.restart()
    logs.write("server.log", "two\n")
    with open(logs.target / "server.log", "a") as file:
        file.write("tw")  # as a kill leaves it
    assert logs.follow().lost == []
    assert logs.copies() == {"server.log": "one\ntwo\n"}


def test_a_log_that_was_rolled_while_no_capture_ran_is_read_to_its_end(logs):
    logs.write("server.log", "one\n")
    logs.follow()
    logs.write("server.log", "two\n")
    (logs.source / "server.log").rename(logs.source / "server.log.1")
    logs.write("server.log", "three\n")
    logs.restart()
    logs.now_ns += 3600 * SECOND
    assert logs.follow().lost == []
    logs.now_ns += 3600 * SECOND
    logs.follow()
    assert logs.copies() == {"server.log": "one\ntwo\n", "server.2.log": "three\n"}


def test_a_log_that_is_gone_after_a_restart_is_said(logs):
    logs.write("server.log", "one\n")
    logs.follow()
    (logs.source / "server.log").unlink()
    logs.write("server.log", "other\n")
    logs.restart()
    ((name, reason),) = logs.follow().lost
    assert name == "server.log"
    assert "no log here goes on where server.log ends" in reason
    assert logs.copies() == {"server.log": "one\n", "server.2.log": "other\n"}


def test_a_folder_that_is_not_there_raises(logs):
    logs.source.rename(logs.source.with_name("away"))
    with pytest.raises(FileNotFoundError):
        logs.follow()


@pytest.mark.parametrize("seed", range(20))
def test_whatever_happens_to_a_log_its_copies_hold_each_line_once(logs, seed):
    chance = random.Random(seed)
    written: list[str] = []
    rolled = 0
    logs.write("server.log", "begin\n")
    logs.follow()
    for _ in range(60):
        match chance.choice(["write", "write", "write", "roll", "follow", "follow", "restart"]):
            case "write":
                line = f"line {len(written)} {'x' * chance.randrange(6000)}\n"
                written.append(line)
                logs.write("server.log", line)
            case "roll" if (logs.source / "server.log").exists():
                rolled += 1
                (logs.source / "server.log").rename(logs.source / f"server.log.2026-11-21-{rolled:02}")
            case "follow":
                logs.follow()
            case "restart":
                logs.restart()
    logs.follow()
    copied = "".join(logs.copies().values())
    assert sorted(copied.splitlines()) == sorted(["begin", *(line.rstrip("\n") for line in written)])
