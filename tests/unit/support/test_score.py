"""The measure: alignments by hand, and the truth scored against itself and against damaged copies."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.captures.packed import CAPTURES, capture_names
from tests.support.truth.alignment import Step, align, common_subsequence, instant_ms, overlap, without_repeats
from tests.support.truth.decisions import Registration, Truth, Write, read_truth
from tests.support.truth.score import (
    main,
    score_assignments,
    score_controllers,
    score_existence,
    score_liveness,
    score_states,
    table,
)


def steps(values: str) -> list[Step]:
    return [Step(value, float(at)) for at, value in enumerate(values)]


def state_rows(truth: Truth) -> list[dict[str, Any]]:
    """What a perfect reconstruction would hold."""
    sequences: dict[tuple[str, int, int], int] = {}
    rows = []
    for state in truth.states:
        key = (state.topic, state.topic_incarnation, state.partition_id)
        sequences[key] = sequences.get(key, -1) + 1
        rows.append(
            {
                "topic": state.topic,
                "topic_incarnation": str(state.topic_incarnation),
                "partition_id": state.partition_id,
                "sequence": sequences[key],
                "leader": state.leader,
                "leader_epoch": state.leader_epoch,
                "isr": list(reversed(state.isr)),
                "valid_from": datetime.fromtimestamp(state.write.time_ms / 1000, UTC).isoformat(),
            }
        )
    return rows


class TestAlignment:
    @pytest.mark.parametrize(
        ("truth", "ours", "missed", "extra"),
        [
            ("abc", "abc", "", ""),
            ("abc", "", "abc", ""),
            ("", "abc", "", "abc"),
            ("abcd", "abd", "c", ""),
            ("abd", "abcd", "", "c"),
            ("aba", "ab", "a", ""),
            ("ab", "ba", "a", "a"),
            ("abcde", "axcye", "bd", "xy"),
        ],
    )
    def test_missed_and_extra_steps(self, truth: str, ours: str, missed: str, extra: str) -> None:
        (alignment,) = align({"k": steps(truth)}, {"k": steps(ours)}).alignments
        assert "".join(str(step.value) for step in alignment.missed) == missed
        assert "".join(str(step.value) for step in alignment.extra) == extra

    @given(st.text("abc", max_size=12), st.text("abc", max_size=12))
    def test_pairs_are_a_common_subsequence_and_as_long_from_either_side(self, left: str, right: str) -> None:
        def equal(a: str, b: str) -> bool:
            return a == b

        pairs = common_subsequence(left, right, equal)
        assert all(left[i] == right[j] for i, j in pairs)
        assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(pairs))
        assert len(pairs) == len(common_subsequence(right, left, equal))

    @given(st.text("abc", max_size=10), st.data())
    def test_what_was_cut_out_is_what_is_missed(self, truth: str, data: st.DataObject) -> None:
        kept = data.draw(st.lists(st.booleans(), min_size=len(truth), max_size=len(truth)))
        ours = "".join(value for value, keep in zip(truth, kept, strict=True) if keep)
        score = align({"k": steps(truth)}, {"k": steps(ours)})
        assert score.matched_count == len(ours)
        assert score.extras == 0

    def test_a_key_of_one_side_only_counts(self) -> None:
        score = align({"a": steps("xy")}, {"b": steps("x")})
        assert (score.truth_count, score.ours_count, score.matched_count) == (2, 1, 0)
        assert (score.recall, score.extras) == (0, 1)

    def test_nothing_against_nothing_is_perfect(self) -> None:
        score = align({}, {})
        assert (score.recall, score.extras) == (1, 0)

    def test_repeats_are_one_step_from_the_first_begin_to_the_last_end(self) -> None:
        assert without_repeats([Step("a", 1, 2), Step("a", 2, 3), Step("b", 3, 4), Step("a", 4, None)]) == (
            Step("a", 1, 3),
            Step("b", 3, 4),
            Step("a", 4, None),
        )

    @pytest.mark.parametrize(
        ("one", "other", "meets"),
        [((0, 5), (4, 9), True), ((0, 5), (6, 9), False), ((0, None), (6, None), True), ((None, 5), (5, 9), True)],
    )
    def test_overlap(self, one: tuple[float | None, ...], other: tuple[float | None, ...], meets: bool) -> None:
        assert overlap(Step("x", *one), Step("x", *other)) is meets
        assert not overlap(Step("x", *one), Step("y", *other))

    def test_times_are_compared_where_both_sides_know_them(self) -> None:
        score = align({"k": [Step("a", 10, 20), Step("b", 20, None)]}, {"k": [Step("a", 13, 18), Step("b", 21, 30)]})
        assert score.start_errors_ms == (3, 1)
        assert score.end_errors_ms == (-2,)

    def test_the_diff_shows_what_is_wrong_and_its_neighbours(self) -> None:
        truth = {("orders", 0): [Step((1, 0, frozenset({2, 1})), 0.0), Step((2, 1, frozenset({2})), 1_500.0)]}
        ours = {("orders", 0): [Step((1, 0, frozenset({1, 2})), 0.0), Step((3, 1, frozenset()), 1_600.0, note="v4")]}
        assert align(truth, ours).diff() == (
            "(orders, 0):\n"
            "    00:00:00.000  (1, 0, {1,2})\n"
            "  - 00:00:01.500  (2, 1, {2})\n"
            "  + 00:00:01.600  (3, 1, {})  v4"
        )
        assert align(truth, truth).diff() == ""


class TestInstants:
    @pytest.mark.parametrize(
        "value",
        [
            1_500,
            1_500.0,
            "1970-01-01T00:00:01.500000Z",
            "1970-01-01T02:00:01.5+02:00",
            datetime(1970, 1, 1, 0, 0, 1, 500_000),
        ],
    )
    def test_every_spelling_of_an_instant(self, value: object) -> None:
        assert instant_ms(value) == 1_500

    def test_anything_else_is_refused(self) -> None:
        with pytest.raises(TypeError, match="no instant"):
            instant_ms([])


class TestStates:
    @pytest.mark.parametrize("name", capture_names())
    def test_the_truth_itself_scores_full(self, name: str, unpacked) -> None:
        truth = read_truth(unpacked(name))
        score = score_states(truth, reversed(state_rows(truth)))
        assert (score.recall, score.extras, score.diff()) == (1, 0, "")
        assert max(map(abs, score.start_errors_ms)) < 1

    def test_a_topic_deleted_and_created_again_is_one_sequence(self, unpacked) -> None:
        truth = read_truth(unpacked("lifecycle-1.1.1"))
        rows = state_rows(truth)
        (incarnation,) = {row["topic_incarnation"] for row in rows if row["topic"] == "scratch"}
        again = [
            row | {"topic_incarnation": "0", "leader": 9, "valid_from": "2030-01-01T00:00:00Z"}
            for row in rows
            if row["topic_incarnation"] == incarnation and row["sequence"] == 0
        ]
        score = score_states(truth, again + rows)
        assert (score.recall, score.ours_count - score.matched_count) == (1, len(again))

    def test_one_lost_and_one_invented_state_are_counted(self, unpacked) -> None:
        truth = read_truth(unpacked("unclean-0.8.2.2"))
        rows = state_rows(truth)
        rows[3] |= {"leader": 9}
        score = score_states(truth, rows)
        assert score.recall == pytest.approx(16 / 17)
        assert score.extras == pytest.approx(1 / 17)

    def test_writes_that_change_nothing_compared_are_one_state(self, unpacked) -> None:
        truth = read_truth(unpacked("quiet-3.9.1"))
        again = Truth(states=[*truth.states, *(replace(state, partition_epoch=1) for state in truth.states)])
        assert score_states(again, state_rows(truth)).recall == 1

    def test_the_table_names_counts_and_shares(self, unpacked) -> None:
        truth = read_truth(unpacked("unclean-0.8.2.2"))
        line = table({"unclean": score_states(truth, state_rows(truth)[1:])}).splitlines()[1]
        assert line.split()[:7] == ["unclean", "17", "16", "1", "0", "94.1%", "0.0%"]


class TestOtherSubjects:
    def test_controllers(self, unpacked) -> None:
        truth = read_truth(unpacked("failover-1.1.1"))
        rows = [{"controller_id": c, "controller_epoch": e, "valid_from": e} for e, c in ((3, 2), (1, 1), (2, 1))]
        score = score_controllers(truth, rows)
        assert (score.matched_count, score.truth_count, score.ours_count) == (2, 3, 3)

    def test_assignments(self, unpacked) -> None:
        truth = read_truth(unpacked("reassign_busy-1.1.1"))
        rows = [
            {"topic": a.topic, "topic_incarnation": "1", "partition_id": a.partition_id, "sequence": sequence}
            | {"replicas": list(a.replicas), "valid_from": a.write.time_ms}
            for sequence, a in enumerate(truth.assignments)
        ]
        assert score_assignments(truth, rows).recall == 1
        assert score_assignments(truth, rows[1:]).recall == pytest.approx(21 / 22)

    def test_liveness_is_matched_by_overlap_and_measured_by_its_ends(self) -> None:
        truth = Truth()
        rows: list[dict[str, Any]] = [
            {"broker_id": 1, "sequence": 0, "valid_from": 90, "valid_to": 210},
            {"broker_id": 1, "sequence": 1, "valid_from": 305, "valid_to": None},
            {"broker_id": 2, "sequence": 0, "valid_from": 0, "valid_to": 5},
        ]
        truth.registrations += [
            Registration(1, Write(1, 100, 7), Write(2, 200, 7)),
            Registration(1, Write(3, 300, 8)),
            Registration(2, Write(4, 400, 9)),
        ]
        score = score_liveness(truth, rows)
        assert (score.matched_count, score.truth_count, score.ours_count) == (2, 3, 3)
        assert (score.start_errors_ms, score.end_errors_ms) == ((-10, 5), (10,))

    def test_existence_spans_the_rows_of_an_incarnation(self, unpacked) -> None:
        truth = read_truth(unpacked("lifecycle-3.9.1"))
        rows = [
            {"topic": life.topic, "topic_incarnation": str(life.topic_incarnation), "partition_id": life.partition_id}
            | {"state": state, "valid_from": begin, "valid_to": end}
            for life in truth.partitions
            for state, begin, end in (
                ("OnlinePartition", life.created.time_ms, life.created.time_ms + 5),
                ("OfflinePartition", life.created.time_ms + 5, life.deleted.time_ms if life.deleted else None),
                ("NonExistentPartition", 0, None),
            )
        ]
        score = score_existence(truth, rows)
        assert (score.recall, score.extras) == (1, 0)
        assert set(score.end_errors_ms) == {0}


def test_the_command_prints_the_table_and_the_difference(tmp_path, capsys, unpacked) -> None:
    truth = read_truth(unpacked("unclean-0.8.2.2"))
    rows = tmp_path / "rows.json"
    rows.write_text(json.dumps([row | {"cluster_id": "a"} for row in state_rows(truth)[1:]]))
    assert main([str(CAPTURES / "unclean-0.8.2.2.tar.xz"), str(rows), "--cluster", "a"]) == 0
    printed = capsys.readouterr().out
    assert "94.1%" in printed
    assert "  - " in printed
    assert main([str(unpacked("unclean-0.8.2.2")), str(rows), "--cluster", "b"]) == 0
    assert "0.0%" in capsys.readouterr().out


def test_the_packs_stay_under_the_limit() -> None:
    from tests.support.captures.packing import LIMIT_BYTES

    assert sum(path.stat().st_size for path in CAPTURES.glob("*.tar.xz")) < LIMIT_BYTES


def test_packing_twice_gives_the_same_bytes_and_unpacking_gives_the_files_back(tmp_path) -> None:
    from tests.support.captures.packed import extract
    from tests.support.captures.packing import pack

    folder = tmp_path / "one" / "tiny-1.1.1"
    for name, content in {"znodes/2.jsonl": "b", "broker-1/logs/server.log": "a", "zk-version-2/log.1": "c"}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    packed = pack(folder)
    (folder / "znodes/2.jsonl").touch()
    assert pack(folder) == packed
    archive = tmp_path / "tiny-1.1.1.tar.xz"
    archive.write_bytes(packed)
    out = extract(archive, tmp_path / "out", without=("zk-version-2", "*.jsonl"))
    files = [path.relative_to(out).as_posix() for path in sorted(out.rglob("*")) if path.is_file()]
    assert files == ["broker-1/logs/server.log"]
