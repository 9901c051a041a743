"""What of a capture each set of sources gives to the program."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.captures.lake import Given, Sources, lay_out
from tests.support.captures.packed import capture_names


def kinds(capture: Path) -> set[str]:
    """The kinds of files: file names of logs, the first folder below the broker of others."""
    found = set()
    for path in capture.rglob("*"):
        if path.is_file():
            parts = path.relative_to(capture).parts
            found.add(
                parts[1]
                if parts[0].startswith("broker-") and parts[1] != "logs"
                else parts[-1 if "logs" in parts else 0]
            )
    return found


LOGS = {"state-change.log", "controller.log", "server.log"}
PROPERTIES = {"server.properties", "meta.properties"}
CHECKPOINTS = {"checkpoints", "leader-epoch-checkpoint"}


@pytest.mark.parametrize(
    ("sources", "given"),
    [
        (Sources.ALL, LOGS | PROPERTIES | CHECKPOINTS | {"znodes"}),
        (Sources.NO_ZNODES, LOGS | PROPERTIES | CHECKPOINTS),
        (Sources.CONTROLLER, {"state-change.log", "controller.log"} | PROPERTIES),
        (Sources.BROKERS, {"state-change.log", "server.log"} | PROPERTIES),
    ],
)
def test_each_set_of_sources_holds_its_files_and_never_the_truth(
    sources: Sources, given: set[str], tmp_path: Path
) -> None:
    assert kinds(lay_out(Given(sources, "failover-3.9.1"), tmp_path)) == given


def test_controllers_and_brokers_records_of_one_log_are_told_apart(tmp_path: Path) -> None:
    texts = {
        sources: (lay_out(Given(sources, "failover-1.1.1"), tmp_path) / "broker-1/logs/state-change.log").read_text()
        for sources in (Sources.NO_ZNODES, Sources.CONTROLLER, Sources.BROKERS)
    }
    assert "[Broker id=" not in texts[Sources.CONTROLLER]
    assert "[Controller id=" not in texts[Sources.BROKERS].replace("from controller", "")
    lines = {sources: sorted(text.splitlines()) for sources, text in texts.items()}
    assert sorted(lines[Sources.CONTROLLER] + lines[Sources.BROKERS]) == lines[Sources.NO_ZNODES]


@pytest.mark.parametrize("name", capture_names())
def test_fewer_sources_name_their_cluster_only_by_meta_properties(name: str, tmp_path: Path) -> None:
    capture = lay_out(Given(Sources.NO_ZNODES, name), tmp_path)
    assert all("Cluster ID = " not in log.read_text() for log in capture.glob("broker-*/logs/*.log"))
    stated = {path.read_text() for path in capture.glob("broker-*/meta.properties")}
    assert stated == {f"version=0\ncluster.id={name.replace('.', '-')}-no_znodes\n"}
