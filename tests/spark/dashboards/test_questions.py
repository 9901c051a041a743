"""The saved questions, asked of captures of which the answers are known."""

from __future__ import annotations

import json
import re
import zipfile
from collections import Counter
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from dashboards.questions.question import Question, questions
from dashboards.texts.incident import incident_text
from dashboards.trends.grafana import write_grafana
from dashboards.trends.page import write_trends
from dashboards.trends.superset import write_superset
from dashboards.views import QUESTION_FUNCTIONS, QUESTION_VIEWS
from jobs.ask.answer import answer, rows_of
from jobs.session.progress import silent
from jobs.sql.read_only import refusal
from tests import ROOT
from tests.support.browser import Browser
from tests.support.lakes.offsets import BENT, WITH_PROBES, OffsetLake
from tests.support.lakes.shared import SharedLake

ALL = list(questions().values())
#: An instant at which the capture `unclean-0.8.2.2` was at rest, before its leader died.
AT = datetime(2026, 11, 21, 3, 27, 40, tzinfo=UTC)
GIVEN: dict[str, Any] = {
    "cluster": "unclean-0.8.2.2",
    "topic": "ledger",
    "partition": 0,
    "broker": 2,
    "from": datetime(2026, 11, 21, tzinfo=UTC),
    "to": datetime(2026, 11, 22, tzinfo=UTC),
    "at": AT,
}


@pytest.fixture(scope="module")
def ask(offset_lake: OffsetLake, named_lake: SharedLake):
    def asked(name: str, **given: Any) -> list[Any]:
        question = questions()[name]
        given |= {"cluster": offset_lake.ids[given["cluster"]]} if "cluster" in given else {}
        bound = {parameter: given.get(parameter) for parameter in question.parameters}
        return rows_of(offset_lake.lake.spark, question, bound).collect()

    return asked


@pytest.mark.parametrize("question", ALL, ids=lambda question: question.name)
def test_parameters_narrow_the_answer_and_need_not_be_given(question: Question, offset_lake: OffsetLake, ask):
    rows = ask(question.name, **{name: GIVEN[name] for name in question.parameters})
    assert {row["cluster_id"] for row in rows} <= {offset_lake.ids[GIVEN["cluster"]]}
    without = {name: GIVEN[name] if name in question.give else None for name in question.parameters}
    columns = rows_of(offset_lake.lake.spark, question, without).columns  # NULL is of no type: the plan must bear it
    assert columns[0] == "cluster_id"
    assert len(columns) == len(set(columns))


def test_unclean_elections_and_their_losses(ask):
    (election,) = ask("unclean-elections", cluster="unclean-0.8.2.2", partition=0)
    assert (election.topic, election.previous_leader, election.leader, election.leader_epoch) == ("ledger", 1, 2, 1)
    assert 0 < election.lost_count_lower <= election.lost_count_upper
    assert ask("unclean-elections", cluster="quiet-0.8.2.2") == []
    assert ask("unclean-elections", cluster="unclean-0.8.2.2", topic="safe") == []


def test_the_topic_that_may_not_elect_uncleanly_was_offline(ask):
    offline = ask("offline-partitions", cluster="unclean-0.8.2.2", topic="safe")
    assert {(row.topic, row.partition_id) for row in offline} == {("safe", 0), ("safe", 1)}
    assert max(row.lasted_ms for row in offline if row.lasted_ms) > 5_000
    assert ask("offline-partitions", cluster="quiet-0.8.2.2") == []


def test_who_led_and_by_whose_decision(ask):
    (before,) = ask("leader-at", cluster="unclean-0.8.2.2", topic="ledger", partition=0, at=AT)
    assert (before.leader, before.leader_epoch, before.isr) == (1, 0, [1])
    (after,) = ask("leader-at", cluster="unclean-0.8.2.2", topic="ledger", partition=0, at=GIVEN["to"])
    assert (after.leader, after.is_unclean) == (2, True)


def test_a_replica_that_a_leader_took_out_for_lag(ask):
    shrinks = [row for row in ask("isr-changes", cluster="unclean-0.8.2.2", topic="ledger") if row.removed]
    assert (shrinks[0].removed, shrinks[0].written_by, shrinks[0].leader) == ([2], "leader", 1)
    assert ask("isr-changes", cluster="quiet-0.8.2.2") == []


def test_offsets_at_an_instant_are_bounds(ask):
    rows = ask("offsets-at", cluster="unclean-0.8.2.2", topic="ledger", partition=0, at=AT)
    assert [row.replica_id for row in rows] == [1, 2]
    for row in rows:
        assert row.high_watermark_upper is None or row.high_watermark_lower <= row.high_watermark_upper


def test_controllers_follow_each_other(ask):
    tenures = ask("controllers", cluster="failover-1.1.1")
    assert [row.controller_epoch for row in tenures] == list(range(1, len(tenures) + 1))
    assert len(tenures) >= 3
    assert all(row.ended_at <= after.elected_at for row, after in pairwise(tenures))


def test_what_a_controller_did_from_each_trigger_on(ask, offset_lake: OffsetLake):
    rows = ask("controller-procedures", cluster="failover-1.1.1")
    kinds = Counter(row.procedure for row in rows)
    assert kinds["take_over"] == 3
    assert kinds["topic_creation"] >= 1
    failed = next(row for row in rows if row.procedure == "broker_failure")
    assert failed.about == "2"
    assert failed.elections > 0
    assert failed.requests > 0
    assert failed.transitions > failed.elections
    assert 0 <= failed.elections_ms <= failed.took_ms < 5_000
    # each election of a controller is counted once
    elected = offset_lake.lake.spark.table("gold.leader_elections").where(
        f"cluster_id = '{offset_lake.ids['failover-1.1.1']}' AND controller_id IS NOT NULL"
    )
    assert sum(row.elections for row in rows) == elected.count()
    assert {row.judged == row.as_decided and row.finding_ids == [] for row in rows} == {True}
    assert {row.last_effect for row in rows} <= {"answer", None}


def test_a_partition_that_nobody_could_lead_is_tried_by_each_procedure_until_it_has_a_leader(ask):
    """0.8.2.2: broker 1, which led four partitions alone, dies; broker 2 comes, which may lead the two of ``ledger``
    uncleanly, and at last broker 1, which leads those of ``safe`` again without an election."""
    rows = ask("controller-procedures", cluster="unclean-0.8.2.2")
    *_, failover, came, back = rows
    assert [(row.procedure, row.about) for row in (failover, came, back)] == [
        ("take_over", ""),
        ("broker_start", "2"),
        ("broker_start", "1"),
    ]
    counts = [(row.tried_partitions, row.elections, row.unclean, row.left_offline) for row in (failover, came, back)]
    assert counts == [(4, 0, 0, 4), (4, 2, 2, 2), (0, 0, 0, 0)]
    assert (failover.elections_ms, failover.median_elected_ms) == (None, None)
    assert 0 <= came.median_elected_ms <= came.elections_ms < 5_000
    (failure,) = (row for row in rows if row.procedure == "broker_failure")
    assert (failure.about, failure.elections, failure.left_offline) == ("2", 2, 0)
    assert {row.judged == row.as_decided == row.elections for row in rows} == {True}
    told = [row for row in rows if row.told_at]
    assert {"broker_start", "broker_failure"} <= {row.procedure for row in told}
    assert all(row.told_at <= row.began_at for row in told)


def test_a_zombie_s_requests_are_ignored(ask):
    late = [row for row in ask("zombie-controllers", cluster="failover-1.1.1") if row.what == "request"]
    assert {row.outcome for row in late} <= {"ignored_stale", "not_received", "unknown"}
    assert ask("zombie-controllers", cluster="quiet-0.8.2.2") == []


def test_the_story_of_a_partition_is_in_order_and_from_every_source(ask):
    story = ask("partition-story", cluster="unclean-0.8.2.2", topic="ledger", partition=0)
    assert [row.at for row in story] == sorted(row.at for row in story)
    sources = {"state-change.log", "controller.log", "server.log", "decided", "finding"}
    assert {row.source for row in story} == sources


def test_brokers_that_were_stopped_in_order(ask):
    stopped = ask("controlled-shutdowns", cluster="checkpoints-1.1.1")
    assert stopped
    assert {row.ended_as for row in stopped} <= {"clean_stop", None}


def test_a_checkpoint_that_broke_is_a_disk_failure_and_a_wiped_disk_a_short_log(ask):
    failures = ask("disk-failures", cluster="checkpoints-1.1.1")
    assert ("checkpoint_error", 1) in {(row.event_type, row.broker_id) for row in failures}
    assert {row.what for row in ask("short-logs", cluster="checkpoints-1.1.1")} >= {"checkpoint_missing"}


def test_an_answer_is_printed_with_what_is_not_known(offset_lake: OffsetLake, capsys):
    lake = offset_lake.lake
    given = dict.fromkeys(questions()["propagation"].parameters) | {"cluster": offset_lake.ids["unclean-3.9.1-info"]}
    report = answer(lake.spark, lake.root, questions()["propagation"], given, style="markdown")
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("| cluster_id | request_kind |")
    assert "evidence" not in printed[0]
    assert [one for one in report.problems if one.startswith("left open: ") and "holds nothing below INFO" in one]


def test_the_lines_behind_a_finding_are_a_join_away(offset_lake: OffsetLake, ask):
    lines = offset_lake.lake.spark.sql("""
        SELECT d.divergence_id, size(d.evidence) AS ids, count(l.record_id) AS lines, min(l.text) AS text
        FROM (SELECT *, explode(evidence) AS id FROM gold.divergences) d
          LEFT JOIN bronze.evidence_lines l ON l.cluster_id = d.cluster_id AND l.record_id = d.id
        GROUP BY ALL""").collect()
    assert len(lines) > 5
    assert [row for row in lines if row.lines != row.ids or not row.text] == []


def test_a_replica_s_lag_is_bounded(offset_lake: OffsetLake, ask):
    lags = offset_lake.lake.spark.sql(
        f"SELECT * FROM silver.replica_lag WHERE cluster_id = '{WITH_PROBES}' AND topic = 'ledger' AND partition_id = 0"
    ).collect()
    assert {row.replica_id for row in lags} == {1, 2}
    assert all(row.leader != row.replica_id for row in lags)
    bounded = [row for row in lags if row.lag_lower is not None and row.lag_upper is not None]
    assert bounded
    assert all(0 <= row.lag_lower <= row.lag_upper for row in bounded)
    assert max(row.lag_upper for row in bounded) > 0


def test_a_question_that_needs_no_parameter_is_a_view(offset_lake: OffsetLake, ask):
    spark = offset_lake.lake.spark
    assert len(QUESTION_VIEWS) > 30
    for name, question in ((view, view.partition(".")[2].replace("_", "-")) for view in QUESTION_VIEWS):
        given = dict.fromkeys(questions()[question].parameters)
        assert spark.table(name).schema == rows_of(spark, questions()[question], given).schema, name
    assert spark.table("questions.unclean_elections").collect() == ask("unclean-elections")


def test_a_question_that_needs_parameters_is_a_function(offset_lake: OffsetLake, ask):
    spark = offset_lake.lake.spark
    text = {"at": f"TIMESTAMP '{AT.isoformat()}'", "topic": "'ledger'", "partition": "0"}
    assert set(QUESTION_FUNCTIONS) == {"leader_at", "offsets_at", "partition_story", "two_brokers_down"}
    for name, function in QUESTION_FUNCTIONS.items():
        given = [parameter for parameter, _ in function.parameters]
        called = f"SELECT * FROM {name}({', '.join(text[parameter] for parameter in given)})"
        assert refusal(spark, called) is None
        answer = ask(name.replace("_", "-"), **{parameter: GIVEN[parameter] for parameter in given})
        assert sorted(map(str, spark.sql(called).collect())) == sorted(map(str, answer)), name
    (other,) = spark.newSession().sql(f"SELECT count(*) AS n FROM leader_at({text['at']})").collect()
    assert other.n > 0


def test_the_writer_of_a_state_is_who_wrote_its_znode(offset_lake: OffsetLake, ask, truths):
    """By ZooKeeper's transaction log, which is no evidence of that lake, and whose sessions are of brokers. Since 2.7
    the controller writes for the leader."""
    for capture, writes_for_leaders in (("unclean-0.8.2.2", False), ("unclean-3.9.1-info", True)):
        broker_of = {one.began.session: one.broker_id for one in truths[capture].registrations}
        wrote = {(*one.partition, *one.state): broker_of[one.write.session] for one in truths[capture].states}
        timeline = offset_lake.lake.spark.table("silver.leader_timeline")
        rows = timeline.where(f"cluster_id = '{offset_lake.ids[capture]}'").collect()
        assert {row.written_by for row in rows} == {"controller", "leader"}
        for row in rows:
            state = (row.topic, row.partition_id, row.leader, row.leader_epoch, frozenset(row.isr))
            is_for_leader = writes_for_leaders and row.written_by == "leader"
            assert row.written_by_broker_id == (row.leader if is_for_leader else wrote[state]), state


def test_the_queries_to_begin_with_run(offset_lake: OffsetLake, ask):
    page = (ROOT / "docs" / "querying.md").read_text("utf-8")
    queries = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    assert len(queries) == 10
    for query in queries:
        assert not offset_lake.lake.spark.sql(query).isEmpty(), query


def test_what_is_counted_by_day_is_what_the_tables_hold(offset_lake: OffsetLake, ask):
    spark = offset_lake.lake.spark
    counted = """SELECT cluster_id, sum(elections) AS n, sum(unclean_elections) AS u,
          sum(leaderless_elections) AS nobody FROM questions.elections_by_day GROUP BY ALL"""
    by_cluster = spark.sql(counted).collect()
    elections = spark.sql(
        "SELECT cluster_id, count(*) AS n, count_if(is_unclean) AS u FROM gold.leader_elections GROUP BY ALL"
    )
    assert {tuple(row) for row in elections.collect()} == {
        (row.cluster_id, row.n, row.u) for row in by_cluster if row.n
    }
    offline = "SELECT cluster_id, count(*) FROM gold.availability_intervals WHERE kind = 'offline' GROUP BY ALL"
    left = {row.cluster_id: row.nobody for row in by_cluster if row.nobody}
    assert dict(map(tuple, spark.sql(offline).collect())) == left
    assert left[offset_lake.ids["unclean-0.8.2.2"]] > 0
    # an outage that goes on over midnight is of two days, and lasts as long as it did
    lasted = """SELECT cluster_id, kind,
          round(sum(timestampdiff(MILLISECOND, valid_from, coalesce(valid_to, until))) / 60000, 2)
        FROM gold.availability_intervals
        JOIN (SELECT cluster_id, max(valid_to) AS until FROM quality.evidence_coverage GROUP BY ALL) USING (cluster_id)
        WHERE kind IN ('offline', 'no_live_leader', 'under_min_isr', 'under_replicated') GROUP BY ALL"""
    by_day = "SELECT cluster_id, kind, round(sum(minutes), 2) FROM questions.outages_by_day GROUP BY ALL"
    expected = {tuple(row)[:2]: row[2] for row in spark.sql(lasted).collect()}
    found = {tuple(row)[:2]: row[2] for row in spark.sql(by_day).collect()}
    assert found == pytest.approx(expected, abs=0.05)
    assert max(found.values()) > 0.1
    left = sum(row.left_count for row in ask("isr-changes-by-day", cluster="unclean-0.8.2.2"))
    assert left == sum(len(row.removed) for row in ask("isr-changes", cluster="unclean-0.8.2.2")) > 0
    (controllers,) = ask("controllers-by-day", cluster="unclean-0.8.2.2")
    assert controllers.controllers_elected == len(ask("controllers", cluster="unclean-0.8.2.2"))
    findings = sum(row.findings for row in ask("findings-by-day", cluster=BENT))
    assert findings == len(ask("findings", cluster=BENT)) == ask("findings-by-run", cluster=BENT)[-1].standing
    worst = ask("worst-partitions", cluster="unclean-0.8.2.2")
    without = [row.without_leader_minutes for row in worst]
    assert without == sorted(without, reverse=True)
    assert without[0] > 0
    assert sum(row.unclean_elections for row in worst) == len(ask("unclean-elections", cluster="unclean-0.8.2.2"))


def test_the_page_over_time_draws_what_the_questions_answer(offset_lake: OffsetLake, ask, tmp_path):
    path = write_trends(offset_lake.lake, str(tmp_path), progress=silent)
    page = Path(path).read_text("utf-8")
    left: Counter[tuple[str, int]] = Counter()
    for row in ask("isr-changes-by-day"):
        left[row.cluster_id, row.broker_id] += row.left_count
    drawn: Counter[tuple[str, int]] = Counter()
    clusters = re.findall(r"<h2>Cluster ([^<]+)</h2>", page)
    for cluster, section in zip(clusters, page.split("</h2>")[1:], strict=True):
        bars = section.split("Departures from ISRs, by broker</h3>")[1].split("<h3>")[0]
        for broker, count in re.findall(r"<title>[^<]+, (\d+): (\d+)</title>", bars):
            drawn[cluster, int(broker)] += int(count)
    assert clusters == sorted(clusters)
    assert drawn == {one: count for one, count in left.items() if count and one[0] <= clusters[-1]}
    assert drawn
    with Browser() as browser:
        shown = browser.open(Path(path))
        marks = shown.value("document.querySelectorAll('svg rect title, svg circle title').length")
        assert marks == page.count("<title>") - 1  # the page has one of its own
        assert (shown.errors, shown.requests) == ([], [])
        assert shown.value("document.documentElement.scrollWidth <= innerWidth")


def test_exports_name_the_columns_that_the_questions_answer(offset_lake: OffsetLake, ask, tmp_path):
    for view in QUESTION_VIEWS["questions.propagation_by_day"].views:  # a command finds none of them
        offset_lake.lake.spark.sql(f"DROP VIEW {view.full_name}")
    path = write_superset(offset_lake.lake, str(tmp_path), progress=silent)
    with zipfile.ZipFile(path) as archive:
        contents = {name.split("/", 1)[1]: json.loads(archive.read(name)) for name in archive.namelist()}
    for name, dataset in contents.items():
        if name.startswith("datasets/"):
            answer = offset_lake.lake.spark.table(f"{dataset['schema']}.{dataset['table_name']}")
            assert [one["column_name"] for one in dataset["columns"]] == answer.columns
            assert [one["type"].lower() for one in dataset["columns"]] == [kind for _, kind in answer.dtypes]
    folder = Path(write_grafana(offset_lake.lake, str(tmp_path), progress=silent))
    drawn: Counter[str] = Counter()
    for made in folder.glob("*.json"):
        cluster = json.loads(made.read_text())["title"].split(": ")[-1]
        for row in json.loads((made.with_suffix("") / "unclean-elections.json").read_text()):
            drawn[cluster] += row["value"]
    unclean = Counter(row.cluster_id for row in ask("unclean-elections"))
    assert drawn == {cluster: count for cluster, count in unclean.items() if cluster in drawn}
    assert drawn


def test_the_preferred_leaders_share(offset_lake: OffsetLake, ask):
    quiet = offset_lake.ids["quiet-0.8.2.2"]
    shares = offset_lake.lake.spark.sql(
        f"SELECT * FROM gold.preferred_share WHERE cluster_id = '{quiet}' ORDER BY at"
    ).collect()
    assert shares[-1].preferred_share == 1
    assert all(0 <= row.led_by_preferred <= row.led_partitions for row in shares)


def test_an_incident_is_a_broker_s_absence_and_all_that_followed(ask):
    worst = ask("incidents", cluster="unclean-0.8.2.2")[0]
    lost = ask("unclean-elections", cluster="unclean-0.8.2.2")
    assert (worst.harm, worst.cause, worst.confidence) == ("records_lost", "broker_died", "observed")
    # the leader died while its follower was away, and that was elected
    assert worst.brokers == sorted({one.previous_leader for one in lost} | {one.leader for one in lost})
    assert worst.lost_count_lower == sum(one.lost_count_lower for one in lost)
    assert worst.lost_count_upper == sum(one.lost_count_upper for one in lost)
    assert worst.unclean_elections_count == len(lost) > 1
    kinds = [
        row.event_kind
        for row in ask("incident-events", cluster="unclean-0.8.2.2")
        if row.incident_id == worst.incident_id
    ]
    assert kinds[0] == "broker_died"
    assert {"unclean_election", "records_lost", "no_live_leader", "broker_returned"} <= set(kinds)


def test_every_effect_is_in_one_incident_and_in_one_only(offset_lake: OffsetLake, ask):
    spark = offset_lake.lake.spark
    in_incidents = """SELECT cluster_id, event_kind AS kind, sum(rows_count) AS effects FROM gold.incident_events
        WHERE event_kind IN ('offline', 'no_live_leader', 'under_min_isr', 'under_replicated', 'finding', 'two_leaders')
        GROUP BY ALL"""
    effects = """SELECT cluster_id, kind, count(*) AS effects FROM (
        SELECT cluster_id, kind FROM gold.availability_intervals
          WHERE kind IN ('offline', 'no_live_leader', 'under_min_isr', 'under_replicated')
        UNION ALL SELECT cluster_id, 'finding' FROM gold.divergences WHERE severity <> 'info'
        UNION ALL SELECT cluster_id, 'two_leaders' FROM gold.leadership_overlaps) GROUP BY ALL"""
    rows = {tuple(row) for row in spark.sql(in_incidents).collect()}
    assert {kind for _, kind, _ in rows} >= {"no_live_leader", "under_replicated", "finding"}
    assert rows == {tuple(row) for row in spark.sql(effects).collect()}
    apart = spark.sql(
        "SELECT * FROM gold.incident_events LEFT ANTI JOIN gold.incidents USING (cluster_id, incident_id)"
    )
    assert apart.isEmpty()


def test_of_an_incident_only_what_is_proven_is_its_harm(offset_lake: OffsetLake):
    unavailable = offset_lake.lake.spark.sql("""SELECT i.incident_id, i.harm, e.event_kind, e.inferred_from
        FROM gold.incidents i JOIN gold.incident_events e USING (cluster_id, incident_id)""").collect()
    kinds: dict[str, set[str]] = {}
    for row in unavailable:
        kinds.setdefault(row.harm, set()).add(row.event_kind)
    assert "two_leaders" not in kinds
    assert "two_leaders" in kinds["possible"]
    assert "no_live_leader" in kinds["unavailable"] | kinds["records_lost"]
    # what somebody else's log or the next request showed is no observation
    assert {row.inferred_from for row in unavailable if row.event_kind == "no_live_leader"} - {None}


def test_an_incident_is_explained_by_its_records(offset_lake: OffsetLake, ask):
    worst = ask("incidents", cluster="unclean-0.8.2.2")[0]
    text, problem = incident_text(offset_lake.lake, worst.incident_id[:12])
    assert problem == ""
    assert worst.summary in text
    assert "To do: Tell the owners of ledger" in text
    assert "broker-" in text.split("\n\n")[-1].splitlines()[1]  # the file of the record that shows the first event
    assert incident_text(offset_lake.lake, "ffffffff")[0] == ""


def test_what_a_stop_would_have_done_is_what_it_then_did(offset_lake: OffsetLake, ask):
    # half a second before broker 1 of each was killed
    killed = datetime(2026, 11, 21, 3, 27, 39, tzinfo=UTC)
    would = ask("would-restart", cluster="unclean-0.8.2.2", broker=1, at=killed)
    assert {row.effect for row in would} == {"offline"}
    outages = ask("offline-partitions", cluster="unclean-0.8.2.2", **{"from": killed})
    did = {(row.topic, row.partition_id) for row in outages if row.kind == "offline"}
    assert {(row.topic, row.partition_id) for row in would} == did
    killed = datetime(2026, 11, 21, 3, 30, 35, 500_000, tzinfo=UTC)
    would = ask("would-restart", cluster=BENT, broker=1, at=killed)
    elected = ask("elections", cluster=BENT)
    did = {(row.topic, row.partition_id, row.leader) for row in elected if row.previous_leader == 1}
    assert {(row.topic, row.partition_id, row.next_leader) for row in would if row.effect == "new_leader"} == did
    assert {row.effect for row in would} == {"new_leader", "fewer_replicas"}
