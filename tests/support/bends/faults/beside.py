"""What other rules say beside a planted fault: of each kind, looked at by hand in the lines that it changes and keeps.

Each is true of them. A fault changes a decision and not all that follows from it: brokers still fetch from the leader
of before (R26), take what is planted (R20, R21, R24, R25), and what is written next does not follow from it (R02, R03,
R05, R09, R10, R15, R16).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_FETCHES: Final = "R26 fetched_from_wrong_leader"
_LOWER: Final = "R21 acted_on_lower_leader_epoch"
_IGNORED: Final = "R21 ignored_without_reason"
_ROLE: Final = "R20 role_not_decided"
_TWO_ACT: Final = "R25 two_acting_leaders"
_TWO_LEAD: Final = "R02 two_leaders_for_one_epoch"
_REPEATED: Final = "R03 partition_epoch_repeated"
_OUTSIDE: Final = "R05 leader_outside_isr"
_LEADER: Final = "R09 wrong_leader_elected"
_ISR: Final = "R09 wrong_isr_after_election"
_RAISED: Final = "R10 leader_epoch_raised_by_isr_change"
_NOT_SHRUNK: Final = "R15 isr_not_shrunk"
_NOT_SENT: Final = "R15 request_not_sent"

#: By kind of fault: rule and type of what else is true of its lines.
TRUE_OF_THE_LINES: Final[Mapping[str, frozenset[str]]] = {
    "leader epoch jumps": frozenset({_IGNORED}),
    "leader epoch repeats": frozenset({_TWO_ACT, _FETCHES}),
    "leader epoch falls": frozenset({_LOWER, _TWO_ACT, _FETCHES}),
    "ISR empty": frozenset(
        {_TWO_LEAD, _REPEATED, _OUTSIDE, _ISR, _ROLE, "R16 step_out_of_order", "R26 fetcher_left_failed"}
    ),
    "ISR outside of the assignment": frozenset({_ISR, _RAISED, _NOT_SHRUNK}),
    "ISR change raises the epoch": frozenset({_FETCHES, _IGNORED}),
    "two leaders for one epoch": frozenset({_REPEATED, _OUTSIDE}),
    "wrong leader elected": frozenset({_FETCHES, _OUTSIDE, _ROLE, _TWO_ACT}),
    "dead leader elected": frozenset({_FETCHES, _ROLE, _TWO_ACT, _RAISED}),
    "unclean election": frozenset({_FETCHES}),
    "unclean election in place of the last member": frozenset({_FETCHES}),
    "first leader out of turn": frozenset({_FETCHES, _OUTSIDE, _ROLE, _TWO_ACT}),
    "preferred election of another": frozenset({_FETCHES}),
    "new controller elects out of turn": frozenset({_FETCHES, _OUTSIDE}),
    "LeaderAndIsr with an epoch never decided": frozenset({_LOWER, _IGNORED, _ROLE}),
    "ISR keeps the dead replica": frozenset({"R24 cache_never_decided"}),
    "good request refused by an unknown epoch": frozenset({"R24 role_differs_at_rest"}),
    "broker takes a lower leader epoch": frozenset({_ROLE, _TWO_ACT}),
    "controlled shutdown leaves a leadership": frozenset({_NOT_SHRUNK, _IGNORED, _LEADER, _FETCHES}),
    "reassignment removes the old replicas first": frozenset({_NOT_SHRUNK, _NOT_SENT}),
    "reassignment shrinks before the new replicas are in the ISR": frozenset({_ISR}),
}
