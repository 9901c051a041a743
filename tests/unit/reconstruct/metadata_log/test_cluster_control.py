"""What Kafka's own cases of registrations expect (ClusterControlManagerTest, 4.0): the same states, and no rule is
broken by a registration at the offset that the case gives it. Each test has the name of Kafka's.

What leaves no record is left out (``docs/kraft-cases.md``).
"""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from reconstruct.metadata_log.evidence import ClusterLog, CopySpan, LogRow
from reconstruct.metadata_log.timeline import replay_rows
from reconstruct.model.metadata_log.image import replay
from reconstruct.model.metadata_log.values import BrokerState, Kind, Subject

FENCE, UNFENCE, SHUTDOWN = 1, -1, 1
Records = tuple[tuple[int, str, dict[str, Any]], ...]


def registered(offset: int, broker: int, epoch: int, **fields: Any) -> tuple[int, str, dict[str, Any]]:
    known = {"brokerId": broker, "brokerEpoch": epoch, "incarnationId": "a", "rack": None, "fenced": True}
    return offset, "RegisterBrokerRecord", known | fields


def changed(offset: int, broker: int, epoch: int, **fields: Any) -> tuple[int, str, dict[str, Any]]:
    return offset, "BrokerRegistrationChangeRecord", {"brokerId": broker, "brokerEpoch": epoch, **fields}


def stands(records: Records, broker: int) -> BrokerState | None:
    """The broker as the records leave it; that they break no rule is asserted."""
    rows = [LogRow(f"r{offset}", offset, 1, kind, json.dumps(fields), 0, offset) for offset, kind, fields in records]
    verdicts = replay_rows(rows, ClusterLog("c", (CopySpan(9, 1, 0, 1000),), (), tuple(rows))).verdicts
    assert [finding.explanation for finding in verdicts.findings] == []
    state = replay(row.record for row in rows).get(Subject(Kind.BROKER, str(broker)))
    assert state is None or isinstance(state, BrokerState)
    return state


#: The records by which a broker was fenced and unfenced up to metadata.version 3.2, and since 3.3.
FENCING: Final = {
    "3.0": (
        (101, "UnfenceBrokerRecord", {"id": 1, "epoch": 100}),
        (102, "FenceBrokerRecord", {"id": 1, "epoch": 100}),
    ),
    "3.3": (changed(101, 1, 100, fenced=UNFENCE), changed(102, 1, 100, fenced=FENCE)),
}


@pytest.mark.parametrize("records", FENCING.values(), ids=FENCING)
def test_replay(records: Records) -> None:
    begun = (registered(100, 1, 100),)
    fenced = [stands((*begun, *records[:number]), 1) for number in range(3)]
    assert [state and (state.is_fenced, state.broker_epoch) for state in fenced] == [
        (True, 100),
        (False, 100),
        (True, 100),
    ]


def test_replay_register_broker_record() -> None:
    """A snapshot of an older controller may say all of it in one record."""
    leaving = stands((registered(100, 0, 100, inControlledShutdown=True),), 0)
    assert leaving is not None
    assert (leaving.is_fenced, leaving.is_in_controlled_shutdown) == (True, True)
    there = stands((registered(100, 0, 100), changed(101, 0, 100, fenced=UNFENCE)), 0)
    assert there is not None
    assert (there.is_fenced, there.is_in_controlled_shutdown) == (False, False)


@pytest.mark.parametrize("directories", [(), ("63k9SN1nQOS0dFHSCIMA0A", "Vm1MjsOCR1OjDDydOsDbzg")])
def test_register_broker_record_version(directories: tuple[str, ...]) -> None:
    """Before metadata.version 3.7 a registration has no log directories."""
    given = {"logDirs": list(directories)} if directories else {}
    state = stands((registered(123, 0, 123, incarnationId="0H4fUu1xQEKXFYwB1aBjhg", **given),), 0)
    assert state == BrokerState(123, "0H4fUu1xQEKXFYwB1aBjhg", is_fenced=True, log_dirs=directories)


def test_replay_broker_registration_change_record() -> None:
    records: Records = (registered(100, 0, 100), changed(101, 0, 100, fenced=UNFENCE))
    records += (changed(102, 0, 100, inControlledShutdown=SHUTDOWN), changed(103, 0, 100, fenced=UNFENCE))
    before, after = stands(records[:2], 0), stands(records, 0)
    assert before is not None
    assert (before.is_fenced, before.is_in_controlled_shutdown) == (False, False)
    assert after is not None
    assert (after.is_fenced, after.is_in_controlled_shutdown) == (False, True)


def test_unregister() -> None:
    begun = registered(100, 1, 100, rack="arack")
    assert stands((begun,), 1) == BrokerState(100, "a", is_fenced=True, rack="arack")
    assert stands((begun, (101, "UnregisterBrokerRecord", {"brokerId": 1, "brokerEpoch": 100})), 1) is None


def test_registrations_to_records() -> None:
    """What a snapshot says of each broker is what the records before it made."""
    records: Records = tuple(registered(100 + one, one, 100 + one, incarnationId=f"i{one}") for one in range(3))
    records += tuple((110 + one, "UnfenceBrokerRecord", {"id": one, "epoch": 100 + one}) for one in range(2))
    records += (changed(120, 0, 100, inControlledShutdown=SHUTDOWN),)
    assert [stands(records, one) for one in range(3)] == [
        BrokerState(100, "i0", is_fenced=False, is_in_controlled_shutdown=True),
        BrokerState(101, "i1", is_fenced=False),
        BrokerState(102, "i2", is_fenced=True),
    ]


@pytest.mark.parametrize("is_new", [True, False])
def test_re_registration_and_broker_epoch(is_new: bool) -> None:
    incarnation, epoch = ("b", 111) if is_new else ("a", 100)
    state = stands((registered(100, 1, 100), registered(111, 1, epoch, incarnationId=incarnation)), 1)
    assert state is not None
    assert (state.incarnation_id, state.broker_epoch) == (incarnation, epoch)
