"""What a broker prints of its configuration when it starts: the settings that a rule reads, no others."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

from ingest.shapes.values import Fields


class BrokerSetting(StrEnum):
    """A setting of brokers that some rule judges by, as ``server.properties`` names it."""

    MIN_ISR = "min.insync.replicas"
    UNCLEAN = "unclean.leader.election.enable"
    LAG_TIME = "replica.lag.time.max.ms"
    LAG_MESSAGES = "replica.lag.max.messages"
    FETCHERS = "num.replica.fetchers"
    SESSION_TIMEOUT = "zookeeper.session.timeout.ms"
    CHECKPOINT_INTERVAL = "replica.high.watermark.checkpoint.interval.ms"
    PROTOCOL = "inter.broker.protocol.version"


_NAMES: Final = "|".join(map(re.escape, BrokerSetting))
_LISTED: Final = re.compile(rf"^[ \t]*({_NAMES}) = (\S+)[ \t\r]*$", re.ASCII | re.MULTILINE)
_OVERRIDDEN: Final = re.compile(rf"({_NAMES}) is overridden to (\S+)", re.ASCII)


def listed(text: str) -> Fields:
    """The lines ``key = value`` of AbstractConfig.logAll (since 0.9): what holds, defaults and, since 1.1, dynamic
    settings included."""
    return dict(_LISTED.findall(text))


def overridden(text: str) -> Fields:
    """``KEY is overridden to VALUE``, as 0.8's VerifiableProperties prints each property that its file sets."""
    found = _OVERRIDDEN.fullmatch(text)
    return {} if found is None else {found[1]: found[2]}
