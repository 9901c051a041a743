"""What each record does to the image: a function from the image before and a record to the states that it changes.

Kafka's own ``MetadataDelta`` and its parts (``TopicsDelta``, ``ClusterDelta``, ``FeaturesDelta``,
``ConfigurationsDelta``) throw where a record does not fit the image; here it changes nothing and the reason is told.
Records of other subjects (ACLs, quotas, producer ids, tokens, SCRAM, the migration's state) change nothing here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from reconstruct.model.metadata_log.values import (
    BrokerState,
    Change,
    ConfigResource,
    ConfigState,
    ControllerState,
    FeatureState,
    Image,
    Kind,
    MetadataRecord,
    PartitionState,
    State,
    Subject,
    TopicState,
)

#: ``leader`` of a change that leaves leader and leader epoch as they are (``LeaderConstants.NO_LEADER_CHANGE``).
NO_LEADER_CHANGE: Final = -2
#: ``leaderRecoveryState`` of a change that leaves it (``LeaderRecoveryState.NO_CHANGE``).
_NO_RECOVERY_CHANGE: Final = -1
_METADATA_VERSION: Final = "metadata.version"


class Applied(NamedTuple):
    """What a record changes; ``problem`` says why it does not fit the image, where it does not."""

    changes: tuple[Change, ...] = ()
    problem: str | None = None


_NOTHING: Final = Applied()


def applied(image: Image, record: MetadataRecord) -> Applied:
    """What the record makes of the image that the records before it made."""
    apply = _BY_TYPE.get(record.record_type)
    if apply is None:
        return _NOTHING
    try:
        return apply(image, record.fields)
    except (KeyError, TypeError, ValueError, AttributeError):
        return Applied((), f"the fields of the {record.record_type} are not those of its type")


def replay(records: Iterable[MetadataRecord], image: Image = MappingProxyType({})) -> dict[Subject, State]:
    """The image after all records, given in their order."""
    made = dict(image)
    for record in records:
        for subject, state in applied(made, record).changes:
            if state is None:
                made.pop(subject, None)
            else:
                made[subject] = state
    return made


def _ids(fields: Mapping[str, Any], name: str) -> tuple[int, ...]:
    return tuple(int(one) for one in fields.get(name) or ())


def _names(fields: Mapping[str, Any], name: str) -> tuple[str, ...]:
    return tuple(map(str, fields.get(name) or ()))


def _topic(image: Image, fields: Mapping[str, Any]) -> Applied:
    topic_id = str(fields["topicId"])
    return Applied(((Subject(Kind.TOPIC, topic_id), TopicState(str(fields["name"]), topic_id)),))


def _remove_topic(image: Image, fields: Mapping[str, Any]) -> Applied:
    """The topic, its partitions, and what was configured of it."""
    topic_id = str(fields["topicId"])
    topic = image.get(Subject(Kind.TOPIC, topic_id))
    if not isinstance(topic, TopicState):
        return Applied((), f"there is no topic {topic_id} to remove")
    gone = [subject for subject in image if subject.name == topic_id and subject.kind in (Kind.TOPIC, Kind.PARTITION)]
    config = Subject(Kind.CONFIG, f"{ConfigResource.TOPIC}:{topic.name}")
    return Applied(tuple((subject, None) for subject in (*gone, *([config] if config in image else []))))


def _partition(image: Image, fields: Mapping[str, Any]) -> Applied:
    state = PartitionState(
        _ids(fields, "replicas"),
        _ids(fields, "isr"),
        int(fields["leader"]),
        int(fields["leaderEpoch"]),
        int(fields["partitionEpoch"]),
        _ids(fields, "addingReplicas"),
        _ids(fields, "removingReplicas"),
        int(fields.get("leaderRecoveryState") or 0),
        _ids(fields, "eligibleLeaderReplicas"),
        _ids(fields, "lastKnownElr"),
        _names(fields, "directories"),
    )
    return Applied(((_partition_subject(fields), state),))


def _partition_subject(fields: Mapping[str, Any]) -> Subject:
    return Subject(Kind.PARTITION, str(fields["topicId"]), int(fields["partitionId"]))


def _partition_change(image: Image, fields: Mapping[str, Any]) -> Applied:
    subject = _partition_subject(fields)
    before = image.get(subject)
    if not isinstance(before, PartitionState):
        return Applied((), f"there is no partition {subject.partition_id} of topic {subject.name} to change")
    return Applied(((subject, merged(before, fields)),))


def merged(before: PartitionState, fields: Mapping[str, Any]) -> PartitionState:
    """``PartitionRegistration.merge``: what a PartitionChangeRecord does not have stays; one that names a leader raises
    the leader epoch, also for the leader there is, and each raises the partition epoch."""
    leader = fields.get("leader", NO_LEADER_CHANGE)
    recovery = fields.get("leaderRecoveryState", _NO_RECOVERY_CHANGE)
    is_elected = leader not in (None, NO_LEADER_CHANGE)

    def new(name: str, kept: tuple[int, ...]) -> tuple[int, ...]:
        return kept if fields.get(name) is None else _ids(fields, name)

    return PartitionState(
        new("replicas", before.replicas),
        new("isr", before.isr),
        int(leader) if is_elected else before.leader,
        before.leader_epoch + is_elected,
        before.partition_epoch + 1,
        new("addingReplicas", before.adding_replicas),
        new("removingReplicas", before.removing_replicas),
        before.leader_recovery_state if recovery in (None, _NO_RECOVERY_CHANGE) else int(recovery),
        new("eligibleLeaderReplicas", before.elr),
        new("lastKnownElr", before.last_known_elr),
        before.directories if fields.get("directories") is None else _names(fields, "directories"),
    )


def _clear_elr(image: Image, fields: Mapping[str, Any]) -> Applied:
    """Of one topic, or of all where none is named: a change of every partition that has any (4.1)."""
    name = str(fields.get("topicName") or "")
    topics = {
        subject.name: state.name
        for subject, state in image.items()
        if isinstance(state, TopicState) and name in ("", state.name)
    }
    if name and not topics:
        return Applied((), f"there is no topic {name} whose ELR could be cleared")
    cleared = {"eligibleLeaderReplicas": (), "lastKnownElr": ()}
    return Applied(
        tuple(
            (subject, merged(state, cleared))
            for subject, state in image.items()
            if isinstance(state, PartitionState) and subject.name in topics and (state.elr or state.last_known_elr)
        )
    )


def _supported(fields: Mapping[str, Any]) -> int | None:
    found = (one for one in fields.get("features") or () if one.get("name") == _METADATA_VERSION)
    return next((int(one["maxSupportedVersion"]) for one in found), None)


def _register_broker(image: Image, fields: Mapping[str, Any]) -> Applied:
    state = BrokerState(
        int(fields["brokerEpoch"]),
        str(fields.get("incarnationId") or ""),
        bool(fields.get("fenced", True)),
        bool(fields.get("inControlledShutdown", False)),
        fields.get("rack"),
        _names(fields, "logDirs"),
        _supported(fields),
        bool(fields.get("isMigratingZkBroker", False)),
    )
    return Applied(((Subject(Kind.BROKER, str(fields["brokerId"])), state),))


def _known_broker(image: Image, broker_id: Any, epoch: Any) -> tuple[Subject, BrokerState | None, str]:
    subject = Subject(Kind.BROKER, str(broker_id))
    known = image.get(subject)
    if not isinstance(known, BrokerState):
        return subject, None, f"broker {broker_id} is not registered"
    if known.broker_epoch != epoch:
        return subject, None, f"broker {broker_id} is registered with epoch {known.broker_epoch}, not {epoch}"
    return subject, known, ""


def _unregister_broker(image: Image, fields: Mapping[str, Any]) -> Applied:
    return Applied(((Subject(Kind.BROKER, str(fields["brokerId"])), None),))


def _fence(is_fenced: bool) -> Callable[[Image, Mapping[str, Any]], Applied]:
    def apply(image: Image, fields: Mapping[str, Any]) -> Applied:
        subject, known, problem = _known_broker(image, fields["id"], fields["epoch"])
        return Applied((), problem) if known is None else Applied(((subject, replace(known, is_fenced=is_fenced)),))

    return apply


def _registration_change(image: Image, fields: Mapping[str, Any]) -> Applied:
    """``fenced``: 1 fences, -1 unfences, 0 leaves it; ``inControlledShutdown``: 1 begins one. Both are tagged."""
    subject, known, problem = _known_broker(image, fields["brokerId"], fields["brokerEpoch"])
    if known is None:
        return Applied((), problem)
    fencing = int(fields.get("fenced") or 0)
    state = replace(
        known,
        is_fenced=known.is_fenced if fencing == 0 else fencing > 0,
        is_in_controlled_shutdown=known.is_in_controlled_shutdown or fields.get("inControlledShutdown") == 1,
        log_dirs=_names(fields, "logDirs") or known.log_dirs,
    )
    return Applied(((subject, state),))


def _register_controller(image: Image, fields: Mapping[str, Any]) -> Applied:
    state = ControllerState(str(fields.get("incarnationId") or ""), _supported(fields))
    return Applied(((Subject(Kind.CONTROLLER, str(fields["controllerId"])), state),))


def _feature(image: Image, fields: Mapping[str, Any]) -> Applied:
    level = int(fields["featureLevel"])
    return Applied(((Subject(Kind.FEATURE, str(fields["name"])), FeatureState(level) if level else None),))


def _config(image: Image, fields: Mapping[str, Any]) -> Applied:
    subject = Subject(Kind.CONFIG, f"{int(fields['resourceType'])}:{fields['resourceName']}")
    known = image.get(subject)
    settings = dict(known.settings) if isinstance(known, ConfigState) else {}
    settings.pop(str(fields["name"]), None)
    if fields.get("value") is not None:
        settings[str(fields["name"])] = str(fields["value"])
    return Applied(((subject, ConfigState(tuple(sorted(settings.items()))) if settings else None),))


_BY_TYPE: Final[Mapping[str, Callable[[Image, Mapping[str, Any]], Applied]]] = MappingProxyType(
    {
        "TopicRecord": _topic,
        "RemoveTopicRecord": _remove_topic,
        "PartitionRecord": _partition,
        "PartitionChangeRecord": _partition_change,
        "ClearElrRecord": _clear_elr,
        "RegisterBrokerRecord": _register_broker,
        "UnregisterBrokerRecord": _unregister_broker,
        "FenceBrokerRecord": _fence(True),
        "UnfenceBrokerRecord": _fence(False),
        "BrokerRegistrationChangeRecord": _registration_change,
        "RegisterControllerRecord": _register_controller,
        "FeatureLevelRecord": _feature,
        "ConfigRecord": _config,
    }
)
#: The types of records that change an image here.
REPLAYED: Final = frozenset(_BY_TYPE)
