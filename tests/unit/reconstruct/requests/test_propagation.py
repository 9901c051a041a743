"""What is judged of one request: each finding, beside the legal neighbour that must not be one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconstruct.cluster.spans import Departure, LiveView, LogSpan, Registration, Tenure
from reconstruct.cluster.view import ClusterView
from reconstruct.findings.verdicts import Finding, Verdicts
from reconstruct.model.versions import VersionRange, v
from reconstruct.requests.evidence import Request
from reconstruct.requests.lossy_logs import MissingLines, lossy_brokers, missing_lines
from reconstruct.requests.rules.acceptance import judge_acceptance
from reconstruct.requests.rules.propagation import judge_propagation
from reconstruct.requests.timeline import outcome_of
from reconstruct.time.intervals import Interval

S = 1_000_000
START = 1_000 * S
END = START + 3_600 * S


def view(version: tuple[int, ...] = (1, 1, 1)) -> ClusterView:
    """Three brokers, live and logging at TRACE all the time, broker 1 the controller at epoch 4."""
    return ClusterView(
        "c",
        version=VersionRange.exactly(v(*version)),
        tenures=(Tenure(1, 4, START, None, ("elected",), "TRACE"),),
        liveness={b: (Interval(START, None, Registration(), ()),) for b in (1, 2, 3)},
        process_starts={b: ((START - S, f"start-{b}"),) for b in (1, 2, 3)},
        logs={b: (LogSpan(START - S, END, "TRACE"),) for b in (1, 2, 3)},
    )


SENT = Request(
    "c",
    1,
    4,
    2,
    "LEADER_AND_ISR",
    partitions=2,
    sent_at=START + 60 * S,
    sent_ref="sent",
    next_received_at=START + 61 * S,
)
DONE = replace(
    SENT,
    correlation_id=7,
    received_at=START + 60 * S + 5_000,
    received_ref="received",
    lines=2,
    received_lines=2,
    started=2,
    completed=2,
    applied_lines=2,
    applied_at=START + 60 * S + 9_000,
    applied_ref="completed",
    acknowledged_at=START + 60 * S + 10_000,
    acknowledged_ref="answer",
    response_error=0,
    accepts=True,
)


def findings(request: Request, cluster: ClusterView) -> list[Finding]:
    verdicts = Verdicts()
    judge_propagation(request, cluster, verdicts)
    judge_acceptance(request, cluster, verdicts)
    return verdicts.findings


def types(request: Request, cluster: ClusterView) -> list[tuple[str, str]]:
    return [(f.divergence_type, f.severity) for f in findings(request, cluster)]


def counts(request: Request, cluster: ClusterView) -> dict[tuple[str, str], int]:
    verdicts = Verdicts()
    judge_propagation(request, cluster, verdicts)
    judge_acceptance(request, cluster, verdicts)
    return dict(verdicts.counts)


def test_a_request_that_is_sent_received_handled_and_answered_keeps_all_rules() -> None:
    assert counts(DONE, view()) == {("R23", "kept"): 1, ("R12", "kept"): 1}
    assert outcome_of(DONE, view()) == "applied"


def test_a_request_that_a_live_broker_with_a_whole_log_never_received_is_found() -> None:
    (finding,) = findings(SENT, view())
    assert (finding.rule_id, finding.divergence_type, finding.severity) == ("R23", "request_not_received", "warning")
    assert finding.broker_id == 2
    assert finding.evidence == ("sent",)
    assert outcome_of(SENT, view()) == "not_received"


def resigned(second: int) -> Tenure:
    return replace(view().tenures[0], end=START + second * S)


DIED = {2: (Interval(START, START + 60 * S + 500_000, Registration("session_expired"), ()),)}
CONTROLLER_DIED = {1: (Interval(START, START + 60 * S + 1, Registration(), ()),)}
RESTARTED = {2: ((START - S, "start-2"), (START + 60 * S + 500_000, "again"))}


@pytest.mark.parametrize(
    "cluster",
    [
        pytest.param(replace(view(), liveness={**view().liveness, **DIED}), id="the broker died soon after"),
        pytest.param(replace(view(), liveness={**view().liveness, 2: ()}), id="nothing tells whether it was live"),
        pytest.param(replace(view(), process_starts=RESTARTED), id="its process was started again"),
        pytest.param(replace(view(), shutdown_requests={2: ((START + 60 * S, "asked"),)}), id="it was shutting down"),
        pytest.param(
            replace(view(), live_views=(LiveView(START + 61 * S, 1, frozenset({1, 3}), "listed"),)),
            id="the controller did not list it",
        ),
        pytest.param(
            replace(view(), tenures=(*view().tenures, Tenure(3, 5, START + 61 * S, None, (), "TRACE"))),
            id="another controller took over",
        ),
        pytest.param(
            replace(view(), liveness={**view().liveness, **CONTROLLER_DIED}),
            id="the controller died",
        ),
        pytest.param(replace(view(), tenures=(resigned(61),)), id="the controller resigned"),
        pytest.param(replace(view(), lossy_logs=frozenset({2})), id="its log lacks lines"),
        pytest.param(
            replace(view(), logs={**view().logs, 2: (LogSpan(START, END, "INFO"),)}), id="its log is of level INFO"
        ),
        pytest.param(
            replace(view(), logs={**view().logs, 2: (LogSpan(START, START + 60 * S, "TRACE"),)}), id="its log ends"
        ),
    ],
)
def test_a_request_that_may_have_been_dropped_or_gone_unlogged_accuses_nobody(cluster: ClusterView) -> None:
    assert counts(SENT, cluster) == {("R23", "cannot_be_judged"): 1}
    assert outcome_of(SENT, cluster) == "unknown"


def test_a_broker_whose_last_sign_of_life_is_of_before_accuses_nobody() -> None:
    """All processes ended at once, and the next that the file tells of is days later."""

    def ended(second: int) -> ClusterView:
        departure = Departure(START + second * S, START + 300 * S, START + second * S, START + 300 * S, ("last",))
        return replace(view(), departures={2: (departure,)})

    assert types(SENT, ended(72)) == [("request_not_received", "warning")]
    for second in (30, 70):
        assert counts(SENT, ended(second)) == {("R23", "cannot_be_judged"): 1}
        assert outcome_of(SENT, ended(second)) == "unknown"
    before = Departure(START + 10 * S, START + 20 * S, START + 10 * S, START + 50 * S, ("last",))
    assert types(SENT, replace(view(), departures={2: (before,)})) == [("request_not_received", "warning")]


def test_of_a_cluster_that_was_created_again_only_a_later_receipt_shows_that_the_broker_lived_on() -> None:
    again = replace(view(), recreations=(START + 300 * S,))
    assert types(SENT, again) == [("request_not_received", "warning")]
    for following in (None, START + 301 * S):
        silent = replace(SENT, next_received_at=following)
        assert types(silent, view()) == [("request_not_received", "warning")]
        assert counts(silent, again) == {("R23", "cannot_be_judged"): 1}
        assert outcome_of(silent, again) == "unknown"


def test_a_request_without_partitions_leaves_no_line_at_its_broker() -> None:
    empty = replace(SENT, api="UPDATE_METADATA", partitions=0)
    assert counts(empty, view()) == {("R23", "cannot_be_judged"): 1}
    answered = replace(empty, acknowledged_at=START + 61 * S, response_error=0)
    assert counts(answered, view()) == {("R23", "kept"): 1}
    assert outcome_of(answered, view()) == "applied"


def test_a_request_to_a_former_registration_leaves_no_line_from_2_2_on() -> None:
    just_back = {**view().process_starts, 2: ((START + 50 * S, "again"),)}
    assert types(SENT, replace(view((2, 1, 1)), process_starts=just_back)) == [("request_not_received", "warning")]
    assert types(SENT, replace(view((2, 2, 0)), process_starts=just_back)) == []


def test_the_last_request_of_a_connection_is_lost_only_after_two_minutes() -> None:
    last = replace(SENT, next_received_at=None)
    assert types(last, view()) == [("request_not_received", "warning")]
    assert types(last, replace(view(), tenures=(resigned(160),))) == [], "its controller had resigned by then"
    assert types(SENT, replace(view(), tenures=(resigned(160),))) == [("request_not_received", "warning")]
    short = replace(view(), logs={**view().logs, 2: (LogSpan(START, START + 150 * S, "TRACE"),)})
    assert counts(last, short) == {("R23", "cannot_be_judged"): 1}


def test_what_was_received_next_of_an_unknown_sending_may_be_the_request() -> None:
    assert counts(replace(SENT, is_next_unsent=True), view()) == {("R23", "cannot_be_judged"): 1}
    assert outcome_of(replace(SENT, is_next_unsent=True), view()) == "unknown"


UNSENT = replace(DONE, sent_at=None, sent_ref=None)


@pytest.mark.parametrize("broker_id", [1, 2])
def test_a_clock_that_was_set_back_about_then_may_tell_of_the_receipt_before_the_sending(broker_id: int) -> None:
    """bloquity: sent at 04:08:40.899, received at 04:08:37.338, further down in the same file."""
    known = view()
    back = LogSpan(START - S, END, "TRACE", most_back_us=3_500_000)
    set_back = replace(known, logs={**known.logs, broker_id: (back,)})
    assert types(SENT, known) == [("request_not_received", "warning")]
    assert types(SENT, set_back) == []
    unconnected = replace(SENT, unconnected_lines=2, unconnected_refs=("failed",))
    assert types(unconnected, set_back) == [("request_not_received", "warning")]
    elsewhere = LogSpan(START - 9 * S, START - 5 * S, "TRACE", most_back_us=3_500_000)
    other_file = replace(known, logs={**known.logs, broker_id: (elsewhere, *known.logs[broker_id])})
    assert types(SENT, other_file) == [("request_not_received", "warning")]


def test_a_request_that_its_controller_never_sent_is_a_warning_since_a_line_may_be_lost() -> None:
    (finding,) = findings(UNSENT, view())
    assert (finding.divergence_type, finding.severity) == ("request_never_sent", "warning")
    # a log that begins in mid-tenure, but before what the broker received before
    later = replace(view(), logs={**view().logs, 1: (LogSpan(START + 30 * S, END, "TRACE"),)})
    assert types(replace(UNSENT, sent_before=START + 40 * S), later) == [("request_never_sent", "warning")]
    assert finding.evidence == ("received", "completed", "answer", "elected")


@pytest.mark.parametrize(
    ("request_", "cluster"),
    [
        pytest.param(replace(UNSENT, is_repeated=True), view(), id="sent again on another connection"),
        pytest.param(replace(UNSENT, is_lost_before=True), view(), id="a broker that hung handled it at last"),
        pytest.param(UNSENT, replace(view(), lossy_logs=frozenset({1})), id="the controller's log lacks lines"),
        pytest.param(
            UNSENT,
            replace(view(), tenures=tuple(replace(tenure, start=START + 200 * S) for tenure in view().tenures)),
            id="of the tenure only later lines are known",
        ),
        pytest.param(
            UNSENT,
            replace(view(), logs={**view().logs, 1: (LogSpan(START + 30 * S, END, "TRACE"),)}),
            id="the controller's log begins in mid-tenure",
        ),
        pytest.param(replace(UNSENT, controller_id=3000), view(), id="a controller that is no broker"),
        pytest.param(replace(UNSENT, api="UPDATE_METADATA"), view((2, 6, 0)), id="a sending that names no partition"),
    ],
)
def test_a_request_whose_sending_may_be_unlogged_accuses_nobody(request_: Request, cluster: ClusterView) -> None:
    assert counts(request_, cluster)["R23", "cannot_be_judged"] == 1
    assert not findings(request_, cluster)


SILENT = replace(DONE, started=0, completed=0, applied_lines=0, applied_at=None, applied_ref=None)


def test_a_request_that_is_received_and_not_handled_is_found() -> None:
    (finding,) = findings(SILENT, view())
    assert (finding.divergence_type, finding.severity) == ("request_not_handled", "warning")
    assert "though the request was answered at" in finding.explanation
    assert types(replace(SILENT, ignored=2), view()) == []
    assert types(replace(SILENT, skipped=2), view()) == []
    died = replace(view(), liveness={**view().liveness, **DIED})
    answered_behind_it = replace(SILENT, acknowledged_at=None, next_acknowledged_at=START + 80 * S)
    assert types(answered_behind_it, view()) == [("request_not_handled", "warning")]
    assert counts(answered_behind_it, died)["R23", "cannot_be_judged"] == 1
    assert outcome_of(replace(SILENT, ignored=2), view()) == "ignored_stale"
    assert outcome_of(replace(SILENT, failed=1), view()) == "failed"


def test_a_request_is_known_not_to_be_handled_where_it_or_a_later_one_is_answered_or_applied_soon() -> None:
    """SpeckVonSchmeck, tool: a broker that hangs as it opens a log receives the same again each half minute."""
    waiting = replace(SILENT, acknowledged_at=None, acknowledged_ref=None, next_acknowledged_at=None)
    assert counts(waiting, view())["R23", "cannot_be_judged"] == 1
    assert SILENT.received_at is not None
    (finding,) = findings(replace(waiting, next_acknowledged_at=SILENT.received_at + 60 * S), view())
    assert "though a later request was answered at" in finding.explanation
    (finding,) = findings(replace(waiting, next_applied_at=SILENT.received_at + S), view())
    assert "though a later request was applied at" in finding.explanation
    late = SILENT.received_at + 61 * S
    assert counts(replace(waiting, next_acknowledged_at=late), view())["R23", "cannot_be_judged"] == 1
    assert counts(replace(SILENT, acknowledged_at=late), view())["R23", "cannot_be_judged"] == 1


def test_an_answer_that_is_missing_between_others_is_an_info() -> None:
    unanswered = replace(DONE, acknowledged_at=None, acknowledged_ref=None, next_acknowledged_at=START + 70 * S)
    assert types(unanswered, view()) == [("request_not_answered", "info")]
    assert types(replace(unanswered, next_acknowledged_at=None), view()) == []
    short = replace(view(), logs={**view().logs, 1: (LogSpan(START, START + 60 * S, "TRACE"),)})
    assert types(unanswered, short) == []


STALE = replace(
    DONE, controller_epoch=4, accepted_epoch_before=5, accepted_at_before=START + 30 * S, accepted_ref_before="higher"
)


def with_successor(cluster: ClusterView) -> ClusterView:
    return replace(cluster, tenures=(*cluster.tenures, Tenure(3, 5, START + 20 * S, None, (), "TRACE")))


def test_a_broker_that_accepts_a_lower_controller_epoch_than_before_is_an_error() -> None:
    (finding,) = findings(STALE, with_successor(view()))
    assert (finding.rule_id, finding.divergence_type, finding.severity) == ("R12", "accepted_stale_controller", "error")
    assert finding.evidence[-1] == "higher"


def test_a_broker_that_was_started_again_knows_no_epoch() -> None:
    again = {2: ((START - S, "start-2"), (START + 40 * S, "again"))}
    assert types(STALE, replace(with_successor(view()), process_starts=again)) == []


def test_what_a_broker_has_not_seen_it_need_not_refuse() -> None:
    """A paused controller that accepts its own old UpdateMetadata, a successor being in office."""
    own = replace(STALE, to_broker_id=1, accepted_epoch_before=4)
    assert types(own, with_successor(view())) == []


def test_up_to_0_8_1_requests_may_pass_each_other() -> None:
    assert types(STALE, with_successor(view((0, 8, 1)))) == [("accepted_stale_controller", "warning")]
    unknown = replace(with_successor(view()), process_starts={}, liveness={})
    assert types(STALE, unknown) == [("accepted_stale_controller", "warning")]


def test_a_controller_that_is_known_only_behind_a_higher_epoch_may_be_another_cluster_s() -> None:
    """KAFKA_Django_Fastapi: epoch 5, and 45 minutes later another broker in epoch 1; no log has the start between."""
    covered = replace(with_successor(view()), logs={2: (LogSpan(START - 900 * S, END, "TRACE"),)})
    unknown = replace(covered, process_starts={}, liveness={})
    for before, expected in ((START - 59 * S, [("accepted_stale_controller", "warning")]), (START - 61 * S, [])):
        assert types(replace(STALE, accepted_at_before=before), unknown) == expected
    one_process = replace(covered, process_starts={2: ((START - 900 * S, "start-2"),)})
    earlier = replace(STALE, accepted_at_before=START - 61 * S)
    assert types(earlier, one_process) == [("accepted_stale_controller", "error")]


def test_a_cluster_created_again_counts_its_epochs_anew() -> None:
    tenures = (Tenure(3, 5, START - 900 * S, None, ()), Tenure(1, 4, START, None, (), generation=1))
    assert types(STALE, replace(view(), tenures=tenures)) == []


def test_files_of_one_folder_may_be_of_one_cluster_after_the_other() -> None:
    """As in public folders whose ZooKeeper was wiped between days of a quickstart, their logs rolled by the hour."""
    earlier = replace(STALE, accepted_at_before=START - 86_400 * S)
    started = replace(with_successor(view()), process_starts={2: ((START - 90_000 * S, "start-2"),)})
    day = replace(started, logs={**view().logs, 2: (LogSpan(START - 90_000 * S, START + 100 * S, "TRACE"),)})
    assert types(earlier, day) == [("accepted_stale_controller", "error")]
    # one file of several clusters: the brokers' own logs state another id
    assert types(earlier, replace(day, recreations=(START - 10 * S,))) == []
    hours = (LogSpan(START - 90_000 * S, START - 86_000 * S, "TRACE"), LogSpan(START, START + 100 * S, "TRACE"))
    rolled = replace(started, logs={**view().logs, 2: hours})
    assert types(earlier, rolled) == []
    assert counts(earlier, rolled)["R12", "cannot_be_judged"] == 1


def test_a_refusal_must_name_a_higher_epoch() -> None:
    refused = replace(DONE, is_refused=True, accepts=False, known_epoch=5, completed=0, started=0, applied_lines=0)
    assert counts(refused, view()) == {("R23", "kept"): 1, ("R21", "kept"): 1}
    assert outcome_of(refused, view()) == "ignored_stale"
    assert types(replace(refused, known_epoch=4), view()) == [("ignored_without_reason", "error")]
    assert counts(replace(refused, known_epoch=None), view())["R21", "cannot_be_judged"] == 1


def test_a_log_is_lossy_by_three_proofs_that_are_far_apart() -> None:
    proofs = [MissingLines(2, START + n * 20 * S, (f"r{n}",)) for n in range(3)]
    assert lossy_brokers(proofs) == {2: ("r0", "r1", "r2")}
    assert lossy_brokers(proofs[:2]) == {}
    at_once = [MissingLines(1, START + n, (f"r{n}",)) for n in range(50)]
    assert lossy_brokers(at_once) == {}, "one line that is missing shows at every broker that it names"


def test_what_proves_a_missing_line() -> None:
    def proven(request: Request) -> list[int]:
        return [proof.broker_id for proof in missing_lines(request, view())]

    assert proven(DONE) == []
    assert proven(replace(DONE, started=1)) == [2]
    assert proven(UNSENT) == [1]
    assert proven(replace(UNSENT, is_repeated=True)) == []
    assert proven(replace(UNSENT, is_lost_before=True)) == []
    assert proven(replace(SENT, acknowledged_at=START + 61 * S, response_error=0)) == [2]
    assert proven(replace(DONE, lacking_sent=1)) == [1], "it counts more lines than stand in its log"
    assert proven(replace(DONE, lacking_received=1)) == [2]
    assert proven(SENT) == [], "a request may be dropped"
    assert proven(replace(SENT, acknowledged_at=START + 61 * S, response_error=77)) == [], "an old registration"
