"""Kafka versions, and every quirk of the producer that the rules are gated by: dated, linked, in one place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import total_ordering
from typing import Final

#: Confluent Platform's release: the Kafka release inside.
CONFLUENT_RELEASES: Final[Mapping[tuple[int, ...], tuple[int, ...]]] = {
    (3, 0): (0, 10, 0),
    (3, 1): (0, 10, 1),
    (3, 2): (0, 10, 2),
    (3, 3): (0, 11, 0),
    **{(4, minor): (1, minor) for minor in range(2)},
    **{(5, minor): (2, minor) for minor in range(6)},
    **{(6, minor): (2, minor + 6) for minor in range(3)},
    **{(7, minor): (3, minor) for minor in range(10)},
}


@total_ordering
@dataclass(frozen=True, slots=True)
class KafkaVersion:
    """A released version; up to 0.11 the first two numbers are the major version, so 0.8.2 < 0.11.0 < 1.0."""

    parts: tuple[int, ...]

    @staticmethod
    def parse(text: str) -> KafkaVersion | None:
        """The version in ``text`` (``0.8.2.2``, ``3.9.1-rc0``, ``kafka_2.13-3.9.1``); None where there is none.

        Confluent's own numbers (``7.5.1-ccs``) are turned into those of the Kafka inside.
        """
        found = re.findall(r"\d+(?:\.\d+)+", text)
        if not found:
            return None
        parts = tuple(int(n) for n in found[-1].split(".")[:4])
        if re.search(r"-(ccs|ce)\b", text):
            return KafkaVersion((*CONFLUENT_RELEASES.get(parts[:2], parts[:2]), *parts[2:3]))
        return KafkaVersion(parts)

    def _padded(self) -> tuple[int, ...]:
        return (*self.parts, *(0,) * (4 - len(self.parts)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KafkaVersion) and self._padded() == other._padded()

    def __hash__(self) -> int:
        return hash(self._padded())

    def __lt__(self, other: KafkaVersion) -> bool:
        return self._padded() < other._padded()

    def __str__(self) -> str:
        return ".".join(map(str, self.parts))


def v(*parts: int) -> KafkaVersion:
    """Shorthand: ``v(2, 6)``."""
    return KafkaVersion(parts)


OLDEST: Final = v(0, 8, 0)
NEWEST: Final = v(4, 0)


@dataclass(frozen=True, slots=True)
class VersionRange:
    """What is known of a cluster's version: not below ``low``, not above ``high``, both inclusive."""

    low: KafkaVersion = OLDEST
    high: KafkaVersion = NEWEST

    @staticmethod
    def exactly(version: KafkaVersion) -> VersionRange:
        return VersionRange(version, version)

    def may_be_before(self, version: KafkaVersion) -> bool:
        """True unless the cluster is known to be ``version`` or later."""
        return self.low < version

    def may_be_since(self, version: KafkaVersion) -> bool:
        """True unless the cluster is known to be older than ``version``."""
        return self.high >= version

    def is_before(self, version: KafkaVersion) -> bool:
        """True where the cluster is known to be older than ``version``."""
        return not self.may_be_since(version)

    def is_since(self, version: KafkaVersion) -> bool:
        """True where the cluster is known to be ``version`` or later."""
        return not self.may_be_before(version)

    def __str__(self) -> str:
        return str(self.low) if self.low == self.high else f"{self.low} to {self.high}"


#: Nothing is known of the version.
ANY_VERSION: Final = VersionRange()


# --- the quirks -----------------------------------------------------------------------------------------------------

#: Topic deletion, and with it five replica states and StopReplica on OfflineReplica (KAFKA-330).
TOPIC_DELETION_SINCE: Final = v(0, 8, 1)
#: A dead replica of a topic being deleted may go from OfflineReplica to ReplicaDeletionIneligible; before, the attempt
#: was refused with an error that did no harm (ReplicaStateMachine 2.3.0).
OFFLINE_TO_INELIGIBLE_SINCE: Final = v(2, 3)
#: Replica transitions, partition to Offline and to NonExistent, and requests are logged at TRACE, and the shipped level
#: became INFO: a default log does not show them (log4j.properties 2.6.0).
TRANSITIONS_NOT_LOGGED_AT_INFO_SINCE: Final = v(2, 6)
#: The last member of the ISR is kept, with leader -1, when it goes offline (ReplicaStateMachine 1.1.0).
LAST_ISR_MEMBER_KEPT_SINCE: Final = v(1, 1)
#: KIP-455: reassignment state in the topic's znode; an overridden one may leave the ISR outside the assignment.
REASSIGNMENT_IN_TOPIC_ZNODE_SINCE: Final = v(2, 4)
#: A leader kept removed replicas in its ISR until it heard of the new assignment (KAFKA-9672).
LEADER_DROPS_REMOVED_REPLICAS_SINCE: Final = v(3, 0)
#: KIP-497: the controller writes the ISR for the leader (AlterIsr; inter-broker protocol 2.7-IV2).
ALTER_ISR_SINCE: Final = v(2, 7)
#: "ISR updated to ..." is logged at INFO: an ISR change without it was not committed (Partition 2.4.0).
ISR_COMMIT_LOGGED_AT_INFO_SINCE: Final = v(2, 4)
#: Until then the election for a reassignment did not ask whether the new leader was in the ISR (0.8.0).
REASSIGNMENT_NEEDS_ISR_SINCE: Final = v(0, 8, 1)
#: Requests and caches may restate an unchanged state with the epoch of a later controller (seen from 2.8).
REQUEST_RESTATES_CONTROLLER_EPOCH_SINCE: Final = v(2, 8)
#: unclean.leader.election.enable; before, an election was unclean whenever it had to be (KAFKA-1028).
UNCLEAN_ELECTION_CONFIGURABLE_SINCE: Final = v(0, 8, 2)
#: Its default became false (KIP-106).
UNCLEAN_ELECTION_OFF_BY_DEFAULT_SINCE: Final = v(0, 11)
