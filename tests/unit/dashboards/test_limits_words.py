"""What the report says that it cannot say."""

from __future__ import annotations

from typing import Any

import pytest

from dashboards.render import render
from dashboards.sections.coverage.limits import (
    MOST_SENTENCES,
    CountedHole,
    EvidenceLimits,
    LimitsView,
    cannot_be_said,
    sentence,
)
from dashboards.source import FileTotals
from ingest.lake.tables.quality import GAP_REASONS
from reconstruct.coverage.limits import AvailableEvidence, Limit
from tests.unit.dashboards.test_render import cluster, data

#: 2026-11-21 10:00 UTC
TEN = 1_795_255_200_000
HOUR = 3_600_000


def available(broker: int, kind: str, floor: str | None = None, begin: float = TEN, end: float = TEN + HOUR):
    return AvailableEvidence(broker, kind, floor, begin, end)


def hole(cause: str, broker: int, **values: Any) -> CountedHole:
    made = {"source_kind": "server_log", "from_ms": TEN, "to_ms": TEN + HOUR}
    return CountedHole(cause, broker, **(made | values))


def limit(cause: str, *brokers: int, kind: str = "server_log", **values: Any) -> Limit:
    return Limit(cause, brokers, kind, "why it matters", **values)


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (limit("no_logs", 4, kind="logs"), "No log of broker 4 was given: why it matters."),
        (
            limit("missing", 2, 3, kind="state_change_log"),
            "No state-change.log of brokers 2 and 3 was given: why it matters.",
        ),
        (limit("missing", kind="znodes"), "No znodes were given: why it matters."),
        (
            limit("missing", kind="znode_transaction_log"),
            "Znodes were given as snapshots, without ZooKeeper's transaction logs: why it matters.",
        ),
        (
            limit("missing", 1, kind="log_end"),
            "No segment and no probe of the log's end of broker 1 was given: why it matters.",
        ),
        (
            limit("unknown_broker"),
            "A server.log was given, but nothing shows whose it is: why it matters (--broker ID=PATH states it).",
        ),
        (
            limit("not_captured", 2, kind="log_end", from_ms=TEN, to_ms=TEN + 60_000),
            "The capture could not record the log ends and high watermarks of broker 2 from 2026-11-21 10:00:00.000 to"
            " 10:01:00.000 UTC (1 min 0.0 s): why it matters.",
        ),
        (
            limit("not_captured", kind="znodes", from_ms=TEN, to_ms=TEN + 60_000),
            "The capture could not record the znodes from 2026-11-21 10:00:00.000 to 10:01:00.000 UTC"
            " (1 min 0.0 s): why it matters.",
        ),
        (
            limit("too_coarse", 1, 2, kind="state_change_log", level_floor="INFO"),
            "The state-change.log of brokers 1 and 2 holds nothing below INFO: why it matters.",
        ),
        (
            limit("gap", 1, reason="missing_number", from_ms=TEN, to_ms=TEN + HOUR),
            "Lines of the server.log of broker 1 are missing from 2026-11-21 10:00:00.000 to 11:00:00.000 UTC"
            " (1 h 00 min; the files are numbered, and one between two of them is not there): why it matters.",
        ),
        (
            limit("gap", 1, reason="missing_period", from_ms=TEN, to_ms=TEN + 15 * HOUR),
            "Lines of the server.log of broker 1 are most likely missing from 2026-11-21 10:00:00.000"
            " to 2026-11-22 01:00:00.000 UTC (15 h 00 min; it wrote much in the hours before and after, another of the"
            " broker's logs was written then, and there is no file): why it matters.",
        ),
        (
            limit("out_of_order", 1),
            "The lines of the server.log of broker 1 are not in the order of their times: why it matters.",
        ),
        (
            limit("clock_set_back", 1, from_ms=TEN, to_ms=TEN + HOUR),
            "The server.log of broker 1 tells the time from 2026-11-21 10:00:00.000 to 11:00:00.000 UTC (1 h 00 min)"
            " twice: its clock was set back, or it is put together of two files; why it matters.",
        ),
        (
            limit("silence", 1, from_ms=TEN, to_ms=TEN + HOUR),
            "No file of the server.log of broker 1 speaks from 2026-11-21 10:00:00.000 to 11:00:00.000 UTC"
            " (1 h 00 min): nothing was logged, or files are missing; why it matters.",
        ),
    ],
)
def test_a_limit_in_words(made: Limit, text: str) -> None:
    assert sentence(made) == text


def test_every_reason_of_a_gap_has_words() -> None:
    texts = {sentence(limit("gap", 1, reason=reason, from_ms=TEN, to_ms=TEN + HOUR)) for reason in GAP_REASONS}
    assert len(texts) == len(GAP_REASONS)
    assert not any("a gap" in text for text in texts)


def test_what_a_cluster_lacks_is_told_with_the_rules_and_questions_it_leaves_open() -> None:
    kinds = (
        "controller_log",
        "replication_offset_checkpoint",
        "leader_epoch_checkpoint",
        "offset_probe",
        "server_properties",
    )
    evidence = [available(1, kind) for kind in kinds] + [
        available(1, "state_change_log", "INFO"),
        available(1, "server_log", "INFO"),
    ]
    rows = [
        hole("gap", 1, reason="no_later_file"),
        hole("too_coarse", 1, source_kind="state_change_log", level_floor="INFO"),
    ]
    limits = EvidenceLimits((*evidence, available(-1, "znode_transaction_log")), tuple(rows))
    found = cannot_be_said(limits, [1], ["3.9.1"])
    assert found.more == 0
    gap, coarse = found.sentences
    assert gap.text.startswith("Lines of the server.log of broker 1 are missing")
    assert "R38" in dict(gap.rules)
    assert coarse.text.startswith("The state-change.log of broker 1 holds nothing below INFO:")
    assert "how late each broker learned each change" in coarse.questions


def test_a_cluster_without_evidence_is_told_nothing() -> None:
    assert cannot_be_said(EvidenceLimits(), [1], ()) == LimitsView(has_files=True)


def test_what_is_not_told_is_counted() -> None:
    shown = [
        hole("silence", 1, from_ms=TEN + n * 9 * HOUR, to_ms=TEN + n * 9 * HOUR + HOUR, total=70) for n in range(50)
    ]
    evidence = [available(1, kind) for kind in ("state_change_log", "controller_log", "server_log")]
    found = cannot_be_said(EvidenceLimits(tuple(evidence), tuple(shown)), [1], ())
    assert len(found.sentences) == MOST_SENTENCES
    missing = 5  # checkpoints, lineages, the log's end, server.properties, znodes
    assert found.more == 70 + missing - MOST_SENTENCES


def test_the_page_says_it_and_escapes_it() -> None:
    hostile = "</script><script>document.title='PWNED'</script>"
    rows = [hole("too_coarse", 1, level_floor=hostile, source_kind="server_log")]
    evidence = [available(1, "server_log", "INFO", 0, 0)]
    limits = EvidenceLimits(tuple(evidence), tuple(rows))
    page = render(data(cluster(totals=FileTotals(brokers=(1,)), coverage__limits=limits)), "t")
    assert "What cannot be said" in page
    assert "No state-change.log of broker 1 was given" in page
    assert "the high watermark" in page
    assert hostile not in page
    assert '<abbr title="the lag' not in page
    assert '<abbr title="replicas agree on the leader epochs' in page
