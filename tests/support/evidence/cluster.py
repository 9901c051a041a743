"""The view of a capture's cluster without Spark: the same facts, the same pure functions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import Final

from ingest.lake.tables.bronze import LOG_LEVELS
from ingest.shapes.broker_settings import BrokerSetting, listed
from reconstruct.cluster.episodes.procedures import NAMED_FIELDS, PROCEDURE_EVENTS
from reconstruct.cluster.evidence import (
    ENDINGS,
    LEAVING,
    LIVES,
    LIVING,
    STARTING,
    STARTS,
    UNREACHABLE,
    UNREACHABLE_ERROR,
    BrokerFact,
    ClusterFacts,
    ControllerFact,
    LifeSign,
    ProcedureLine,
    TakeOverLine,
)
from reconstruct.cluster.settings import SettingChange
from reconstruct.cluster.spans import LiveView, LogSpan, leave_out
from reconstruct.cluster.spark.controller_lines import ELECTED
from reconstruct.cluster.spark.step import ClusterHistory
from reconstruct.cluster.take_overs import TAKE_OVER_EVENTS
from reconstruct.time.line_order import FAR_BACK_US, JUMP_BACK_US, is_in_order, jumps_back, most_back
from tests.support.captures.text import CaptureText, Lines, printed_at
from tests.support.evidence.lines import Line, by_partition, ids, integer, lines_of
from tests.support.evidence.znodes import Write

_BROKER: Final = re.compile(r"^/brokers/ids/(\d+)$")
_CONFIG: Final = re.compile(r"^/config/topics/([^/]+)$")
_BLOCK: Final = re.compile(r"^\[([^\]]+)\] INFO KafkaConfig values:")
_MINUTE_US: Final = 60 * 1_000_000
_CHANGES: Final = {
    "broker_change": (
        ("added_broker_ids", "up"),
        ("deleted_broker_ids", "down"),
        ("bounced_broker_ids", "down"),
        ("bounced_broker_ids", "up"),
    ),
    "broker_started": (("added_broker_ids", "up"),),
    "broker_failed": (("deleted_broker_ids", "down"),),
    "controlled_shutdown_requested": (("shutting_down_broker_ids", "shutdown_requested"),),
}


def plain_cluster(
    capture: CaptureText, lines: Sequence[Line], writes: Sequence[Write], cluster_id: str = "c"
) -> ClusterHistory:
    """The cluster of a capture."""
    facts = ClusterFacts()
    facts.controllers = list(_tenures(lines))
    for name in capture.named("/logs/"):
        of_log = facts_of_log(name, capture.files[name])
        facts.controllers += of_log.controllers
        facts.brokers += of_log.brokers
        facts.life_signs += of_log.life_signs
        facts.take_over_lines += of_log.take_over_lines
        facts.procedure_lines += of_log.procedure_lines
        facts.log_spans += of_log.log_spans
        facts.set_back |= {b: max(by, facts.set_back.get(b, 0)) for b, by in of_log.set_back.items()}
        facts.process_starts += of_log.process_starts
        for broker_id, printed in of_log.own_settings.printed.items():
            facts.own_settings.printed.setdefault(broker_id, []).extend(printed)
        facts.stated_versions += of_log.stated_versions
        facts.shapes |= of_log.shapes
    facts.log_spans.sort(key=lambda span: (span[0], span[1].start))
    facts.controllers += _controller_znodes(writes)
    facts.brokers += _registrations(writes)
    _listed(facts, lines)
    _settings(facts, capture, writes)
    return ClusterHistory(cluster_id, facts)


@lru_cache(maxsize=256)
def facts_of_log(name: str, text: Lines) -> ClusterFacts:
    """What one log says of the cluster; bent captures share most of their logs."""
    lines, facts = lines_of(name, text), ClusterFacts()
    facts.controllers, facts.brokers = list(_elections(lines)), list(_brokers(lines))
    facts.life_signs, facts.log_spans = list(_life_signs(lines)), list(_log_spans(lines))
    facts.take_over_lines = list(take_over_lines(lines))
    facts.procedure_lines = list(_procedure_lines(lines))
    for line in lines:
        if line.event_type == "broker_server_starting":
            facts.process_starts.append((line.broker_id, line.at, line.id))
            facts.controllers.append(ControllerFact("started", line.at, line.id, line.broker_id, log_file=line.file))
        elif line.event_type == "broker_configured":
            facts.own_settings.printed.setdefault(line.broker_id, []).append((line.at, line.fields))
        elif line.event_type == "kafka_version":
            facts.stated_versions.append(line.fields["kafka_version"])
        if line.source_kind == "state_change_log":
            facts.shapes.add(line.shape_id)
    for number, line_text in enumerate(text, 1):
        if (block := _BLOCK.match(line_text)) and lines:  # a record of several lines, which no other reader here takes
            below = takewhile(lambda each: not each.startswith("["), text[number:])
            printed = printed_at(block[1]), listed("\n".join(below))
            facts.own_settings.printed.setdefault(lines[0].broker_id, []).append(printed)
    for kind in ("state_change_log", "server_log"):
        own = [line for line in lines if line.source_kind == kind]
        if (by := most_back(line.at for line in own)) > JUMP_BACK_US:
            facts.set_back |= {int(line.fields.get("broker_id", line.broker_id)): by for line in own}
        if by > FAR_BACK_US:
            facts.controllers.append(ControllerFact("set_back", 0, "", log_file=name))
    return facts


def take_over_lines(lines: Sequence[Line]) -> Iterator[TakeOverLine]:
    """What lines of controller.log say of take-overs and resignations."""
    for line in lines:
        if line.source_kind == "controller_log" and line.event_type in TAKE_OVER_EVENTS:
            is_listing = line.event_type == "partition_state_machine_started"
            states = line.fields.get("states", "").split(",") if is_listing else None
            yield TakeOverLine(
                _controller_of(line),
                line.event_type,
                line.at,
                line.id,
                line.file,
                line.number,
                integer(line.fields.get("controller_epoch", "")),
                line.fields.get("step"),
                ids(line.fields["live_broker_ids"]) if "live_broker_ids" in line.fields else None,
                None if states is None else len(list(filter(None, states))),
                None if states is None else states.count("OfflinePartition"),
            )


def _procedure_lines(lines: Sequence[Line]) -> Iterator[ProcedureLine]:
    for line in lines:
        if line.source_kind == "controller_log" and line.event_type in PROCEDURE_EVENTS:
            named = [partition for partition, _ in by_partition(line.fields) if partition is not None]
            yield ProcedureLine(
                _controller_of(line),
                line.event_type,
                line.at,
                line.id,
                line.file,
                line.number,
                line.level,
                tuple(sorted(f"{topic}-{number}" for topic, number in named)),
                {name: line.fields[name] for name in NAMED_FIELDS if name in line.fields},
            )


def _controller_of(line: Line) -> int:
    return int(line.fields.get("controller_id", line.broker_id))


def _elections(lines: Sequence[Line]) -> Iterator[ControllerFact]:
    for line in lines:
        epoch = integer(line.fields.get("controller_epoch", ""))
        if line.source_kind != "controller_log":
            continue
        if line.event_type in ELECTED and epoch is not None:
            yield ControllerFact("elected", line.at, line.id, _controller_of(line), epoch, log_file=line.file)
        elif line.event_type == "controller_resigned":
            yield ControllerFact("resigned", line.at, line.id, _controller_of(line))


def _tenures(lines: Sequence[Line]) -> Iterator[ControllerFact]:
    """The first line of each hour, epoch and file, and of each minute behind one of another epoch."""
    minutes: dict[tuple[str, int, int, int], list[Line]] = {}
    for line in lines:
        own = line.source_kind == "state_change_log" and "broker_id" not in line.fields
        if own and "controller_id" in line.fields and "controller_epoch" in line.fields:
            told = line.file, _controller_of(line), int(line.fields["controller_epoch"]), line.at // _MINUTE_US
            minutes.setdefault(told, []).append(line)
    hours: dict[tuple[str, int, int, int], list[Line]] = {}
    for (file, controller_id, epoch, minute), spoken in minutes.items():
        hours.setdefault((file, controller_id, epoch, minute // 60), []).extend(spoken)
    floors = {hour: _floor(spoken) for hour, spoken in hours.items()}
    known, before = set(), dict[str, int]()
    firsts = [(min(spoken, key=lambda line: (line.at, line.number)), told) for told, spoken in minutes.items()]
    for first, (file, controller_id, epoch, minute) in sorted(firsts, key=lambda each: (each[0].at, each[0].number)):
        hour = file, controller_id, epoch, minute // 60
        if hour not in known or before.get(file, epoch) != epoch:
            yield ControllerFact("acted", first.at, first.id, controller_id, epoch, floors[hour], log_file=file)
        known.add(hour)
        before[file] = epoch


def _floor(lines: Sequence[Line]) -> str:
    return min((line.level for line in lines), key=LOG_LEVELS.index)


def _controller_znodes(writes: Sequence[Write]) -> Iterator[ControllerFact]:
    for write in writes:
        if write.path == "/controller_epoch" and write.data:
            yield ControllerFact("znode_epoch", write.at, write.id, epoch=int(write.data))
        elif write.path == "/controller" and write.data:
            yield ControllerFact("znode_controller", write.at, write.id, int(json.loads(write.data)["brokerid"]))


def _brokers(lines: Sequence[Line]) -> Iterator[BrokerFact]:
    for line in lines:
        if line.source_kind == "controller_log":
            for field, kind in _CHANGES.get(line.event_type, ()):
                for id_ in ids(line.fields.get(field, "")):
                    yield BrokerFact(id_, kind, line.at, line.id, controller_id=_controller_of(line))
            for entry in line.fields.get("broker_epochs", "").split(","):
                broker, _, epoch = entry.partition(":")
                if epoch:
                    yield BrokerFact(
                        int(broker), "epoch_listed", line.at, line.id, int(epoch), controller_id=_controller_of(line)
                    )


def _life_signs(lines: Sequence[Line]) -> Iterator[LifeSign]:
    for line in lines:
        if line.event_type == "broker_configured":
            continue
        yield LifeSign(line.broker_id, "line", line.at, line.id)
        if line.event_type in ENDINGS:
            yield LifeSign(line.broker_id, line.event_type, line.at, line.id)
        if line.event_type in LIVING:
            yield LifeSign(line.broker_id, LIVES, line.at, line.id)
        if line.event_type in STARTING:
            yield LifeSign(line.broker_id, STARTS, line.at, line.id)
        if line.source_kind != "server_log":
            continue
        if line.event_type in LEAVING:
            yield LifeSign(line.broker_id, "leaving", line.at, line.id)
        if line.event_type == "log_recovery" and "stop_before" in line.fields:
            yield LifeSign(line.broker_id, line.fields["stop_before"], line.at, line.id)
        error = f"{line.fields.get('error', '')} {line.cause or ''}"
        failed = line.event_type == "fetch_failed" and re.search(UNREACHABLE_ERROR, error)
        named = line.fields.get("leader", line.fields.get("to_broker_id"))
        if named is not None and (line.event_type in UNREACHABLE or failed) and int(named) != line.broker_id:
            yield LifeSign(int(named), "unreachable", line.at, line.id)


def _registrations(writes: Sequence[Write]) -> Iterator[BrokerFact]:
    first: set[int] = set()
    for write in writes:
        named = _BROKER.match(write.path)
        if named and write.data is None:
            yield BrokerFact(int(named[1]), "unregistered", write.at, write.id, write.czxid, write.at_upper)
        elif named and write.czxid not in first:
            first.add(write.czxid)
            yield BrokerFact(int(named[1]), "registered", write.at, write.id, write.czxid)


def _listed(facts: ClusterFacts, lines: Sequence[Line]) -> None:
    lists = [
        line
        for line in lines
        if line.source_kind == "controller_log"
        and (
            (line.event_type in ("broker_change", "brokers_active") and "live_broker_ids" in line.fields)
            or line.event_type == "broker_registration_ignored"
        )
    ]
    for line in sorted(lists, key=lambda line: (line.at, "ignored_broker_ids" in line.fields, line.id)):
        if "ignored_broker_ids" in line.fields:
            ignored = frozenset(ids(line.fields["ignored_broker_ids"]))
            leave_out(facts.live_views, _controller_of(line), line.at, ignored)
            continue
        live = frozenset(ids(line.fields["live_broker_ids"]))
        known = {fact.broker_id for fact in facts.brokers}
        for id_ in sorted(live | known):
            kind = "live" if id_ in live else "absent"
            facts.brokers.append(BrokerFact(id_, kind, line.at, line.id, controller_id=_controller_of(line)))
        added = frozenset(ids(line.fields.get("added_broker_ids", "")))
        facts.live_views.append(LiveView(line.at, _controller_of(line), live, line.id, added))


def _log_spans(lines: Sequence[Line]) -> Iterator[tuple[int, LogSpan]]:
    files: dict[tuple[int, str], list[Line]] = {}
    for line in lines:
        if line.source_kind == "state_change_log":
            files.setdefault((int(line.fields.get("broker_id", line.broker_id)), line.file), []).append(line)
    for (broker_id, file), spoken in files.items():
        instants = [line.at for line in spoken]
        jumps = jumps_back(instants), jumps_back(instants, FAR_BACK_US)
        in_order = is_in_order(len(instants), *jumps)
        yield broker_id, LogSpan(min(instants), max(instants), _floor(spoken), in_order, file=file)


def _settings(facts: ClusterFacts, capture: CaptureText, writes: Sequence[Write]) -> None:
    for write in sorted(writes, key=lambda write: write.mzxid):
        named = _CONFIG.match(write.path)
        config = json.loads(write.data).get("config", {}) if named and write.data else {}
        if named and write.data:
            min_isr = int(config[BrokerSetting.MIN_ISR]) if BrokerSetting.MIN_ISR in config else None
            unclean = config[BrokerSetting.UNCLEAN] == "true" if BrokerSetting.UNCLEAN in config else None
            change = SettingChange(write.at, min_isr, unclean, write.version == 0)
            facts.topic_settings.setdefault(named[1], []).append(change)
    for properties in capture.named("server.properties"):
        pairs = [line.split("=", 1) for line in capture.files[properties] if "=" in line]
        given = {key.strip(): value.strip() for key, value in pairs}
        broker_id = int(properties.split("/")[0].removeprefix("broker-"))
        facts.own_settings.files[broker_id] = {name: [given[name]] for name in BrokerSetting if name in given}
