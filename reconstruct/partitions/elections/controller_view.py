"""How a controller saw the brokers when it decided: live, shutting down, or gone.

A controller elects among the brokers of its own list, which it changes when it has processed a change of
``/brokers/ids``, not when that happens. It logs the list when it takes over and at each such change. Between a
controller's own lines their order is certain; against another clock it is not, and a list that lies within the slack
may have come before the decision or after it. A broker that asked for a controlled shutdown is still live, but no
election takes it until it is gone and back.

Sources: KafkaController, ReplicaStateMachine.BrokerChangeListener 0.8.0 to 0.10.2, KafkaController.BrokerChange since
0.11; ControllerContext.liveBrokerIds.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from reconstruct.cluster.spans import LiveView
from reconstruct.cluster.view import ClusterView
from reconstruct.model.versions import ASYNC_CONTROLLER_SINCE, BROKER_EPOCHS_SINCE
from reconstruct.time.instants import MAY_BE_LATER_US, at_of, may_be_later_us
from reconstruct.time.intervals import as_of

#: How far a decision's time may be from the controller's own where another clock tells it.
VIEW_SLACK_US: Final = 2_000_000
#: Two lines of one controller in the same instant may be in either order.
OWN_SLACK_US: Final = 2_000
#: A change of brokers is worked off within this time of the line that lists them.
_WORKED_OFF_US: Final = 30_000_000


class BrokerStatus(Enum):
    """What a broker was to a controller."""

    LIVE = "live"
    LEAVING = "shutting down"
    GONE = "not live"


ANYTHING: Final = frozenset(BrokerStatus)


@dataclass(frozen=True, slots=True)
class StateDecision:
    """When a state was decided and by whom; ``is_own_clock``: by a line of that controller.

    ``from_state`` is the partition's state before, where the controller logs the transition.
    """

    at: int
    controller_id: int | None = None
    controller_epoch: int | None = None
    from_state: str | None = None
    is_own_clock: bool = False
    evidence_id: str | None = None
    #: the controller's own time of it and the znode's lie too far apart.
    is_clock_doubted: bool = False

    @property
    def slack(self) -> int:
        """How far from it what stands beside it may have come before it or after it, µs."""
        return max(OWN_SLACK_US, may_be_later_us(self.at)) if self.is_own_clock else VIEW_SLACK_US


def possible_statuses(broker_id: int, decision: StateDecision, cluster: ClusterView) -> frozenset[BrokerStatus]:
    """Everything that the evidence allows the broker to have been to the controller that decided."""
    if not _is_placed(decision, cluster):
        return ANYTHING
    before, near = _lists(decision, cluster)
    known = [*before[-1:], *near]
    if not known:
        return _by_registrations(broker_id, decision, cluster)
    statuses = {BrokerStatus.LIVE if broker_id in view.live else BrokerStatus.GONE for view in known}
    asked = _asked_to_leave(broker_id, decision, cluster)
    if asked is not None:
        statuses = _leaving(broker_id, asked, decision, before, near, cluster)
    if _may_be_worked_off(broker_id, decision, before, cluster):
        statuses |= {BrokerStatus.LIVE, BrokerStatus.GONE}
    registered = registered_since_list(broker_id, decision, cluster)
    if True in registered and BrokerStatus.LEAVING not in statuses:
        if BrokerStatus.GONE in statuses and cluster.version.may_be_before(ASYNC_CONTROLLER_SINCE):
            statuses.add(BrokerStatus.LEAVING)  # the lists leave it out, and its request may be missing
        statuses.add(BrokerStatus.LIVE)
    if False in registered:
        if BrokerStatus.GONE not in statuses:
            statuses.add(BrokerStatus.LEAVING)  # it ends soon, and no list tells why
        statuses.add(BrokerStatus.GONE)
    return frozenset(statuses)


def registered_since_list(broker_id: int, decision: StateDecision, cluster: ClusterView) -> frozenset[bool | None]:
    """Whether the broker was registered around the decision, at no instant before the list that it was made by."""
    before, near = _lists(decision, cluster)
    latest = max((view.at for view in (*before, *near)), default=decision.at - VIEW_SLACK_US)
    instants = (decision.at + shift for shift in (-VIEW_SLACK_US, 0, VIEW_SLACK_US))
    registered = frozenset[bool | None]().union(
        *(_registered(broker_id, max(instant, latest), cluster) for instant in instants)
    )
    added = added_next(broker_id, decision, cluster)
    came_and_went = added is not None and any(
        interval.start > latest and interval.end is not None and interval.end <= added
        for interval in cluster.liveness.get(broker_id, ())
    )
    return registered if added is None or came_and_went else registered - {True}


def added_next(broker_id: int, decision: StateDecision, cluster: ClusterView) -> int | None:
    """When the controller's next list has the broker as a new one, all in the order of its own clock: it had not taken
    it in when it decided, unless a registration began and ended in between."""
    controller = decision.controller_id
    if controller is None or not decision.is_own_clock or controller in cluster.set_back:
        return None
    if not cluster.keeps_order(controller):
        return None
    begin, end = cluster.tenure_bounds(controller, decision.controller_epoch)
    own = cluster.live_views_of(controller, begin - VIEW_SLACK_US, end)
    following = own[bisect_right(own, decision.at + decision.slack, key=at_of) :][:1]
    return following[0].at if following and broker_id in following[0].added else None


def _registered(broker_id: int, instant: int, cluster: ClusterView) -> frozenset[bool | None]:
    """Whether the broker was registered then: both where its registration ended between two sightings around."""
    found = {cluster.is_live(broker_id, instant)}
    known = as_of(cluster.liveness.get(broker_id, ()), instant)
    since = None if known is None else known.value.ended_after
    if since is not None and since < instant:
        found.add(False)
    return frozenset(found)


def _is_placed(decision: StateDecision, cluster: ClusterView) -> bool:
    """Whether the decision's time and the tenure agree: else a clock is wrong, and no list can be put before it."""
    if decision.is_clock_doubted:
        return False
    tenure = cluster.tenure_of(decision.controller_epoch)
    if tenure is None:
        return True
    is_over = tenure.end is not None and decision.at > tenure.end + VIEW_SLACK_US
    return tenure.start - VIEW_SLACK_US <= decision.at and not is_over


def _lists(decision: StateDecision, cluster: ClusterView) -> tuple[Sequence[LiveView], Sequence[LiveView]]:
    """The controller's lists of that tenure: certainly before the decision, and within the slack."""
    begin, end = cluster.tenure_bounds(decision.controller_id, decision.controller_epoch)
    own = cluster.live_views_of(decision.controller_id, begin - VIEW_SLACK_US, end)
    widest = max(decision.slack, MAY_BE_LATER_US)
    first = bisect_left(own, decision.at - widest, key=at_of)
    before, near = own[:first], []
    for view in own[first : bisect_right(own, decision.at + widest, key=at_of)]:
        slack = max(decision.slack, may_be_later_us(view.at))
        if view.at < decision.at - slack:
            before.append(view)
        elif view.at <= decision.at + slack:
            near.append(view)
    return before, near


def _asked_to_leave(broker_id: int, decision: StateDecision, cluster: ClusterView) -> int | None:
    """When the broker last asked the controller for a controlled shutdown: a new controller does not know of it."""
    begin, _ = cluster.tenure_bounds(decision.controller_id, decision.controller_epoch)
    asked = [
        at
        for at, record in cluster.shutdown_requests.get(broker_id, ())
        if begin - VIEW_SLACK_US <= at <= decision.at + decision.slack
        and cluster.shutdown_controllers.get(record, decision.controller_id) == decision.controller_id
    ]
    return max(asked, default=None)


def _leaving(
    broker_id: int,
    asked: int,
    decision: StateDecision,
    before: Sequence[LiveView],
    near: Sequence[LiveView],
    cluster: ClusterView,
) -> set[BrokerStatus]:
    """Shutting down from the request until the broker is gone; up to 1.0 the lists leave it out from the request on.

    A later list that has it may be of a bounce, which ends the shutdown (since 2.2).
    """
    statuses = {BrokerStatus.LEAVING}
    if asked >= decision.at - decision.slack:
        statuses.add(BrokerStatus.LIVE)
    since = [view for view in before if view.at > asked]
    lost = [view for view in since if broker_id not in view.live]
    if lost:
        statuses = {BrokerStatus.LIVE} if broker_id in since[-1].live else {BrokerStatus.GONE}
    if any(broker_id not in view.live for view in near):
        statuses.add(BrokerStatus.GONE)
    if any(broker_id in view.live for view in (*since[-1:], *near)):
        statuses.add(BrokerStatus.LIVE)
    if cluster.version.may_be_before(ASYNC_CONTROLLER_SINCE) and BrokerStatus.GONE in statuses:
        statuses.add(BrokerStatus.LEAVING)
    return statuses


def _may_be_worked_off(
    broker_id: int, decision: StateDecision, before: Sequence[LiveView], cluster: ClusterView
) -> bool:
    """Since 2.2 the line comes first: then new brokers are taken in, bounced ones taken out and in, dead ones out."""
    if not before or not cluster.version.may_be_since(BROKER_EPOCHS_SINCE):
        return False
    latest = before[-1]
    if decision.at - latest.at > _WORKED_OFF_US:
        return False
    earlier = before[-2].live if len(before) > 1 else frozenset()
    was_added, was_removed = latest.live - earlier, earlier - latest.live
    is_dead_beside_new = broker_id in was_removed and bool(was_added)
    registrations = cluster.liveness.get(broker_id, ())
    has_bounced = broker_id in latest.live & earlier and any(
        interval.end is not None and latest.at - VIEW_SLACK_US <= interval.end <= decision.at + VIEW_SLACK_US
        for interval in registrations
    )
    return is_dead_beside_new or has_bounced


def _by_registrations(broker_id: int, decision: StateDecision, cluster: ClusterView) -> frozenset[BrokerStatus]:
    """By the broker's registration around the instant, where no list of the controller is known: nor are requests to
    leave, then."""
    instants = (decision.at + shift for shift in (-VIEW_SLACK_US, 0, VIEW_SLACK_US))
    states = frozenset[bool | None]().union(*(_registered(broker_id, instant, cluster) for instant in instants))
    if None in states:
        return ANYTHING
    alive = {BrokerStatus.LIVE, BrokerStatus.LEAVING} if True in states else set()
    return frozenset(alive | ({BrokerStatus.GONE} if False in states else set()))
