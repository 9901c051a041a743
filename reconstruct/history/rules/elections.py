"""Elections: whom they chose, and whether they might (R08)."""

from __future__ import annotations

from reconstruct.findings import Finding, Verdicts
from reconstruct.history.case import Case
from reconstruct.history.elections import NEW_PARTITION, Election
from reconstruct.history.instants import utc


def judge_unclean_elections(case: Case, verdicts: Verdicts) -> None:
    """R08: a clean election takes the leader from the ISR before; an unclean one must have been allowed."""
    is_allowed = case.cluster.unclean_election_allowed(case.topic)
    for election in case.elections:
        if election.kind == NEW_PARTITION:
            continue
        if election.is_unclean is None:
            verdicts.unjudged("R08")
        elif not election.is_unclean:
            verdicts.kept("R08")
        else:
            verdicts.broken(_unclean(election, is_allowed))


def _unclean(election: Election, is_allowed: bool | None) -> Finding:
    isr = election.isr_before or ()
    loses_nothing = election.observed_leader in isr
    said = {
        True: "The configuration allows it",
        False: "The configuration does not allow it",
        None: "Whether the configuration allowed it is not in the evidence",
    }[is_allowed]
    if loses_nothing:
        loss = "it was the last member of the ISR, so nothing committed is lost"
    else:
        loss = f"committed records that only {', '.join(map(str, isr)) or 'the former ISR'} held are lost"
    return Finding(
        "R08",
        "unclean_election",
        "info" if loses_nothing else "error" if is_allowed is False else "warning",
        election.at,
        f"a leader from the ISR {','.join(map(str, isr))}" if isr else "a leader from the ISR",
        f"leader {election.observed_leader} at leader epoch {election.leader_epoch}",
        f"Broker {election.observed_leader} was elected at leader epoch {election.leader_epoch} ({utc(election.at)})"
        f" though the last ISR was {list(isr)}: {loss}. {said} (unclean.leader.election.enable).",
        election.evidence,
        broker_id=election.observed_leader,
    )
