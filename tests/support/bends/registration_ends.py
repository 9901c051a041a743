"""Ends of brokers' registrations, bent in raw text: what `ended_as` makes of them.

python -m tests.support.bends.registration_ends FOLDER_OF_CAPTURES

Of each end of which the scenario tells how it came (a signal), lines are taken away, so that it may be told or unknown
but never another; or the lines and those of the next start are changed into what Kafka prints of another end.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from ingest.shapes.event_types import EventType
from reconstruct.cluster.ends import CLEAN_STOP, CRASH, HALTED, SESSION_EXPIRED, STOP_NOT_FINISHED, RegistrationEnd
from reconstruct.cluster.evidence import LEAVING, STARTING
from reconstruct.cluster.spark.step import ClusterHistory
from tests.support.bends.faults.drafts import Draft, Edits, Site, bent, stamp_of
from tests.support.captures.text import CaptureText
from tests.support.evidence.cluster import plain_cluster
from tests.support.evidence.lines import Line, ids, matched_lines
from tests.support.evidence.znodes import read_writes

_SECOND: Final = 1_000_000
#: What a signal makes of a registration.
_ENDS: Final = {"SIGKILL": CRASH, "SIGSTOP": SESSION_EXPIRED, "SIGTERM": CLEAN_STOP}
#: How long a process that dies is silent before its session expires, at the most that the scenarios set, µs.
_SILENCE_US: Final = 6 * _SECOND
_STOP: Final = (*LEAVING, EventType.BROKER_SERVER_SHUTDOWN)
_START: Final = (*STARTING, EventType.BROKER_SERVER_STARTING)


@dataclass(frozen=True)
class EndBend:
    """Edits of a capture, and what the end may be called then; None: it is not known."""

    kind: str
    broker_id: int
    sequence: int
    edits: Edits
    allowed: frozenset[str | None]


@dataclass(frozen=True)
class EndSite:
    """One end of a registration: how it came, µs, and the text around it."""

    site: Site
    minor: tuple[int, int]
    broker_id: int
    sequence: int
    true: str
    at: int
    end: int
    next_start: int | None
    registered_again: int | None

    @cached_property
    def own(self) -> Sequence[Line]:
        return [line for line in self.site.lines if line.file.startswith(f"broker-{self.broker_id}/")]

    def around(self, *event_types: str) -> list[Line]:
        """The broker's lines of some types (all: none given) from the end's cause to its next registration."""
        until = self.registered_again or self.next_start or 2**62
        lines = [line for line in self.own if self.at - _SECOND // 2 <= line.at <= until]
        return [line for line in lines if not event_types or line.event_type in event_types]

    def requests(self) -> list[Line]:
        """The controllers' lines that tell of its request to shut down."""
        return [
            line
            for line in self.site.lines
            if line.event_type in ("controlled_shutdown_requested", "brokers_shutting_down")
            and self.at - _SECOND <= line.at <= self.end + _SECOND
            and self.broker_id in ids(line.fields.get("shutting_down_broker_ids", ""))
        ]

    @cached_property
    def found(self) -> list[Line]:
        """What the next start says of how it found the logs."""
        return [line for line in self.around("log_recovery") if "stop_before" in line.fields]

    def said(self, at: int, text: str, *, level: str = "INFO", logger: str = "kafka.server.KafkaServer") -> str:
        """A line of the broker's server.log."""
        speaker = f"[Kafka Server {self.broker_id}], " if self.minor < (1, 0) else f"[KafkaServer id={self.broker_id}] "
        speaker = speaker if logger == "kafka.server.KafkaServer" else ""
        return f"[{stamp_of(at)}] {level} {speaker}{text} ({logger})"

    def recovered(self, at: int) -> str:
        if self.minor < (1, 0):
            return self.said(at, "Recovering unflushed segment 0 in log orders-0.", logger="kafka.log.Log")
        directory = f"partition=orders-0, dir=/var/lib/kafka/broker-{self.broker_id}/data"
        if self.minor < (3, 3):
            return self.said(at, f"[Log {directory}] Recovering unflushed segment 0", logger="kafka.log.Log")
        text = f"[LogLoader {directory}] Recovering unflushed segment 0. 0/1 recovered for orders-0."
        return self.said(at, text, logger="kafka.log.LogLoader")

    @property
    def log(self) -> str:
        return f"broker-{self.broker_id}/logs/server.log"

    def made(self, kind: str, draft: Draft, *allowed: str | None) -> EndBend:
        return EndBend(kind, self.broker_id, self.sequence, draft.made(), frozenset(allowed))


def _taken(end: EndSite) -> Iterator[EndBend]:
    says_clean = any(line.fields["stop_before"] == "clean" for line in end.found)
    draft = Draft(end.site)
    if end.true == CLEAN_STOP:
        still = (CLEAN_STOP,) if says_clean else (CLEAN_STOP, None)
        draft.drop(end.around(EventType.BROKER_SERVER_SHUTDOWN))
        yield end.made("the last line of a stop taken out", draft, *still)
        draft = Draft(end.site)
        draft.drop(end.around(*_STOP))
        yield end.made("a stop's lines taken out", draft, *still)
        draft.drop(end.requests())
        yield end.made("a stop's lines and its request taken out", draft, *((CLEAN_STOP,) if says_clean else (None,)))
        draft.drop(end.found)
        yield end.made("a stop's lines, its request and what was found taken out", draft, None)
    elif end.true == CRASH:
        draft.drop(end.found)
        yield end.made("what the start after a crash found taken out", draft, None)
    elif end.true == SESSION_EXPIRED:
        draft.drop(end.around())
        yield end.made("all lines of a session's end taken out", draft, None)
        return
    draft = Draft(end.site)
    draft.drop(end.around(EventType.BROKER_SERVER_STARTING))
    yield end.made("the first line of the next start taken out", draft, end.true, None)
    draft = Draft(end.site)
    draft.drop(line for line in end.around() if line.event_type in _START)
    yield end.made("the lines of the next start taken out", draft, end.true, None)
    draft = Draft(end.site)
    draft.drop(line for line in end.around() if line.event_type in _START or line.at > end.end)
    yield end.made("all lines up to the next registration taken out", draft, end.true, None)
    draft = Draft(end.site)
    draft.drop(line for line in end.around() if line.event_type not in _START and line not in end.found)
    yield end.made("all lines but those of the next start taken out", draft, end.true, None)


def _changed(end: EndSite) -> Iterator[EndBend]:
    draft, start = Draft(end.site), end.next_start
    if end.true == SESSION_EXPIRED:
        if end.registered_again is not None:
            draft.drop(end.around())
            at = end.registered_again - _SECOND
            draft.insert(end.log, at, end.said(at, "starting"), end.recovered(at + 1000))
            yield end.made("an expired session made a crash", draft, CRASH)
        return
    if start is None or (end.true == CRASH and not end.found):
        return
    stop = ["shutting down", "Starting controlled shutdown", "Controlled shutdown succeeded", "shut down completed"]
    expired = ("zookeeper state changed (Expired)", "org.I0Itec.zkclient.ZkClient")
    if end.minor >= (1, 1):
        expired = ("[ZooKeeperClient] Session expired.", "kafka.zookeeper.ZooKeeperClient")
    fatal = ("Shutdown broker because all log dirs in /d have failed", "kafka.log.LogManager")
    if end.minor < (1, 0):
        fatal = ("Disk error while replicating data.", "kafka.server.ReplicaFetcherThread")
    at = end.at + 1000
    if end.true == CLEAN_STOP:
        draft.drop(end.around(EventType.BROKER_SERVER_SHUTDOWN))
        draft.drop(end.found)
        draft.insert(end.log, start + 1000, end.recovered(start + 1000))
        yield end.made("a stop made one that was not finished", draft, STOP_NOT_FINISHED)
        draft.drop([*end.around(*_STOP), *end.requests()])
        draft.drop(line for line in end.own if end.end - _SILENCE_US < line.at <= end.end)
        yield end.made("a stop made a crash", draft, CRASH)
        draft = Draft(end.site)
        draft.drop([*end.around(*_STOP), *end.requests(), *end.found])
        draft.insert(end.log, end.end + 1000, end.said(end.end + 1000, expired[0], logger=expired[1]))
        yield end.made("a stop made an expired session", draft, SESSION_EXPIRED)
    else:
        draft.drop(end.found)
        draft.insert(end.log, at, *(end.said(at, text) for text in stop))
        yield end.made("a crash made a stop", draft, CLEAN_STOP)
        draft = Draft(end.site)
        draft.insert(end.log, at, *(end.said(at, text) for text in stop[:2]))
        yield end.made("a crash made a stop that was not finished", draft, STOP_NOT_FINISHED)
        draft = Draft(end.site)
        draft.insert(end.log, end.end + 1000, end.said(end.end + 1000, expired[0], logger=expired[1]))
        yield end.made("a crash made an expired session", draft, SESSION_EXPIRED)
    draft = Draft(end.site)
    draft.insert(end.log, at, end.said(at, fatal[0], level="FATAL", logger=fatal[1]))
    yield end.made(f"a {end.true} made a halt", draft, HALTED)


def ends_of(name: str, folder: Path, text: CaptureText) -> list[EndSite]:
    """The ends of registrations in a capture of which its scenario tells the cause."""
    site = Site.read(name, text)
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    at = [(int(event["ts"] * _SECOND), event) for event in events]
    major, minor = map(int, name.split("-")[1].split(".")[:2])
    found = []
    for broker_id, spans in site.plain.cluster.registrations.items():
        signals = [
            (when, _ENDS[e["signal"]])
            for when, e in at
            if e["what"] == "signal" and e["broker"] == broker_id and e["signal"] in _ENDS
        ]
        for sequence, span in enumerate(spans):
            end = span.interval.end
            if end is None:
                continue
            again = spans[sequence + 1].interval.start if sequence + 1 < len(spans) else None
            when, true = max(signal for signal in signals if signal[0] <= end + _SECOND)
            started = [
                line.at
                for line in site.lines
                if line.event_type == EventType.BROKER_SERVER_STARTING
                and line.broker_id == broker_id
                and line.at > when
            ]
            found.append(
                EndSite(
                    site,
                    (major, minor),
                    broker_id,
                    sequence,
                    true,
                    when,
                    end,
                    min(started, default=None),
                    again,
                )
            )
    return found


def bends_of(name: str, folder: Path) -> Iterator[tuple[EndBend, str | None]]:
    """Every bend of a capture, and what `ended_as` is then."""
    text = CaptureText.read(folder)
    for end in ends_of(name, folder, text):
        for made in (*_taken(end), *_changed(end)):
            ends = _history(bent(text, made.edits)).ends[made.broker_id]
            yield made, (ends[made.sequence] if made.sequence < len(ends) else RegistrationEnd()).ended_as


def _history(text: CaptureText) -> ClusterHistory:
    return plain_cluster(text, list(matched_lines(text)), read_writes(text))


def main() -> None:
    folder = Path(sys.argv[1])
    tried, right, told = Counter[str](), Counter[str](), Counter[str]()
    for path in sorted(path for path in folder.iterdir() if path.is_dir()):
        for made, ended_as in bends_of(path.name, path):
            tried[made.kind] += 1
            right[made.kind] += ended_as in made.allowed
            told[made.kind] += ended_as in made.allowed and ended_as is not None
            if ended_as not in made.allowed:
                print(f"{path.name} {made.broker_id} #{made.sequence} {made.kind}: {ended_as}, not {made.allowed}")
    print("| kind | tried | right | of them told |", "|---" * 4 + "|", sep="\n")
    for kind, count in tried.items():
        print(f"| {kind} | {count} | {right[kind]} | {told[kind]} |")
    print(f"| **all** | {tried.total()} | {right.total()} | {told.total()} |")


if __name__ == "__main__":
    main()
