"""Whatever way evidence comes to a lake, its rows are those of ``--full``; and what nothing new concerns stays."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any, Final

import pytest

from ingest.lake.delta import Lake, OfClusters
from ingest.lake.tables import TABLES
from ingest.lake.tables.gold import FINDING_HISTORY, LEADER_ELECTIONS
from ingest.lake.tables.kept import CLOCK_PAIRS, FOLDED_KEYS, JUDGED_ROWS
from ingest.run.pipeline import IngestOptions, ingest_paths
from reconstruct.engine import staging
from reconstruct.kept.last_run import published, versions
from reconstruct.kept.undoing import undo
from reconstruct.pipeline import ReconstructReport, reconstruct
from tests.figures import Figure
from tests.support.budget import IS_HARD
from tests.support.captures.lake import table_row_texts
from tests.support.captures.packed import TRUTH, unpack
from tests.support.lakes.parts import in_parts
from tests.support.lakes.shared import REORDERED, SharedLake
from tests.support.lakes.slices import Cut, as_of_a_large_lake, cut_off_after, hashes, slices
from tests.support.lakes.two_runs import COMMITS, SLICED, TwoRuns
from tests.table_hashes import rows_of_tables, table_hashes

#: (capture, seed): the slices, their order and where a run is cut off follow from them. One of each era: a case takes
#: minutes.
FED: Final = (("failover-0.8.2.2", 0), ("lifecycle-1.1.1", 1), ("unclean-3.9.1-info", 2))
SLICES: Final = 6
pytestmark = pytest.mark.timeout(1800)


def silent(message: str) -> None:
    """No progress."""


def made(lake: Lake, *, full: bool = False) -> ReconstructReport:
    return reconstruct(lake, progress=silent, full=full)


def test_what_comes_in_parts_in_another_order_and_under_other_names_gives_the_rows_of_all_at_once(
    reordered: SharedLake, two_runs: TwoRuns, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Captures with their files renamed and shuffled, held against them as they were; one in slices before and after
    them, the first run cut off, held against ``--full``, in more parts: a copy's upper bound is that of when it was
    ingested."""
    lake, told = two_runs.copied(spark, 2, tmp_path), two_runs.told
    assert [re.sub(": .*;", ";", one.how) for one in told] == [
        "everything was made anew",
        f"folds made again; clusters left as they were: {len(REORDERED)}",
    ]
    before = versions(lake, TABLES.values())
    again: list[str] = []
    assert reconstruct(lake, progress=again.append) == told[-1]
    assert (again, versions(lake, TABLES.values())) == (["nothing is new since run 2"], before)
    clusters = [reordered.clusters[given] for given in REORDERED]
    at_once = rows_of(reordered.of(*clusters))
    assert at_once["silver.leader_and_isr_timeline"]
    assert differing(at_once, rows_of(OfClusters(lake, clusters))) == {}
    runs: dict[str, set[tuple[Any, ...]]] = {}
    for row in lake.read(FINDING_HISTORY).collect():
        runs.setdefault(row.cluster_id, set()).add((row.first_seen_run, row.last_seen_run, row.withdrawn_run))
    assert runs.pop(SLICED, set()) <= {(1, 2, None), (2, 2, None), (1, 1, 2)}
    assert set().union(*runs.values()) == {(1, 2, None)}, "nothing new was of these clusters"
    increments, pairs = hashes(lake), table_hashes(rows_of_tables(lake, (CLOCK_PAIRS,)))
    as_of_a_large_lake(monkeypatch)
    with in_parts(spark, 3):
        full = made(lake, full=True)
    assert (full, full.how) == (told[-1], "everything was made anew")
    assert table_hashes(rows_of_tables(lake, (CLOCK_PAIRS,))) == pairs != {}
    assert {name: found for name, found in hashes(lake).items() if found != increments[name]} == {}


def test_in_a_small_lake_all_folds_are_made_again(
    two_runs: TwoRuns, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second of two runs once more, behind the first: the lake is a small one by then."""
    lake = two_runs.copied(spark, 2, tmp_path)
    second, kept = hashes(lake), table_hashes(rows_of_tables(lake, (FOLDED_KEYS, JUDGED_ROWS)))
    undo(lake, silent, bronze=False)
    assert {name for name, found in hashes(lake).items() if found != second[name]} > {"silver.leader_and_isr_timeline"}
    monkeypatch.setattr(staging, "IN_MEMORY_BYTES", 1 << 40)
    again = made(lake)
    assert (again, again.how) == (
        two_runs.told[1],
        f"folds made again: all; clusters left as they were: {len(REORDERED)}",
    )
    assert {name: found for name, found in hashes(lake).items() if found != second[name]} == {}
    assert table_hashes(rows_of_tables(lake, (FOLDED_KEYS, JUDGED_ROWS))) == kept, "what the next run goes on from"


def test_lines_that_follow_of_topics_that_are_known_are_a_matter_of_their_folds(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_of_a_large_lake(monkeypatch)
    source = unpack("quiet-0.8.2.2", tmp_path, without=TRUTH)
    log = source / "broker-2" / "logs" / "state-change.log"
    content = log.read_bytes()
    _, then = told_in_two_goes(lake, source, log, content[: content.rfind(b"\n", 0, len(content) * 7 // 8) + 1])
    assert re.match("folds made again: [1-9][0-9]* of partitions", then.how)


def told_in_two_goes(lake: Lake, source: Path, log: Path, at_first: bytes | None) -> list[ReconstructReport]:
    """What runs tell before and behind the rest of a log, or all of it; the second gives the rows of ``--full``."""
    told = []
    for content in (at_first, log.read_bytes()):
        log.unlink() if content is None else log.write_bytes(content)
        ingest_paths(lake, [str(source)], IngestOptions(), silent)
        told.append(made(lake))
    increments = hashes(lake)
    assert made(lake, full=True) == told[-1]
    assert {name: found for name, found in hashes(lake).items() if found != increments[name]} == {}
    return told


def rows_of(lake: OfClusters) -> dict[str, list[str]]:
    """Every row of silver and gold, by table, as text: without names of files and numbers of runs."""
    frames = {spec.full_name: lake.read(spec) for spec in TABLES.values() if spec.schema in ("silver", "gold")}
    history = {FINDING_HISTORY.full_name: frames.pop(FINDING_HISTORY.full_name).drop("first_seen_run", "last_seen_run")}
    return table_row_texts(frames | history, ("source_file",))


def differing(before: dict[str, list[str]], after: dict[str, list[str]]) -> dict[str, tuple[list[str], list[str]]]:
    """By table, up to three rows that only one side holds."""
    found = {}
    for name in before:
        gone, new = set(before[name]) - set(after[name]), set(after[name]) - set(before[name])
        if gone or new or len(before[name]) != len(after[name]):
            found[name] = (sorted(gone)[:3], sorted(new)[:3])
    return found


if IS_HARD:

    @pytest.mark.parametrize(("capture", "seed"), FED)
    def test_any_slices_in_any_order_with_runs_cut_off_give_the_rows_of_a_full_run(
        lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Any, capture: str, seed: int
    ) -> None:
        source = unpack(capture, tmp_path / "whole", without=() if seed % 2 else TRUTH)
        cut_in = random.Random(seed).randrange(SLICES)
        if seed:
            as_of_a_large_lake(monkeypatch)
        told = []
        for number, folder in enumerate(slices(source, tmp_path / "fed", SLICES, seed)):
            ingest_paths(lake, [str(folder)], IngestOptions(), silent)
            if number == cut_in:
                with cut_off_after(monkeypatch, random.Random(seed).randrange(COMMITS)), pytest.raises(Cut):
                    made(lake)
            told.append(made(lake))
        before = versions(lake, TABLES.values())
        again: list[str] = []
        assert reconstruct(lake, progress=again.append) == told[-1]
        assert (again, versions(lake, TABLES.values())) == ([f"nothing is new since run {SLICES}"], before)
        increments = hashes(lake)
        assert increments["silver.leader_and_isr_timeline"][1] > 0
        full = made(lake, full=True)
        assert full.how == "everything was made anew"
        assert {name: found for name, found in hashes(lake).items() if found != increments[name]} == {}
        assert told[-1] == full
        record_property(Figure.CUTS, 1)

    def test_a_late_file_is_a_matter_of_the_folds_that_it_concerns(
        lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        as_of_a_large_lake(monkeypatch)
        source = unpack("failover-1.1.1", tmp_path, without=TRUTH)
        first, then = told_in_two_goes(lake, source, source / "broker-2" / "logs" / "server.log", None)
        assert first.how == "everything was made anew"
        assert then.how.startswith("folds made again: ")

    def test_a_cluster_that_was_refused_is_made_anew_and_the_others_were_published(lake: Lake, tmp_path: Path) -> None:
        for name in ("unclean-0.8.2.2", "quiet-0.8.2.2"):
            source = unpack(name, tmp_path, without=TRUTH)
            ingest_paths(lake, [str(source)], IngestOptions(cluster_id=name), silent)

        def audit(candidate: Lake) -> tuple[str, ...]:
            rows = candidate.read(LEADER_ELECTIONS).where("cluster_id = 'unclean-0.8.2.2'")
            return () if rows.isEmpty() else ("it elects uncleanly",)

        refused = reconstruct(lake, progress=silent, audit=audit)
        assert (refused.refused, refused.clusters_refused) == (("it elects uncleanly",), ("unclean-0.8.2.2",))
        seen = published(lake).read(LEADER_ELECTIONS).select("cluster_id").distinct().collect()
        assert [row["cluster_id"] for row in seen] == ["quiet-0.8.2.2"]
        whole = made(lake)
        assert (whole.how, whole.clusters_refused) == ("everything was made anew", ())
        assert reconstruct(lake, progress=silent).how == "nothing is new since run 1"
