"""What is left after an incident, in one folder: every kind of source, packed in every way, made from one capture.

The logs of the capture are dealt out, each part once, to a tarball with rotated logs, to what container runtimes
write, to another layout and to other line ends: whatever they are packed in, the records are those of the capture
(:func:`records_of`). Beside them stand files that are damaged, empty, copied, foreign or out of bounds.
:data:`EXPECTED` says what each file is. The same capture gives the same bytes.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import tarfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import zstandard

from ingest.readers.zookeeper.transaction_log import operations
from tests.oracles.znode_replay import new_tree
from tests.support.files import jute
from tests.support.files.wrapped_logs import RECORD, compose, docker_json, epoch_ms, kubernetes, log4j2_json
from tests.unit.ingest.readers.log_dirs import log_files

#: The capture that everything is made from, and its brokers.
CAPTURE: Final = "failover-3.9.1"
BROKERS: Final = (1, 2, 3)
#: Bytes of the line that no record may hold.
LONG_LINE_BYTES: Final = 20 << 20

_MEMBER_TIME: Final = (2026, 11, 21, 4, 0, 0)
_BINARY: Final = b"\0\x01\x02\x7fELF" + bytes(range(256)) * 8


class Expected(NamedTuple):
    """A file's row in ``bronze.ingested_files``: the columns of that name."""

    source_kind: str
    status: str = "ingested"
    broker_id: int | None = None
    layout: str | None = None
    compression: str = "none"


_TAR: Final = "brokers.tar.gz!"
_ZIP: Final = f"{_TAR}checkpoints.zip!"
#: What each file is, by its name below the folder.
EXPECTED: Final[Mapping[str, Expected]] = {
    f"{_TAR}../outside.log": Expected("unrecognised", "rejected", None, None, "tar.gz"),
    f"{_TAR}broker-1/logs/server.log": Expected("server_log", "ingested", 1, "bracketed", "tar.gz"),
    f"{_TAR}broker-1/logs/server.log.2026-11-21-03": Expected("server_log", "ingested", 1, "bracketed", "tar.gz"),
    f"{_TAR}broker-1/logs/state-change.log": Expected("state_change_log", "ingested", 1, "bracketed", "tar.gz"),
    f"{_TAR}broker-1/logs/state-change.log.1.zst": Expected("state_change_log", "ingested", 1, "bracketed", "tar.gz"),
    f"{_TAR}broker-2/logs/server.log": Expected("server_log", "ingested", 2, "bracketed", "tar.gz"),
    f"{_TAR}broker-2/logs/server.log.1.gz": Expected("server_log", "ingested", 2, "bracketed", "tar.gz"),
    f"{_TAR}broker-2/meta.properties": Expected("meta_properties", "ingested", 2, None, "tar.gz"),
    f"{_TAR}broker-2/server.properties": Expected("server_properties", "ingested", 2, None, "tar.gz"),
    f"{_TAR}broker-3/meta.properties": Expected("meta_properties", "ingested", 3, None, "tar.gz"),
    f"{_TAR}broker-3/server.properties": Expected("server_properties", "ingested", 3, None, "tar.gz"),
    f"{_ZIP}broker-2/checkpoints/replication-offset-checkpoint/FIRST": Expected(
        "replication_offset_checkpoint", "ingested", 2, None, "zip"
    ),
    f"{_ZIP}broker-2/checkpoints/replication-offset-checkpoint/LAST": Expected(
        "replication_offset_checkpoint", "ingested", 2, None, "zip"
    ),
    f"{_ZIP}broker-3/leader-epoch-checkpoint/orders-0": Expected("leader_epoch_checkpoint", "ingested", 3, None, "zip"),
    f"{_ZIP}broker-3/leader-epoch-checkpoint/orders-1": Expected("leader_epoch_checkpoint", "ingested", 3, None, "zip"),
    "broker-1/data/cleaner-offset-checkpoint": Expected("cleaner_offset_checkpoint", "ingested", 1),
    "broker-1/data/log-start-offset-checkpoint": Expected("log_start_offset_checkpoint", "empty", 1),
    "broker-1/data/orders-0/00000000000000000000.index": Expected("offset_index", "ingested", 1),
    "broker-1/data/orders-0/00000000000000000000.log": Expected("log_segment", "ingested", 1),
    "broker-1/data/orders-0/00000000000000000000.timeindex": Expected("time_index", "ingested", 1),
    "broker-1/data/orders-0/00000000000000000012.index": Expected("offset_index", "ingested", 1),
    "broker-1/data/orders-0/00000000000000000012.log": Expected("log_segment", "ingested", 1),
    "broker-1/data/orders-0/00000000000000000012.snapshot": Expected("producer_snapshot", "ingested", 1),
    "broker-1/data/orders-0/leader-epoch-checkpoint": Expected("leader_epoch_checkpoint", "ingested", 1),
    "broker-1/data/orders-0/partition.metadata": Expected("partition_metadata", "ingested", 1),
    "broker-1/data/orders-1/00000000000000000000.log": Expected("log_segment", "ingested", 1),
    "broker-1/data/recovery-point-offset-checkpoint": Expected("recovery_point_offset_checkpoint", "ingested", 1),
    "broker-1/data/replication-offset-checkpoint": Expected("replication_offset_checkpoint", "ingested", 1),
    "broker-1/data/replication-offset-checkpoint.tmp": Expected("replication_offset_checkpoint", "rejected", 1),
    "broker-1/logs/long.log": Expected("server_log", "ingested", 1, "bracketed"),
    "broker-1/meta.properties": Expected("meta_properties", "ingested", 1),
    "broker-1/server.properties": Expected("server_properties", "ingested", 1),
    "broker-2/listing.txt": Expected("directory_listing", "ingested", 2),
    "broker-2/logs/damaged.log": Expected("server_log", "ingested", 2, "bracketed"),
    "broker-2/logs/state-change-crlf.log": Expected("state_change_log", "ingested", 2, "bracketed"),
    "broker-3/logs/cut.log": Expected("server_log", "ingested", 3, "bracketed"),
    "broker-3/logs/state-change.json": Expected("state_change_log", "ingested", 3, "json_log4j2"),
    "console/3f9a-json.log": Expected("server_log", "ingested", 3, "docker_json+bracketed"),
    "console/compose.log": Expected("controller_log", "ingested", None, "compose+bracketed"),
    "console/pods/kafka-1/0.log": Expected("state_change_log", "ingested", 2, "kubernetes+bracketed"),
    "core.4711": Expected("unrecognised", "rejected"),
    "empty.log": Expected("unrecognised", "empty"),
    "README.md": Expected("unrecognised", "not_of_kafka"),
    "notes.txt": Expected("unrecognised", "rejected"),
    "prober/answers.jsonl": Expected("offset_probe", "ingested", 2),
    "prober/descriptions.jsonl": Expected("cluster_description"),
    "prober/log-dirs.jsonl": Expected("cluster_description"),
    "prober/missed.jsonl": Expected("capture_gap"),
    "prober/reassignments.jsonl": Expected("cluster_description"),
    "scenario/events.jsonl": Expected("scenario_events", "not_read_yet"),
    "znodes/EMPTY.jsonl": Expected("znode_snapshot", "empty"),
    "znodes/FIRST.jsonl": Expected("znode_snapshot"),
    "znodes/LAST.jsonl": Expected("znode_snapshot"),
    "zookeeper/version-2/log.1": Expected("znode_transaction_log"),
    "zookeeper/version-2/snapshot.0": Expected("znode_snapshot_binary", "empty"),
    "zookeeper/version-2/snapshot.FIRST.gz": Expected("znode_snapshot_binary", "ingested", None, None, "gzip"),
    "zookeeper/version-2/snapshot.LAST": Expected("znode_snapshot_binary"),
    "zookeeper/version-2/snapshot.MIDDLE.snappy": Expected("znode_snapshot_binary", "ingested", None, None, "snappy"),
}
#: A symbolic link that leads out of the folder; an archive cannot hold what it points to.
LINK: Final = "elsewhere"
#: Copies, by the name in :data:`EXPECTED` of what they are copies of: two files, one row.
COPIES: Final = {
    f"{_TAR}broker-1/logs/server.log.2026-11-21-03": "broker-1/old/server.log.2026-11-21-03",
    f"{_TAR}broker-3/meta.properties": "broker-3/meta.properties",
    "znodes/LAST.jsonl": "znodes-again/znodes/LAST.jsonl",
}
#: Files of which no record is one of the capture's.
MADE_UP: Final = ("broker-1/logs/long.log", "broker-2/logs/damaged.log", "broker-3/logs/cut.log")


@dataclass(frozen=True)
class Incident:
    """The folder; ``names`` are the real names of the files that :data:`EXPECTED` names by a word in capitals."""

    folder: Path
    names: Mapping[str, str]

    def expected(self) -> dict[str, Expected]:
        """:data:`EXPECTED` by the real names."""
        return {self.real(name): row for name, row in EXPECTED.items()}

    def real(self, name: str) -> str:
        return self.names.get(name, name)


class LogLine(NamedTuple):
    """What one record of a log says: broker, time (epoch ms), level, first line of the message."""

    broker_id: int
    time_ms: int
    level: str
    message: str


def records_of(capture: Path) -> list[LogLine]:
    """Every record of the capture's logs, sorted."""
    found = []
    for broker in BROKERS:
        for log in sorted((capture / f"broker-{broker}" / "logs").glob("*.log")):
            for line in log.read_bytes().split(b"\n"):
                match = RECORD.match(line)
                if match:
                    found.append(
                        LogLine(broker, epoch_ms(match.group(1)), match.group(2).decode(), match.group(3).decode())
                    )
    return sorted(found)


def left(capture: Path, folder: Path) -> Incident:
    """The folder below ``folder``, beside a file that a link leads out to."""
    outside = folder / "outside"
    outside.mkdir()
    (outside / "server.log").write_bytes(line("00:00,000", "[KafkaServer id=9] of another cluster"))
    return build(capture, folder / "incident", outside)


def build(capture: Path, folder: Path, outside: Path) -> Incident:
    """Lay the incident out below ``folder``; ``outside`` is what its symbolic link leads to."""
    logs = {
        (broker, kind): (capture / f"broker-{broker}" / "logs" / f"{kind}.log").read_bytes()
        for broker in BROKERS
        for kind in ("server", "controller", "state-change")
    }
    names: dict[str, str] = {}
    files: dict[str, bytes] = {}
    files |= _logs(logs)
    files |= {f"broker-1/{name}": (capture / "broker-1" / name).read_bytes() for name in _PROPERTIES}
    files["broker-3/meta.properties"] = (capture / "broker-3" / "meta.properties").read_bytes()
    files |= _data_directory()
    files |= _znodes(capture, names)
    files |= _zookeeper(capture, names)
    files["brokers.tar.gz"] = gzip.compress(_tarball(capture, logs, names), mtime=0)
    files["broker-1/old/server.log.2026-11-21-03"] = _halves(logs[1, "server"])[0]
    files["broker-2/listing.txt"] = _listing()
    files["core.4711"] = _BINARY
    files["empty.log"] = b""
    files["README.md"] = b"# Read me\n\nnot a line of Kafka's\n"
    files["notes.txt"] = b"# What we did\n\nrestarted broker 2, twice\n"
    files["prober/answers.jsonl"] = (capture / "probes-2.jsonl").read_bytes()
    files |= {f"prober/{name}": data for name, data in described(capture).items()}
    files["scenario/events.jsonl"] = (capture / "events.jsonl").read_bytes()
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    (folder / LINK).symlink_to(outside)
    return Incident(folder, names)


_PROPERTIES: Final = ("meta.properties", "server.properties")


def _logs(logs: Mapping[tuple[int, str], bytes]) -> dict[str, bytes]:
    first, second = _halves(logs[2, "state-change"])
    return {
        "console/compose.log": compose({f"kafka-{broker}": logs[broker, "controller"] for broker in BROKERS}),
        "console/pods/kafka-1/0.log": kubernetes(first),
        "console/3f9a-json.log": docker_json(logs[3, "server"]),
        "broker-2/logs/state-change-crlf.log": second.replace(b"\n", b"\r\n"),
        "broker-3/logs/state-change.json": log4j2_json(logs[3, "state-change"]),
        "broker-1/logs/long.log": line("01:00,000", "[KafkaServer id=1] " + "x" * LONG_LINE_BYTES)
        + line("01:01,000", "[KafkaServer id=1] after a long line"),
        "broker-2/logs/damaged.log": line("02:00,000", "[KafkaServer id=2] before")
        + line("02:01,000", "[KafkaServer id=2] damaged \N{REPLACEMENT CHARACTER}").replace(
            b"\xef\xbf\xbd", b"\xff\xc3"
        )
        + bytes(70_000)
        + line("02:02,000", "[KafkaServer id=2] behind a hole"),
        "broker-3/logs/cut.log": line("03:00,000", "[KafkaServer id=3] whole")
        + line("03:01,000", "[KafkaServer id=3] cut")[:-30],
    }


def line(minute: str, message: str) -> bytes:
    """One record of a server.log of the hour after the capture's."""
    return f"[2026-11-21 05:{minute}] INFO {message} (kafka.server.KafkaServer)\n".encode()


def _tarball(capture: Path, logs: Mapping[tuple[int, str], bytes], names: dict[str, str]) -> bytes:
    first, second = _halves(logs[1, "server"])
    members = {"broker-1/logs/server.log.2026-11-21-03": first, "broker-1/logs/server.log": second}
    first, second = _halves(logs[1, "state-change"])
    members |= {
        "broker-1/logs/state-change.log.1.zst": zstandard.ZstdCompressor().compress(first),
        "broker-1/logs/state-change.log": second,
    }
    first, second = _halves(logs[2, "server"])
    members |= {"broker-2/logs/server.log.1.gz": gzip.compress(first, mtime=0), "broker-2/logs/server.log": second}
    members |= {
        f"broker-{broker}/{name}": (capture / f"broker-{broker}" / name).read_bytes()
        for broker in (2, 3)
        for name in _PROPERTIES
    }
    members["checkpoints.zip"] = _zip(capture, names)
    members["../outside.log"] = line("00:00,000", "outside")
    return tar(members)


def _zip(capture: Path, names: dict[str, str]) -> bytes:
    folder = "broker-2/checkpoints/replication-offset-checkpoint"
    copies = sorted(path for path in (capture / folder).iterdir() if path.stat().st_size > 10)
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for word, path in (("FIRST", copies[0]), ("LAST", copies[-1])):
            names[f"{_ZIP}{folder}/{word}"] = f"{_ZIP}{folder}/{path.name}"
            archive.writestr(zipfile.ZipInfo(f"{folder}/{path.name}", _MEMBER_TIME), path.read_bytes())
        for directory in ("orders-0", "orders-1"):
            name = f"broker-3/leader-epoch-checkpoint/{directory}"
            archive.writestr(zipfile.ZipInfo(name, _MEMBER_TIME), (capture / name).read_bytes())
    return held.getvalue()


def tar(members: Mapping[str, bytes]) -> bytes:
    """A tar archive of these members."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as archive:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return held.getvalue()


def packed(folder: Path) -> bytes:
    """The folder as one .tar.zst, symbolic links left out."""
    members = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*"))}
    return zstandard.ZstdCompressor().compress(
        tar({name: path.read_bytes() for name, path in members.items() if path.is_file() and not path.is_symlink()})
    )


def described(capture: Path) -> dict[str, bytes]:
    """What a capture writes of its brokers beside their offsets, and of what it missed; the last line of
    ``log-dirs.jsonl`` is torn."""
    cluster_id = re.findall(r"cluster\.id=(\S+)", (capture / "broker-1" / "meta.properties").read_text())[0]
    began = json.loads((capture / "probes-2.jsonl").read_bytes().splitlines()[0])["sent_at"]

    def line(after_ms: int, broker: int, **entry: Any) -> bytes:
        head = {"sent_at": began + after_ms, "received_at": began + after_ms + 1.5, "broker": broker}
        return json.dumps(head | entry, separators=(",", ":")).encode() + b"\n"

    def cluster(after_ms: int, broker: int) -> bytes:
        alive = [{"id": one, "host": f"kafka-{one}", "port": 9092, "rack": None} for one in BROKERS]
        return line(
            after_ms, broker, description="cluster", cluster_id=cluster_id, controller_id=1, brokers=alive, topics=1
        )

    def topic(after_ms: int, broker: int, leader: int, isr: list[int]) -> bytes:
        partition = {
            "partition": 0,
            "error_code": 0,
            "leader": leader,
            "leader_epoch": leader,
            "replicas": [1, 2, 3],
            "isr": isr,
            "offline_replicas": [],
        }
        return line(
            after_ms,
            broker,
            description="topic",
            topic="orders",
            topic_id=None,
            is_internal=False,
            error_code=0,
            partitions=[partition],
        )

    def log_dir(after_ms: int, broker: int, lag: int) -> bytes:
        replica = {"partition": 0, "size": 424, "offset_lag": lag, "is_future": False}
        return line(after_ms, broker, log_dir="/data", error_code=0, total_bytes=None, usable_bytes=None, topics=1) + (
            line(after_ms, broker, log_dir="/data", topic="orders", partitions=[replica])
        )

    moved = {"topic": "orders", "partition": 0, "replicas": [1, 2, 3], "adding_replicas": [3], "removing_replicas": [1]}
    return {
        "descriptions.jsonl": cluster(0, 1)
        + topic(0, 1, 1, [1, 2, 3])
        + cluster(5, 2)
        + topic(5, 2, 1, [1, 2, 3])
        + cluster(2000, 2)
        + topic(2000, 2, 2, [2, 3])
        + line(2500, 2, description="topic_gone", topic="orders"),
        "log-dirs.jsonl": log_dir(3, 2, 0) + log_dir(1003, 2, 7) + log_dir(2003, 2, 9)[:-9] + b"\n",
        "reassignments.jsonl": line(4, 1, reassignments=[moved]) + line(1004, 1, reassignments=[]),
        "missed.jsonl": _missed(began + 1000, None) + _missed(began + 1000, began + 2000),
    }


def _missed(began_ms: float, ended_ms: float | None) -> bytes:
    gap = {"missed_from": began_ms, "missed_to": ended_ms, "source": "probes", "of": "broker 1", "reason": "it is gone"}
    return json.dumps(gap).encode() + b"\n"


def _data_directory() -> dict[str, bytes]:
    first = log_files.segment(0, 4, per_batch=3, epoch=1)
    torn = log_files.segment(0, 2, epoch=2)
    return {
        "broker-1/data/orders-0/00000000000000000000.log": first,
        "broker-1/data/orders-0/00000000000000000000.index": log_files.offset_index((5, len(first) // 2)),
        "broker-1/data/orders-0/00000000000000000000.timeindex": log_files.time_index(
            (log_files.BASE_TIMESTAMP_MS + 5, 5)
        ),
        # the active segment of a partition that nobody wrote to since it was rolled: its base offset is the LEO
        "broker-1/data/orders-0/00000000000000000012.log": b"",
        "broker-1/data/orders-0/00000000000000000012.index": b"",
        "broker-1/data/orders-0/00000000000000000012.snapshot": log_files.producer_snapshot(2),
        "broker-1/data/orders-0/leader-epoch-checkpoint": b"0\n1\n1 0\n",
        "broker-1/data/orders-0/partition.metadata": b"version: 0\ntopic_id: Gy2IFN5MSo-MgkQzoWEJUB\n",
        "broker-1/data/orders-1/00000000000000000000.log": torn[:-7],
        "broker-1/data/replication-offset-checkpoint": b"0\n2\norders 0 12\norders 1 1\n",
        "broker-1/data/replication-offset-checkpoint.tmp": b"0\n2\norders 0 9\nord",
        "broker-1/data/recovery-point-offset-checkpoint": b"0\n3\norders 0 12\norders one 1\norders 1 1",
        "broker-1/data/cleaner-offset-checkpoint": b"0\n2\norders 0 3\n",
        "broker-1/data/log-start-offset-checkpoint": b"",
    }


def _listing() -> bytes:
    rows = [
        "1024 1795232100.1234567890 /var/lib/kafka/orders-1/00000000000000000000.log",
        "10485760 1795232100.1234567890 /var/lib/kafka/orders-1/00000000000000000000.index",
        "8 1795232100.5000000000 /var/lib/kafka/orders-1/leader-epoch-checkpoint",
        "4096 1795232100.5000000000 /var/lib/kafka/orders-1",
        "0 1795232110.0000000000 /var/lib/kafka/metrics-1/00000000000000000042.log",
    ]
    return "\n".join(rows).encode() + b"\n"


def _znodes(capture: Path, names: dict[str, str]) -> dict[str, bytes]:
    snapshots = sorted((capture / "znodes").iterdir())
    chosen = {"EMPTY": snapshots[0], "FIRST": snapshots[2], "LAST": snapshots[-1]}
    names |= {f"znodes/{word}.jsonl": f"znodes/{path.name}" for word, path in chosen.items()}
    names["znodes-again/znodes/LAST.jsonl"] = f"znodes-again/znodes/{snapshots[-1].name}"
    files = {f"znodes/{path.name}": path.read_bytes() for path in chosen.values()}
    return files | {names["znodes-again/znodes/LAST.jsonl"]: snapshots[-1].read_bytes()}


def _zookeeper(capture: Path, names: dict[str, str]) -> dict[str, bytes]:
    below = "zookeeper/version-2"
    log = (capture / "zk-version-2" / "log.1").read_bytes()
    zxids = sorted({operation.zxid for operation in operations([log])})
    taken = {"FIRST": zxids[len(zxids) // 3], "MIDDLE": zxids[2 * len(zxids) // 3], "LAST": zxids[-1]}
    snapshots = {word: _snapshot(log, zxid) for word, zxid in taken.items()}
    for word, suffix in (("FIRST", ".gz"), ("MIDDLE", ".snappy"), ("LAST", "")):
        names[f"{below}/snapshot.{word}{suffix}"] = f"{below}/snapshot.{taken[word]:x}{suffix}"
    return {
        f"{below}/log.1": log,
        f"{below}/snapshot.0": (capture / "zk-version-2" / "snapshot.0").read_bytes(),
        f"{below}/snapshot.{taken['FIRST']:x}.gz": gzip.compress(snapshots["FIRST"], mtime=0),
        f"{below}/snapshot.{taken['MIDDLE']:x}.snappy": jute.snappy(snapshots["MIDDLE"]),
        f"{below}/snapshot.{taken['LAST']:x}": snapshots["LAST"],
    }


def _snapshot(log: bytes, zxid: int) -> bytes:
    """The snapshot that ZooKeeper would have taken of the tree after that transaction."""
    tree = new_tree()
    tree.replay(operations([log]), after_zxid=0, to_zxid=zxid)
    nodes = {
        path: jute.Stat(
            znode.data,
            znode.czxid,
            znode.mzxid,
            znode.ctime_ms,
            znode.mtime_ms,
            znode.version,
            znode.child_creates,
            znode.acl_version,
            znode.ephemeral_owner,
            znode.pzxid,
        )
        for path, znode in sorted(tree.nodes.items())
    }
    return jute.snapshot(nodes, tree.sessions, digest_zxid=zxid, last_zxid=zxid)


def _halves(log: bytes) -> tuple[bytes, bytes]:
    """The log in two parts, the second of which begins at a record."""
    lines: Sequence[bytes] = log.splitlines(keepends=True)
    middle = next(_starts(lines, len(lines) // 2))
    return b"".join(lines[:middle]), b"".join(lines[middle:])


def _starts(lines: Sequence[bytes], first: int) -> Iterator[int]:
    return (number for number in range(first, len(lines)) if RECORD.match(lines[number].rstrip(b"\n")))
