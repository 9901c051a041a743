"""Checkpoints: copied when they change, and once more in the round after."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingest.capture.machine.agent import masked
from ingest.capture.machine.checkpoint_copies import CheckpointCopies, labels
from ingest.readers.log_dirs import checkpoints
from ingest.readers.work import Kept, WorkItem

NAME = "replication-offset-checkpoint"


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    made = tmp_path / "data"
    made.mkdir()
    return made


def replace(path: Path, text: str) -> None:
    """As Kafka writes a checkpoint: beside the old one, and renamed over it."""
    path.with_suffix(".tmp").write_text(text)
    path.with_suffix(".tmp").replace(path)


def test_a_checkpoint_is_copied_when_it_changes_and_once_more(log_dir):
    copied: dict[str, bytes] = {}
    copies = CheckpointCopies(3, str(log_dir), copied.__setitem__)
    replace(log_dir / NAME, "0\n1\nt 0 5\n")
    for round_ms in (1000, 2000, 3000):
        copies.copy(lambda at=round_ms: at)
    replace(log_dir / NAME, "0\n1\nt 0 6\n")
    for round_ms in (4000, 5000, 6000):
        copies.copy(lambda at=round_ms: at)
    assert copied == {
        f"broker-3/checkpoints/{NAME}/1000": b"0\n1\nt 0 5\n",
        f"broker-3/checkpoints/{NAME}/2000": b"0\n1\nt 0 5\n",
        f"broker-3/checkpoints/{NAME}/4000": b"0\n1\nt 0 6\n",
        f"broker-3/checkpoints/{NAME}/5000": b"0\n1\nt 0 6\n",
    }


def test_a_checkpoint_that_is_written_again_unchanged_is_copied(log_dir):
    copied: dict[str, bytes] = {}
    copies = CheckpointCopies(3, str(log_dir), copied.__setitem__)
    for round_ms in (1000, 2000, 3000):
        replace(log_dir / NAME, "0\n0\n")
        copies.copy(lambda at=round_ms: at)
    assert len(copied) == 3


def test_when_one_changes_all_are_copied_so_that_one_that_is_missing_is_known(log_dir):
    """A file that is not among the copies of a round was not there: nothing else may leave it out."""
    copied: dict[str, bytes] = {}
    copies = CheckpointCopies(3, str(log_dir), copied.__setitem__)
    for round_ms in (1000, 2000, 3000, 4000):
        if round_ms == 1000:
            replace(log_dir / "recovery-point-offset-checkpoint", "0\n0\n")
        if round_ms == 4000:
            (log_dir / "recovery-point-offset-checkpoint").unlink()
        replace(log_dir / NAME, f"0\n1\nt 0 {round_ms}\n")
        copies.copy(lambda at=round_ms: at)
    kept = [name.removeprefix("broker-3/checkpoints/") for name in copied]
    assert [name.split("/")[1] for name in kept if name.startswith("recovery")] == ["1000", "2000", "3000"]
    assert [name.split("/")[1] for name in kept if name.startswith(NAME)] == ["1000", "2000", "3000", "4000"]


def test_an_empty_checkpoint_is_copied_and_one_that_is_not_there_is_not(log_dir):
    copied: dict[str, bytes] = {}
    (log_dir / NAME).touch()
    assert CheckpointCopies(1, str(log_dir), copied.__setitem__).copy(lambda: 1000) == 1
    assert copied == {f"broker-1/checkpoints/{NAME}/1000": b""}


def test_a_log_directory_that_is_lost_raises(log_dir):
    copies = CheckpointCopies(1, str(log_dir), lambda path, content: None)
    log_dir.rmdir()
    with pytest.raises(FileNotFoundError):
        copies.copy(lambda: 1000)


def test_several_log_directories_have_names_of_their_own():
    assert labels(("/a/data",)) == {"": "/a/data"}
    assert labels(("/a/data", "/b/data/", "/c")) == {"data": "/a/data", "data-2": "/b/data/", "c": "/c"}


def test_leader_epochs_are_copied_by_partition_and_again_when_they_change(log_dir):
    copied: dict[str, bytes] = {}
    copies = CheckpointCopies(2, str(log_dir), copied.__setitem__)
    for name in ("orders-0", "a.b-c-10", "orders-0.5f9b-delete", "plain"):
        (log_dir / name).mkdir()
        (log_dir / name / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    assert copies.copy_epochs() == 2
    assert sorted(copied) == [
        "broker-2/leader-epoch-checkpoint/a.b-c-10",
        "broker-2/leader-epoch-checkpoint/orders-0",
    ]
    assert copies.copy_epochs() == 0
    replace(log_dir / "orders-0/leader-epoch-checkpoint", "0\n2\n0 0\n1 7\n")
    assert copies.copy_epochs() == 1


def test_the_ingest_reads_what_is_copied(log_dir, tmp_path):
    def write(path: str, content: bytes) -> None:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content)

    replace(log_dir / NAME, "0\n1\norders 0 12\n")
    CheckpointCopies(1, str(log_dir), write).copy(lambda: 1795231546593)
    content = (tmp_path / f"broker-1/checkpoints/{NAME}/1795231546593").read_bytes()
    item = WorkItem("", None, "", "replication_offset_checkpoint", "c", 1, "f", "f", len(content))
    (row,) = (row for row in checkpoints.read(item, [content]) if isinstance(row, Kept))
    assert (row.values["topic"], row.values["offset"]) == ("orders", 12)


def test_no_password_leaves_its_machine():
    properties = (
        b"# password=hunter2\nbroker.id=1\nssl.keystore.password=hunter2\nlistener.name.x.plain.sasl.jaas.config=a\\\n"
        b"  password=hunter2\nlog.dirs=/a,\\\n  /b\nhttp.proxy=http://u:hunter2@h:2181\nlog.dir=C\\:\\\\x\n"
    )
    shown = masked(properties)
    assert b"hunter2" not in shown
    assert shown.splitlines()[0] == b"broker.id=1"
    assert b"ssl.keystore.password=[hidden]" in shown
    assert b"log.dirs=/a,/b" in shown
    assert b"log.dir=C:\\\\x" in shown
