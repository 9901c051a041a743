"""What brokers' own configurations held when: a start's print counts from then on, the file where none does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ingest.shapes import match
from ingest.shapes.broker_settings import BrokerSetting
from reconstruct.cluster.settings import (
    EVERY_BROKER,
    Configuration,
    Known,
    OwnSettings,
    SettingChange,
    SettingsOverTime,
    checkpoint_interval_us,
    lag_time_us,
    session_timeout_us,
    truncates_on_fetch,
    unclean_election,
)
from reconstruct.cluster.view import ClusterView
from reconstruct.model.versions import KafkaVersion, VersionRange
from tests.support.captures.packed import Unpacker, capture_names
from tests.support.evidence.partitions import plain_capture

SECOND = 1_000_000
LAG, MIN_ISR, UNCLEAN = BrokerSetting.LAG_TIME, BrokerSetting.MIN_ISR, BrokerSetting.UNCLEAN


def exactly(text: str) -> VersionRange:
    return VersionRange.exactly(KafkaVersion.parse(text) or pytest.fail(text))


def own(
    *printed: tuple[float, dict[str, str]], file: dict[str, list[str]] | None = None, starts: tuple[float, ...] = ()
) -> Configuration:
    read = OwnSettings({} if file is None else {1: file}, {1: [(round(at * SECOND), values) for at, values in printed]})
    found = read.of_broker(1, [round(at * SECOND) for at in starts])
    assert found is not None
    return found


def test_a_print_counts_from_its_start_to_the_next_and_the_file_before_the_first():
    held = own((10, {LAG: "3000"}), (90, {LAG: "9000"}), file={LAG: ["500"]}, starts=(10, 90))
    assert [held.value(LAG, at * SECOND) for at in (0, 10, 89, 90, 500)] == ["500", "3000", "3000", "9000", "9000"]
    assert held.changes(LAG) == [10 * SECOND, 90 * SECOND]
    assert held.changes(MIN_ISR) == []


def test_a_start_whose_print_is_missing_ends_what_was_printed_before():
    held = own((10, {LAG: "3000"}), (200, {LAG: "3000"}), starts=(10, 100, 200))
    assert [held.value(LAG, at * SECOND) for at in (50, 150, 250)] == ["3000", Known.NOT, "3000"]
    by_file = own((10, {LAG: "3000"}), file={LAG: ["700"]}, starts=(10, 100))
    assert by_file.value(LAG, 150 * SECOND) == "700"


def test_prints_that_say_the_same_are_one_and_the_lines_of_a_print_are_together():
    same = own((10, {LAG: "3000"}), (90, {LAG: "3000"}), starts=(10, 90))
    assert same.printed == ((10 * SECOND, {LAG: "3000"}),)
    lines = own((10, {}), (10.1, {LAG: "3000"}), (10.2, {MIN_ISR: "2"}), starts=(11,))
    assert lines.printed == ((10 * SECOND, {LAG: "3000", MIN_ISR: "2"}),)


def test_what_a_print_lacks_and_the_file_sets_is_not_known():
    """Of 0.8 a line may be lost, or the file was changed later; where neither sets it, the default held."""
    held = own((10, {LAG: "3000"}), file={MIN_ISR: ["2"]})
    assert held.value(MIN_ISR, 20 * SECOND) is Known.NOT
    assert held.value(UNCLEAN, 20 * SECOND) is None
    assert own((10, {LAG: "3000"})).value(UNCLEAN, 20 * SECOND) is Known.NOT
    assert own(file={MIN_ISR: ["2", "3"]}).value(MIN_ISR, 0) is Known.NOT, "two copies, and nothing says which held"


def test_defaults_are_those_of_the_version():
    nothing_set = own(file={})
    assert lag_time_us(nothing_set, 0, exactly("2.4.1")) == 10 * SECOND
    assert lag_time_us(nothing_set, 0, exactly("2.5.0")) == 30 * SECOND
    both = VersionRange(exactly("2.4.1").low, exactly("2.5.0").low)
    assert lag_time_us(nothing_set, 0, both) == 10 * SECOND, "of several the shortest"
    assert unclean_election(nothing_set, 0, exactly("0.10.2.2")) is True
    assert unclean_election(nothing_set, 0, exactly("0.11.0.3")) is False
    assert truncates_on_fetch(nothing_set, 0) is True
    assert truncates_on_fetch(own((1, {BrokerSetting.PROTOCOL: "2.6-IV0"})), 2 * SECOND) is False
    assert truncates_on_fetch(own((1, {BrokerSetting.PROTOCOL: "3.9-IV0"})), 2 * SECOND) is True
    assert truncates_on_fetch(own((1, {LAG: "1"})), 2 * SECOND) is None


def test_of_a_checkpoint_the_longest_times_count():
    held = own((1, {BrokerSetting.CHECKPOINT_INTERVAL: "1000"}), (9, {BrokerSetting.CHECKPOINT_INTERVAL: "7000"}))
    assert checkpoint_interval_us(held) == 7 * SECOND
    assert session_timeout_us(held) is None
    assert session_timeout_us(replace(held, file={})) == 18 * SECOND


def test_min_insync_replicas_of_a_partition_is_what_its_leaders_start_printed():
    held = own((10, {MIN_ISR: "1"}), (100, {MIN_ISR: "2"}), file={MIN_ISR: ["2"]}, starts=(10, 100))
    settings = SettingsOverTime({"t": [SettingChange(0, is_first=True)]})
    view = ClusterView("c", exactly("2.3.1"), configurations={1: held}, settings=settings)
    assert view.min_isr("t", 1, 20 * SECOND, 90 * SECOND) == 1
    assert view.min_isr("t", 1, 110 * SECOND) == 2
    assert view.min_isr("t", 1, 20 * SECOND, 110 * SECOND) is None, "it changed meanwhile"
    topic = replace(view, settings=SettingsOverTime({"t": [SettingChange(0, 3, is_first=True)]}))
    assert topic.min_isr("t", 1, 20 * SECOND, 110 * SECOND) == 3, "what a topic set goes before it"


def test_what_a_start_printed_of_a_dynamic_setting_does_not_outlive_that():
    """KIP-226: the print includes what /config/brokers set then."""
    held = own((10, {MIN_ISR: "2", UNCLEAN: "true"}))
    set_, unset = SettingChange(0, 2, True, is_first=True), SettingChange(50 * SECOND)
    view = ClusterView("c", exactly("2.3.1"), configurations={1: held})
    topic = {"t": [SettingChange(0, is_first=True)]}
    dynamic = replace(view, settings=SettingsOverTime(topic, {EVERY_BROKER: [set_, unset]}))
    assert dynamic.min_isr("t", 1, 20 * SECOND, 40 * SECOND) == 2
    assert dynamic.min_isr("t", 1, 60 * SECOND) is None
    assert dynamic.unclean_election_allowed("t", 20 * SECOND) is True
    assert dynamic.unclean_election_allowed("t", 60 * SECOND) is None
    static = replace(view, settings=SettingsOverTime(topic))
    assert static.min_isr("t", 1, 60 * SECOND) == 2
    assert static.unclean_election_allowed("t", 60 * SECOND) is True


def test_an_unclean_election_was_allowed_where_all_brokers_printed_so():
    allowing, later = own((10, {UNCLEAN: "true"})), own((10, {UNCLEAN: "true"}), (90, {UNCLEAN: "false"}))
    view = ClusterView("c", exactly("2.3.1"), configurations={1: allowing, 2: later})
    assert view.unclean_election_allowed("t", 50 * SECOND) is True
    assert view.unclean_election_allowed("t", 95 * SECOND) is None
    assert view.unclean_election_allowed("t") is True, "as far as it is known"


BLOCK = (
    "KafkaConfig values: \n\tadvertised.listeners = null\n\tmin.insync.replicas = 2\n\treplica.lag.time.max.ms = 3000\n"
)


@pytest.mark.parametrize(
    ("logger", "message", "fields"),
    [
        ("kafka.server.KafkaConfig", BLOCK + "\tzookeeper.connect = h:2181\n", {MIN_ISR: "2", LAG: "3000"}),
        ("kafka.server.KafkaConfig", BLOCK.replace("\n", "\r\n"), {MIN_ISR: "2", LAG: "3000"}),
        ("kafka.server.KafkaConfig", "KafkaConfig values:", {}),
        ("kafka.utils.VerifiableProperties", "Verifying properties", {}),
        ("kafka.utils.VerifiableProperties", "Property replica.lag.time.max.ms is overridden to 3000", {LAG: "3000"}),
        ("kafka.utils.VerifiableProperties", "Property zookeeper.connect is overridden to h:2181/kafka", {}),
        ("kafka.utils.VerifiableProperties", "Property log.dirs is overridden to ", {}),
    ],
)
def test_the_lines_of_a_start_give_the_settings_that_rules_read(logger, message, fields):
    found = match("server_log", logger, message)
    assert found is not None
    assert (found.event_type, found.fields) == ("broker_configured", fields)


@pytest.mark.parametrize("name", capture_names())
def test_what_brokers_of_a_capture_printed_is_what_they_were_started_with(name: str, unpacked: Unpacker):
    """The scenarios start each broker with its file, every time."""
    for own_settings in plain_capture(unpacked(name)).cluster.view.configurations.values():
        (printed,) = own_settings.printed
        assert own_settings.file is not None
        for setting, (given,) in own_settings.file.items():
            setting = BrokerSetting(setting)
            assert own_settings.value(setting, printed[0]) == given
            assert own_settings.printed_at(setting, printed[0] + SECOND) == printed[0], "and not from the file"
            assert own_settings.changes(setting) == []
