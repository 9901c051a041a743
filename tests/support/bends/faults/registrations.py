"""Faults of brokers that come back, and of controllers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from tests.support.bends.faults.drafts import ERROR, WARNING, Draft, Fault, Faults, Site, number
from tests.support.evidence.lines import Line, ids
from tests.support.evidence.znodes import rows_of

#: A controller may take notice of a bounce so long after it, µs.
_NOTICED_US = 30_000_000


def _returns(
    site: Site,
) -> Iterator[tuple[int, list[tuple[str, int, dict[str, Any]]], list[tuple[str, int, dict[str, Any]]]]]:
    """Successive registrations of a broker: the rows of each."""
    for broker in site.brokers:
        by_session: dict[int, list[tuple[str, int, dict[str, Any]]]] = {}
        for place in site.registrations(broker):
            by_session.setdefault(place[2]["czxid"], []).append(place)
        for before, after in pairwise(by_session.values()):
            yield broker, before, after


def older_broker_epoch(site: Site) -> Iterator[Fault]:
    """A broker registers with a lower czxid, which is its broker epoch since 2.2, than the time before."""
    taken = {row["czxid"] for _, lines in site.text.snapshots() for row in rows_of(lines)}
    for broker, before, after in _returns(site):
        was, old = after[0][2]["czxid"], before[0][2]["czxid"]
        now = next(zxid for zxid in range(old - 1, 0, -1) if zxid not in taken)
        draft = Draft(site)
        for name, row_number, row in after:
            mzxid = now + row["mzxid"] - row["czxid"]
            draft.edits[name, row_number] = (json.dumps({**row, "czxid": now, "pzxid": now, "mzxid": mzxid}),)
        for line in site.lines:
            if line.source_kind == "controller_log" and re.search(rf"\b{broker} -> {was}\b", site.raw(line)):
                draft.put(line, re.sub(rf"\b{broker} -> {was}\b", f"{broker} -> {now}", site.raw(line)))
        note = f"broker {broker}: {was} as {now} after {old}"
        # ZooKeeper may have been restored, unless another broker's registration with a higher zxid lasted.
        is_witnessed = any(
            rows[0]["czxid"] > now and any(row["captured_at"] > after[0][2]["captured_at"] for row in rows)
            for other in site.brokers
            if other != broker
            for rows in _registered(site, other, until=after[0][2]["ctime"])
        )
        yield Fault(
            "broker registers with an older epoch",
            None,
            frozenset({"R16"}),
            draft.made(),
            note,
            frozenset({broker}),
            ERROR if is_witnessed else WARNING,
        )


def _registered(site: Site, broker: int, until: int) -> Iterator[list[dict[str, Any]]]:
    """The rows of each registration of a broker that began before ``until``, ms."""
    by_session: dict[int, list[dict[str, Any]]] = {}
    for _, _, row in site.registrations(broker):
        by_session.setdefault(row["czxid"], []).append(row)
    return (rows for rows in by_session.values() if rows[0]["ctime"] < until)


def older_epoch_in_cache(site: Site) -> Iterator[Fault]:
    """The controller's list of broker epochs (since 2.2) has a lower one for a broker than the last that had it."""
    for file in site.text.named("controller.log"):
        last: dict[str, dict[str, str]] = {}
        for row_number, raw in enumerate(site.text.files[file], 1):
            if "Initialized broker epochs cache" in raw:  # another tenure
                last = {}
            if "broker epochs cache" not in raw:
                continue
            listed = dict(re.findall(r"(\d+) -> (\d+)", raw))
            for broker, zxid in listed.items():
                before = last.get(broker, {})
                if broker in before and int(before[broker]) < int(zxid):
                    older = int(before[broker]) - 1
                    text = re.sub(rf"\b{broker} -> {zxid}\b", f"{broker} -> {older}", raw)
                    stayed = [b for b in listed if before.get(b) == listed[b] and int(listed[b]) > older]
                    reason = "no other broker's epoch that stayed shows that ZooKeeper was not wiped or restored"
                    yield Fault(
                        "controller lists an older broker epoch",
                        None,
                        frozenset({"R16"}),
                        {(file, row_number): (text,)},
                        f"{file}:{row_number}: broker {broker}",
                        frozenset({int(broker)}),
                        unprovable="" if stayed else reason,
                    )
            last |= dict.fromkeys(listed, listed)


def older_registration_time(site: Site) -> Iterator[Fault]:
    """A registration with a later zxid and an earlier time: ZooKeeper's clock, so no rule of Kafka's is broken."""
    for broker, before, after in _returns(site):
        earlier = before[0][2]["ctime"] - 5_000
        draft = Draft(site)
        for name, row_number, row in after:
            data = json.loads(row["data"])
            data["timestamp"] = str(earlier - 20)
            changed = {**row, "ctime": earlier, "mtime": earlier, "data": json.dumps(data, separators=(",", ":"))}
            draft.edits[name, row_number] = (json.dumps(changed),)
        note = f"broker {broker}"
        yield Fault(
            "broker registers with an older time",
            None,
            frozenset({"R16", "R50"}),
            draft.made(),
            note,
            frozenset({broker}),
            WARNING,
        )


def bounce_unnoticed(site: Site) -> Iterator[Fault]:
    """A broker registers anew, and its controller, which stays in office, tells of neither end nor beginning.

    Of brokers that led nothing when they went, and were given nothing to lead just after: nothing else then depends on
    the notice.
    """
    for broker, before, after in _returns(site):
        back = after[0][2]["ctime"] * 1000
        last_seen = before[-1][2]["captured_at"] * 1000
        notices = [
            line
            for line in site.events("broker_change", source_kind="controller_log")
            if broker in (*ids(line.fields["added_broker_ids"]), *ids(line.fields["deleted_broker_ids"]))
            and last_seen - 3_000_000 <= line.at <= back + 5_000_000
        ]
        controllers = {number(line, "controller_id") for line in notices}
        if len(notices) < 2 or len(controllers) != 1 or broker in controllers:
            continue
        gone, file = notices[0].at, notices[0].file.replace("controller.log", "state-change.log")
        led = [
            rows[-1].state["leader"]
            for rows in ([r for r in own if site.written_at(r) < gone - 20_000] for own in site.writes.values())
            if rows
        ]
        given = [
            row.state["leader"]
            for own in site.writes.values()
            for row in own
            if gone <= site.written_at(row) <= back + 2_000_000
        ]
        if broker in (*led, *given):
            continue
        draft = Draft(site)
        for line in site.lines:
            if line.file == notices[0].file and gone - 200_000 <= line.at <= back + 2_000_000:
                if _tells_of(line, broker):
                    draft.put(line)
            elif line.file == file and gone - 50_000 <= line.at <= back + 2_000_000 and "broker_id" not in line.fields:
                if number(line, "replica_id") == broker or number(line, "to_broker_id") == broker:
                    draft.put(line)
            elif (
                line.broker_id == broker
                and line.source_kind == "state_change_log"
                and back <= line.at <= back + 2_000_000
            ):
                draft.put(line)
        severity = ERROR if site.minor >= (2, 2) else WARNING
        tenure = [
            line.at
            for line in site.lines
            if line.file == file and "broker_id" not in line.fields
            if line.fields.get("controller_epoch") == _epoch_at(site, file, gone)
        ]
        is_covered = bool(tenure) and min(tenure) <= gone - _NOTICED_US and back + _NOTICED_US <= max(tenure)
        note = f"broker {broker}: {notices[0].id} to {notices[-1].id}"
        yield Fault(
            "bounce that the controller does not notice",
            None,
            frozenset({"R16"}),
            draft.made(),
            note,
            frozenset({broker}),
            severity,
            unprovable="" if is_covered else "the controller was not in office for half a minute before and after",
        )


def _epoch_at(site: Site, file: str, at: int) -> str | None:
    """The controller epoch of the last line that a controller wrote in a log up to an instant."""
    spoken = [line for line in site.lines if line.file == file and "broker_id" not in line.fields and line.at <= at]
    newest = max(spoken, key=lambda line: line.at, default=None)
    return None if newest is None else newest.fields.get("controller_epoch")


def _tells_of(line: Line, broker: int) -> bool:
    names = ("added_broker_ids", "deleted_broker_ids", "bounced_broker_ids", "broker_ids", "to_broker_id", "broker_id")
    is_change = line.event_type in ("broker_change", "broker_failed", "broker_started", "broker_change_notified")
    is_named = any(broker in ids(line.fields.get(name, "")) for name in names)
    return (is_change or line.event_type.startswith(("controller_connect", "broker_", "brokers_"))) and (
        is_named or line.event_type == "broker_change_notified"
    )


_RAISED = re.compile(r"((?:[Ee]poch|[Ii]ncremented)(?: epoch)? to )(\d+)")


def two_controllers(site: Site) -> Iterator[Fault]:
    """A controller's own line of its election has the epoch of the one before it, another broker's."""
    events = ("controller_epoch_incremented", "controller_elected")
    lines = list(site.events(*events, source_kind="controller_log"))
    held = {number(line, "controller_epoch"): line.broker_id for line in lines if number(line, "controller_epoch")}
    for line in lines:
        epoch = number(line, "controller_epoch") or 0
        text = _RAISED.sub(rf"\g<1>{epoch - 1}", site.raw(line))
        if epoch > 2 and text != site.raw(line) and held.get(epoch - 1, line.broker_id) != line.broker_id:
            draft = Draft(site)
            draft.put(line, text)
            yield Fault(
                "two controllers for one epoch", None, frozenset({"R11"}), draft.made(), f"{line.id} epoch {epoch}"
            )


REGISTRATIONS: tuple[Faults, ...] = (
    older_broker_epoch,
    older_epoch_in_cache,
    older_registration_time,
    bounce_unnoticed,
    two_controllers,
)
