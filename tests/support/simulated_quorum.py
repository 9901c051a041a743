"""A quorum's controller in small: what it writes of one topic while brokers come, go and catch up at random.

By what Kafka's sources of a release say (PartitionChangeBuilder, PartitionReassignmentReplicas, ClusterControlManager,
ReplicationControlManager), told once more and apart from the program's own model: what it writes breaks no rule.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final

from reconstruct.metadata_log.evidence import ClusterLog, CopySpan, LogRow
from reconstruct.model.metadata_log.image import merged
from reconstruct.model.metadata_log.values import ConfigResource, PartitionState
from reconstruct.model.versions import KafkaVersion, v

#: The last level of metadata.version of each release.
LEVELS: Final = {v(3, 7): 19, v(3, 9): 21, v(4, 0): 25, v(4, 1): 27, v(4, 2): 29, v(4, 3): 30}
NOBODY: Final = -1
OF_TOPICS: Final = ("TopicRecord", "RemoveTopicRecord", "PartitionRecord", "PartitionChangeRecord")
Record = tuple[str, dict[str, Any]]
MayLead = Callable[[int], bool]


class SimulatedQuorum:
    """``rows`` are the records of no topic, ``topic_rows`` those of the topic: of three partitions at random, or with
    these ``assignments``. Those of its ``brokers`` that are ``fenced`` stay so at first."""

    def __init__(
        self,
        seed: int,
        release: KafkaVersion,
        has_elr: bool,
        is_unclean: bool,
        min_isr: int,
        *,
        brokers: Sequence[int] = range(4),
        fenced: Collection[int] = (),
        assignments: Sequence[Sequence[int]] | None = None,
    ) -> None:
        self.random = random.Random(seed)
        self.release, self.has_elr, self.is_unclean, self.min_isr = release, has_elr, is_unclean, min_isr
        self.rows: list[LogRow] = []
        self.topic_rows: list[LogRow] = []
        self.offset = self.batch_offset = 0
        self.epochs: dict[int, int] = {}
        self.fenced: set[int] = set()
        self.leaving: set[int] = set()
        self.partitions: dict[int, PartitionState] = {}
        level = {"minSupportedVersion": 1, "maxSupportedVersion": LEVELS[release]}
        self.features = [{"name": "metadata.version", **level}]
        self.new_leader()
        self.write([("RegisterControllerRecord", {"controllerId": 9, "incarnationId": "c", "features": self.features})])
        self.write([("FeatureLevelRecord", {"name": "metadata.version", "featureLevel": LEVELS[release]})])
        if has_elr:
            self.write([("FeatureLevelRecord", {"name": "eligible.leader.replicas.version", "featureLevel": 1})])
            whole = {"resourceType": ConfigResource.BROKER, "resourceName": ""}
            self.write([("ConfigRecord", {**whole, "name": "min.insync.replicas", "value": str(min_isr)})])
        for broker in brokers:
            self.register(broker, is_clean=True)
            if broker not in fenced:
                self.unfence(broker)
        if assignments is None:
            assignments = [self.random.sample(range(4), 3) for _ in range(3)]
        self.create(assignments)

    @property
    def log(self) -> ClusterLog:
        return ClusterLog("c", (CopySpan(9, 1, 0, self.offset),), (), tuple(self.rows))

    def write(self, records: Sequence[Record]) -> None:
        """All of one event: in one batch, which may be that of the event before; NoOps may follow."""
        if not self.rows or self.random.random() < 0.7:
            self.batch_offset = self.offset
        for record_type, fields in records:
            row = LogRow(
                f"e{self.offset}", self.offset, 1, record_type, json.dumps(fields), self.offset, self.batch_offset
            )
            is_topics = record_type in OF_TOPICS or fields.get("resourceType") == ConfigResource.TOPIC
            (self.topic_rows if is_topics else self.rows).append(row)
            if record_type == "PartitionChangeRecord":
                number = fields["partitionId"]
                self.partitions[number] = merged(self.partitions[number], fields)
            self.offset += 1
        self.offset += self.random.choice([0, 0, 1, 5])

    def create(self, assignments: Sequence[Sequence[int]], **config: str) -> None:
        """The topic, where it has partitions."""
        if assignments:
            of_topic = {"resourceType": ConfigResource.TOPIC, "resourceName": "t"}
            settings = [("ConfigRecord", {**of_topic, "name": name, "value": value}) for name, value in config.items()]
            self.write([("TopicRecord", {"name": "t", "topicId": "T"}), *settings])
        self.add(assignments)

    def add(self, assignments: Sequence[Sequence[int]]) -> None:
        """Partitions behind those that there are."""
        for partition, replicas in enumerate(assignments, len(self.partitions)):
            isr = [one for one in replicas if self.is_active(one)]
            self.partitions[partition] = PartitionState(tuple(replicas), tuple(isr), isr[0], 0, 0)
            of = {"leader": isr[0], "leaderEpoch": 0, "partitionEpoch": 0, "replicas": list(replicas), "isr": isr}
            self.write([("PartitionRecord", {"topicId": "T", "partitionId": partition, **of})])

    def delete(self) -> None:
        """The topic and all that is known of it."""
        self.write([("RemoveTopicRecord", {"topicId": "T"})])
        self.partitions.clear()

    # --- brokers

    def is_active(self, broker: int) -> bool:
        return broker not in self.fenced | self.leaving

    def new_leader(self) -> None:
        self.write([("LeaderChangeMessage", {"leaderId": 9, "voters": [{"voterId": 9}]})])

    def register(self, broker: int, is_clean: bool) -> None:
        """A new process; what it may have lost is no longer eligible."""
        records: list[Record] = []
        if broker in self.epochs and self.has_elr and not is_clean:
            for members in ([p for p, of in self.partitions.items() if broker in of.isr], self.eligible_in(broker)):
                records += self.without(members, broker, is_unclean=True)
        elif broker in self.epochs and self.release >= v(3, 9):
            records = self.without(self.in_sync_in(broker), broker)
        self.epochs[broker] = self.offset
        self.fenced.add(broker)
        self.leaving.discard(broker)
        given = {"brokerId": broker, "brokerEpoch": self.offset, "incarnationId": f"i{self.offset}", "fenced": True}
        self.write([*records, ("RegisterBrokerRecord", {**given, "features": self.features})])

    def change(self, broker: int, **fields: int) -> Record:
        return "BrokerRegistrationChangeRecord", {"brokerId": broker, "brokerEpoch": self.epochs[broker], **fields}

    def fence(self, broker: int) -> None:
        records = self.without(self.in_sync_in(broker), broker)
        self.fenced.add(broker)
        self.write([*records, self.change(broker, fenced=1)])

    def unfence(self, broker: int) -> None:
        self.fenced.discard(broker)
        without_leader = [p for p, of in self.partitions.items() if of.leader == NOBODY]
        self.write([self.change(broker, fenced=-1), *self.without(without_leader, None)])

    def shut_down(self, broker: int) -> None:
        records = self.without(self.in_sync_in(broker), broker)
        self.leaving.add(broker)
        self.write([self.change(broker, inControlledShutdown=1), *records])

    def in_sync_in(self, broker: int) -> list[int]:
        return [number for number, of in self.partitions.items() if broker in of.isr]

    def eligible_in(self, broker: int) -> list[int]:
        return [number for number, of in self.partitions.items() if broker in of.elr]

    def without(self, partitions: Iterable[int], broker: int | None, is_unclean: bool = False) -> list[Record]:
        """What becomes of partitions when a broker is taken away."""
        found: list[Record] = []
        for number in partitions:
            isr = [one for one in self.partitions[number].isr if one != broker]
            found += self.built(
                number, isr, lambda one: one != broker and self.is_active(one), lost=broker if is_unclean else None
            )
        return found

    # --- partitions

    def built(
        self,
        number: int,
        isr: Sequence[int],
        may_lead: MayLead | None = None,
        election: str | None = None,
        assignment: tuple[Collection[int], Collection[int], Collection[int]] | None = None,
        lost: int | None = None,
    ) -> list[Record]:
        """PartitionChangeBuilder.build with this target ISR; ``assignment`` are replicas, adding, removing."""
        of = self.partitions[number]
        may_lead = may_lead or self.is_active
        kind = election or ("unclean" if self.is_unclean else "online")
        replicas, adding, removing = map(list, assignment or (of.replicas, of.adding_replicas, of.removing_replicas))
        isr = list(isr)
        left = [one for one in replicas if one not in removing]
        in_sync = [one for one in isr if one not in removing]
        if (adding or removing) and left and in_sync and self.ends(adding, removing, left, in_sync):
            replicas, isr, adding, removing = left, in_sync, [], []
        elr = list(of.elr)
        if self.has_elr:
            candidates = dict.fromkeys([*elr, *of.isr])
            # getTopicEffectiveMinIsr: at most as many as the topic's first partition has replicas
            is_small = len(isr) < min(self.min_isr, len(self.partitions[0].replicas))
            elr = [one for one in candidates if is_small and one not in isr and one != lost]
        leader, is_unclean = self.elected(of, replicas, isr, elr, may_lead, kind)
        fields: dict[str, Any] = {}
        if leader != of.leader:
            fields["leader"] = leader
            if leader in elr:
                isr, elr = [leader], [one for one in elr if one != leader]
            if is_unclean:
                fields |= {"isr": [leader]} | ({} if of.leader_recovery_state else {"leaderRecoveryState": 1})
        elif not {*of.replicas} <= {*replicas}:
            fields["leader"] = of.leader
        if "isr" in fields or not self.has_elr:
            elr = []
        if "isr" not in fields and (isr or self.has_elr) and tuple(isr) != of.isr:
            fields["isr"] = isr
        fields |= self.last_known(of, fields)
        new = {
            "eligibleLeaderReplicas": elr,
            "replicas": replicas,
            "addingReplicas": adding,
            "removingReplicas": removing,
        }
        old = (of.elr, of.replicas, of.adding_replicas, of.removing_replicas)
        fields |= {name: value for (name, value), known in zip(new.items(), old, strict=True) if tuple(value) != known}
        return [("PartitionChangeRecord", {"topicId": "T", "partitionId": number, **fields})] if fields else []

    def ends(self, adding: Sequence[int], removing: Sequence[int], left: Sequence[int], isr: Sequence[int]) -> bool:
        """PartitionReassignmentReplicas.maybeCompleteReassignment."""
        if v(3, 8) <= self.release < v(4, 3):
            return {*left} <= {*isr}
        waits_for_all = self.release >= v(4, 3) and len(adding) < len(removing)
        return {*adding} <= {*isr} and (not waits_for_all or {*left} <= {*isr})

    def elected(
        self, of: PartitionState, replicas: list[int], isr: list[int], elr: list[int], may_lead: MayLead, kind: str
    ) -> tuple[int, bool]:
        """The leader, and whether it was elected uncleanly."""
        order = [of.leader, *replicas] if kind != "preferred" else [replicas[0], of.leader, *replicas]
        valid = [one for one in order if (one in isr or (not isr and one in elr)) and may_lead(one)]
        if valid:
            return valid[0], False
        if self.has_elr and not isr and not elr and len(of.last_known_elr) == 1:
            (last,) = of.last_known_elr
            if self.release < v(4, 1) or may_lead(last):
                return last, True
        able = [one for one in replicas if may_lead(one)] if kind == "unclean" else []
        return (able[0], True) if able else (NOBODY, False)

    def last_known(self, of: PartitionState, fields: dict[str, Any]) -> dict[str, Any]:
        """PartitionChangeBuilder.maybeUpdateLastKnownLeader, which 4.1.2 changed."""
        if not self.has_elr:
            return {}
        leader = fields.get("leader")
        if self.release < v(4, 2):
            if fields.get("isr") == [] and of.last_known_elr != (of.leader,):
                return {"lastKnownElr": [of.leader]}
            leads = (leader is not None and leader >= 0) or (of.leader != NOBODY and leader != NOBODY)
        else:
            if leader == NOBODY and not of.last_known_elr:
                return {"lastKnownElr": [of.leader]}
            leads = leader is not None and leader >= 0
        return {"lastKnownElr": []} if leads and of.last_known_elr else {}

    # --- what happens

    def step(self) -> None:
        """Something at random, if it can be."""
        broker, number = self.random.randrange(4), self.random.randrange(3)
        of = self.partitions[number]
        what = self.random.choice(["broker", "broker", "broker", "isr", "isr", "reassign", "elect", "other"])
        if what == "broker" and broker in self.fenced:
            if broker in self.leaving or self.random.random() < 0.4:
                self.register(broker, is_clean=self.random.random() < 0.5)
            else:
                self.unfence(broker)
        elif what == "broker":
            self.shut_down(broker) if self.random.random() < 0.2 and self.is_active(broker) else self.fence(broker)
        elif what == "isr" and of.leader != NOBODY and self.is_active(of.leader):
            self.alter(number)
        elif what == "reassign":
            self.reassign(number)
        elif what == "elect":
            self.write_if_any(self.built(number, of.isr, election="unclean" if of.leader == NOBODY else "preferred"))
        elif what == "other" and self.random.random() < 0.3:
            self.new_leader()

    def write_if_any(self, records: Sequence[Record]) -> None:
        if records:
            self.write(records)

    def alter(self, number: int) -> None:
        """The leader asks for another ISR, or says that it has recovered."""
        of = self.partitions[number]
        if of.leader_recovery_state:
            fields = {"topicId": "T", "partitionId": number, "leaderRecoveryState": 0}
            self.write([("PartitionChangeRecord", fields)])
            return
        others = [one for one in of.replicas if one != of.leader and self.is_active(one) and self.random.random() < 0.7]
        self.write_if_any(self.built(number, [of.leader, *others]))

    def reassign(self, number: int) -> None:
        """To other replicas, or back where that is under way."""
        of = self.partitions[number]
        if of.is_reassigned:
            if {*of.isr} - {*of.adding_replicas} and self.random.random() < 0.3:
                self.call_back(number)
            return
        self.move(number, self.random.sample(range(4), self.random.choice([1, 2, 3])))

    def move(self, number: int, target: Sequence[int]) -> None:
        """PartitionReassignmentReplicas of the replicas that are there and of others."""
        of = self.partitions[number]
        removing, adding = sorted({*of.replicas} - {*target}), sorted({*target} - {*of.replicas})
        self.write_if_any(self.built(number, of.isr, assignment=([*target, *removing], adding, removing)))

    def call_back(self, number: int) -> None:
        """PartitionReassignmentRevert."""
        of = self.partitions[number]
        before = [one for one in of.replicas if one not in of.adding_replicas]
        in_sync = [one for one in of.isr if one in before]
        self.write_if_any(self.built(number, in_sync, assignment=(before, (), ())))
