"""Lakes made by hand, by the table specs: what the report's tests look at.

Nothing here is a capture: :func:`write_incident` is a small story told row by row (a follower falls behind, its
leader dies, an unclean election), :func:`write_wide` is many partitions of a made-up cluster.
"""

from __future__ import annotations

from typing import Final

from ingest.lake.delta import Lake
from ingest.lake.tables import bronze as b
from ingest.lake.tables import gold as g
from ingest.lake.tables import quality as q
from ingest.lake.tables import silver as s
from tests.support.lakes.story import CLUSTER, Story

#: What a hostile client can put into a log, and so into every table.
HOSTILE: Final = (
    "</script><script>document.title='PWNED'</script>",
    "<!--<script>document.title='PWNED'//",
    "<img src=x onerror=\"document.title='PWNED'\">",
    "line\u2028separator\u2029and \u202eright-to-left and \x1b[31mescape",
    "{{ 7*7 }} {% raw %} ${7*7} ']}; document.title='PWNED'; //",
    '=HYPERLINK("http://x.invalid") | [here](javascript:alert(1)) `code`\r\n# head',
    "\x9b31m\x07 \u2066marks\u2069\x1b]0;title\x07",
)


def write_incident(lake: Lake, cluster_id: str = CLUSTER, topic: str = "ledger") -> None:
    """Three brokers, four partitions, ten minutes: broker 1, controller and leader, dies behind a shrunken ISR."""
    story = Story(cluster_id)
    for broker in (1, 2, 3):
        story.file(
            broker,
            "state_change_log",
            "state-change.log",
            400 + broker,
            rejected=2 if broker == 3 else 0,
            last_event_time=245.6 if broker == 1 else 600,
        )
        story.file(
            broker,
            "server_log",
            "server.log",
            900,
            level_floor="INFO",
            last_event_time=245.6 if broker == 1 else 600,
        )
    story.file(1, "controller_log", "controller.log", 120, last_event_time=245.6)
    story.file(2, "controller_log", "controller.log", 80, first_event_time=251.9)
    story.file(
        2,
        "unrecognised",
        "notes.txt",
        0,
        status="rejected",
        reason="Not a file that Kafka writes.",
        first_event_time=None,
        last_event_time=None,
    )
    story.log(
        "sc-1",
        2,
        "state_change_log",
        212,
        252.31,
        f"Controller 2 epoch 2 elected leader 2 for offline partition {topic}-0",
        event_type="leader_elected",
    )
    story.log(
        "sc-2",
        2,
        "controller_log",
        31,
        252.305,
        f"No broker in ISR is alive for {topic}-0. Elect leader 2 from live brokers 2,3. There's potential data loss.",
        event_type="unclean_leader_election",
        log_level="WARN",
        logger="kafka.controller.OfflinePartitionLeaderSelector",
        continuation="java.lang.IllegalStateException: no broker\n\tat kafka.controller.Selector.select",
    )
    story.log("sv-1", 1, "server_log", 455, 120.2, f"Shrinking ISR for partition [{topic},0] from 1,2,3 to 1")
    for line in range(6):
        story.log(
            f"un-{line}",
            3,
            "server_log",
            500 + line,
            300 + line,
            f"[ReplicaFetcher replicaId=3] Something new happened to {topic}-{line} at offset {line * 917}",
        )
    story.add(
        b.REJECTED_RECORDS,
        record_id="rej-1",
        file_id="f3-state_change_log",
        broker_id=3,
        source_kind="state_change_log",
        source_file="broker-3/logs/state-change.log",
        source_line=77,
        reason="No known log layout begins this line.",
        raw="\x00\x00garbage after a crash",
    )
    for run, kept in (("old", 3), ("new", 41)):
        story.add(
            q.RUN_METRICS, run_id=run, metric="rule_kept_count", subject="R02", value=float(kept), run_at=900 + kept
        )
    story.add(
        s.CONTROLLER_EPOCH_TIMELINE,
        controller_id=1,
        controller_epoch=1,
        valid_from=1.204,
        valid_to=251.874,
        end_reason="superseded",
    )
    story.add(s.CONTROLLER_EPOCH_TIMELINE, controller_id=2, controller_epoch=2, valid_from=251.874)
    story.add(
        s.BROKER_LIVENESS_TIMELINE,
        broker_id=1,
        valid_from=0.5,
        valid_to=245.7,
        end_reason="registration_lost",
        ended_before=251.8,
        inferred_from="znode_snapshot",
    )
    story.add(s.BROKER_LIVENESS_TIMELINE, broker_id=1, valid_from=480.02)
    story.add(s.BROKER_LIVENESS_TIMELINE, broker_id=2, valid_from=0.6)
    story.add(s.BROKER_LIVENESS_TIMELINE, broker_id=3, valid_from=0.7, inferred_from="retention_boundary")
    for partition, replicas in enumerate(([1, 2, 3], [2, 3, 1], [3, 1, 2])):
        story.assigned(topic, partition, replicas)
    story.assigned("safe", 0, [1, 3])
    proposed = {"written_by": "leader", "inferred_from": "isr_proposal", "partition_epoch": None}
    story.led(
        topic,
        0,
        (5, 1, 0, [1, 2, 3]),
        (118, 1, 0, [1, 2], {"written_by": "leader"}),
        (120.2, 1, 0, [1], {"written_by": "leader", "evidence": ["sv-1"]}),
        (252.31, 2, 1, [2], {"controller_epoch": 2, "evidence": ["sc-1"]}),
        (260, 2, 1, [2, 3], proposed | {"controller_epoch": 2}),
        (495, 2, 1, [2, 3, 1], proposed | {"controller_epoch": 2}),
    )
    story.led(
        topic,
        1,
        (5, 2, 0, [2, 3, 1]),
        (252.32, 2, 1, [2, 3], {"controller_epoch": 2}),
        (496, 2, 1, [2, 3, 1], proposed),
    )
    story.led(
        topic,
        2,
        (5, 3, 0, [3, 1, 2]),
        (252.33, 3, 1, [3, 2], {"inferred_from": "znode_snapshot"}),
        (497, 3, 1, [3, 2, 1], proposed),
    )
    story.led(
        "safe",
        0,
        (5, 1, 0, [1, 3]),
        (118, 1, 0, [1], {"written_by": "leader"}),
        (252.34, -1, 1, [1], {"controller_epoch": 2}),
        (480.4, 1, 2, [1], {"controller_epoch": 2}),
        (499, 1, 2, [1, 3], {"written_by": "leader"}),
    )
    story.unavailable(
        topic,
        0,
        "offline",
        245.7,
        252.31,
        opened_by="Broker 1 lost its registration",
        closed_by="Controller 2 elected leader 2 from outside the ISR",
    )
    story.unavailable(topic, 0, "under_replicated", 118, 495)
    story.unavailable(topic, 1, "under_replicated", 252.32, 496)
    story.unavailable(topic, 2, "under_replicated", 252.33, 497)
    story.unavailable(
        "safe",
        0,
        "offline",
        245.7,
        480.4,
        opened_by="Broker 1 lost its registration",
        closed_by="Broker 1 came back and was elected",
    )
    story.unavailable("safe", 0, "under_replicated", 118, 499)
    story.unavailable(topic, 0, "non_preferred_leader", 252.31, None)
    finding = {"topic": topic, "partition_id": 0, "rule_source": "KIP-106"}
    story.add(
        g.DIVERGENCES,
        **finding,
        divergence_id="d1",
        rule_id="R08",
        divergence_type="unclean_election",
        severity="error",
        detected_at=252.31,
        broker_id=2,
        expected="a leader from the ISR [1]",
        observed="leader 2, not in the ISR [1]",
        evidence=["sc-2", "sc-1", "lost-record"],
        explanation=f"Controller 2 elected broker 2 for {topic}-0 at leader epoch 1, though the ISR was [1]:"
        " records that only broker 1 had acknowledged are lost.",
        known_issue="KAFKA-3410",
    )
    story.add(
        g.DIVERGENCES,
        divergence_id="d2",
        rule_id="R12",
        divergence_type="deposed_controller_wrote",
        severity="warning",
        detected_at=251.9,
        broker_id=1,
        expected="no request of epoch 1 after epoch 2",
        observed="an UpdateMetadata of epoch 1",
        evidence=["sv-1"],
        rule_source="KAFKA-6082",
        explanation="Broker 1 still sent as controller of epoch 1 after broker 2 had taken epoch 2.",
    )
    story.add(
        g.DIVERGENCES,
        divergence_id="d3",
        topic="safe",
        partition_id=0,
        rule_id="R20",
        divergence_type="belief_differs",
        severity="info",
        detected_at=480.9,
        broker_id=1,
        expected="leader epoch 2",
        observed="leader epoch 1",
        evidence=[],
        rule_source="protocol",
        explanation="Broker 1 became follower at leader epoch 1 while 2 was decided.",
    )
    story.write(lake)


def write_wide(
    lake: Lake, partitions: int = 200, steps: int = 10, brokers: int = 6, *, offline_every: int = 20
) -> None:
    """Many partitions whose leaders and ISRs move all the time; every so many-th is offline once, with a finding."""
    story = Story("wide-fixture")
    for broker in range(1, brokers + 1):
        story.file(broker, "state_change_log", "state-change.log", 50_000)
        story.add(s.BROKER_LIVENESS_TIMELINE, broker_id=broker, valid_from=0)
    for epoch in range(1, 8):
        story.add(
            s.CONTROLLER_EPOCH_TIMELINE,
            controller_id=1 + epoch % brokers,
            controller_epoch=epoch,
            valid_from=80 * (epoch - 1),
            valid_to=80 * epoch if epoch < 7 else None,
            end_reason="superseded" if epoch < 7 else None,
        )
    for number in range(partitions):
        topic, partition = f"orders.{number // 20:02d}", number % 20
        replicas = [1 + (number + k) % brokers for k in range(3)]
        story.assigned(topic, partition, replicas, 0)
        width = 600 / steps
        moves = []
        for k in range(steps):
            leader = replicas[(k // 2) % 3]
            isr = replicas if k % 2 == 0 else [r for r in replicas if r != replicas[(k // 2 + 1) % 3]]
            inferred = {"inferred_from": "znode_snapshot"} if (number + k) % 5 == 0 else {}
            moves.append((k * width + number % 37, leader, k // 2, isr, inferred))
            if k % 2:
                end = (k + 1) * width + number % 37
                story.unavailable(topic, partition, "under_replicated", k * width + number % 37, end)
        story.led(topic, partition, *moves)
        if number % offline_every == 7:
            story.unavailable(topic, partition, "offline", 300 + number / 10, 310 + number / 3)
            story.add(
                g.DIVERGENCES,
                divergence_id=f"w{number:05d}",
                topic=topic,
                partition_id=partition,
                rule_id="R02",
                divergence_type="two_leaders_at_one_epoch",
                severity="error" if number % 40 == 7 else "warning",
                detected_at=300 + number / 10,
                expected="one leader",
                observed="two leaders",
                rule_source="protocol",
                explanation=f"{topic}-{partition} had two leaders at leader epoch 2.",
            )
    story.write(lake)


def write_hostile(lake: Lake) -> None:
    """Every text that comes from outside is hostile."""
    story = Story("</script>" + HOSTILE[2])
    for number, text in enumerate(HOSTILE):
        place = {"topic": text, "topic_incarnation": text, "partition_id": number}
        story.file(number, "server_log", text, 10, kafka_version=text, reason=text)
        story.log(f"h{number}", number, "server_log", number, 10 + number, text, continuation=text, logger=text)
        story.add(
            b.REJECTED_RECORDS,
            record_id=f"r{number}",
            file_id=text,
            broker_id=number,
            source_kind="server_log",
            source_file=text,
            source_line=1,
            reason=text,
            raw=text,
        )
        story.add(
            s.LEADER_AND_ISR_TIMELINE,
            **place,
            leader=number,
            leader_epoch=0,
            isr=[number],
            valid_from=number,
            evidence=[f"h{number}"],
        )
        story.add(
            g.AVAILABILITY_INTERVALS,
            **place,
            kind="offline",
            valid_from=5,
            valid_to=9,
            opened_by=text,
            closed_by=text,
        )
        story.add(
            g.DIVERGENCES,
            **place,
            divergence_id=f"{text}{number}",
            rule_id=text,
            divergence_type=text,
            severity="error",
            detected_at=20,
            expected=text,
            observed=text,
            explanation=text,
            known_issue=text,
            rule_source=text,
            evidence=[f"h{number}"],
        )
        story.add(s.TOPIC_INCARNATIONS, topic=text, topic_incarnation=text, valid_from=0)
        story.log(f"s{number}", number, "state_change_log", 900 + number, 10 + number, f"[{text},0] {text}")
        story.add(g.LEADER_ELECTIONS, **place, elected_at=number, observed_leader=number, evidence=[f"h{number}"])
        incident = {"incident_id": f"1d{number}{number}", "evidence": [f"h{number}"]}
        story.add(g.INCIDENTS, **incident, valid_from=5, valid_to=9, harm="unavailable", summary=text)
        event = {"partitions": [text], "partitions_count": 1, "rows_count": 1, "description": text}
        story.add(g.INCIDENT_EVENTS, **incident, **event, began_at=5, ended_at=9)
        story.add(s.CONTROLLER_EPOCH_TIMELINE, controller_id=number, controller_epoch=number, valid_from=number)
    story.write(lake)
