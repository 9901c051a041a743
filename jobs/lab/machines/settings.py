"""The configuration files of the lab's servers, as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from jobs.lab.machines.ports import LOOPBACK
from jobs.lab.machines.releases import Release

#: Of every broker: one machine's worth of threads, and intervals short enough to watch.
BROKER_SETTINGS: Final[Mapping[str, str]] = {
    "zookeeper.session.timeout.ms": "6000",
    "zookeeper.connection.timeout.ms": "60000",
    "num.network.threads": "2",
    "num.io.threads": "2",
    "num.partitions": "1",
    "default.replication.factor": "1",
    "log.cleaner.enable": "false",
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "1",
    "replica.lag.time.max.ms": "3000",
    "replica.high.watermark.checkpoint.interval.ms": "1000",
    "controlled.shutdown.enable": "true",
    "delete.topic.enable": "true",
    "num.replica.fetchers": "1",
    "auto.leader.rebalance.enable": "false",
    "log.retention.check.interval.ms": "600000",
}
#: Of every node of a quorum: a session, an interval between heartbeats and between snapshots short enough to watch, and
#: patience enough for a machine that is busy.
KRAFT_SETTINGS: Final[Mapping[str, str]] = {
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "1000",
    "controller.quorum.fetch.timeout.ms": "4000",
    "metadata.log.max.snapshot.interval.ms": "15000",
    "share.coordinator.state.topic.replication.factor": "1",
}
#: How nodes tell their controllers' listeners from those of brokers.
CONTROLLER_LISTENER: Final[Mapping[str, str]] = {
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
}
#: What a quorum calls a setting that scenarios give; others of ZooKeeper's say nothing to it.
_IN_KRAFT: Final = {"zookeeper.session.timeout.ms": "broker.session.timeout.ms"}
_OF_ZOOKEEPER: Final = ("zookeeper.", "controlled.shutdown.enable")
_PATTERN: Final = "[%d] %p %m (%c)%n"
#: What 0.8's fetchers say 30,000 times a second of a dead leader.
_FLOOD: Final = ("Error in fetch", "Reconnect due to socket error")


def broker_properties(
    release: Release, broker_id: int, port: int, zookeeper_port: int, data: Path, own: Mapping[str, str]
) -> str:
    """``server.properties`` of one broker; ``own`` wins over all other settings."""
    place = {"port": str(port), "host.name": LOOPBACK, "advertised.host.name": LOOPBACK}
    if release.has_listeners:
        place = {"listeners": f"PLAINTEXT://{LOOPBACK}:{port}"}
    settings = {
        "broker.id": str(broker_id),
        "zookeeper.connect": f"{LOOPBACK}:{zookeeper_port}",
        "log.dirs": str(data),
        **BROKER_SETTINGS,
        **place,
        **own,
    }
    return lines(settings)


def kraft_properties(
    node_id: int,
    roles: Sequence[str],
    port: int,
    controller_port: int | None,
    controllers: Mapping[int, int],
    *directories: Path,
    own: Mapping[str, str],
    is_dynamic: bool = False,
) -> str:
    """``server.properties`` of one node of a quorum; ``controllers`` are the ports of its controllers by id, ``port``
    is that of its broker. ``is_dynamic``: the log says who votes, and these are only where that is to be had. ``own``
    wins over all other settings."""
    listeners = [f"PLAINTEXT://{LOOPBACK}:{port}"] * ("broker" in roles)
    place = {"advertised.listeners": listeners[0]} if listeners else {}
    if controller_port is not None:
        listeners.append(f"CONTROLLER://{LOOPBACK}:{controller_port}")
    quorum = {"controller.quorum.voters": voters_text(controllers)}
    if is_dynamic:
        quorum = {"controller.quorum.bootstrap.servers": ",".join(f"{LOOPBACK}:{at}" for at in controllers.values())}
    common = {_IN_KRAFT.get(name, name): value for name, value in (*KRAFT_SETTINGS.items(), *own.items())}
    settings = {
        "node.id": str(node_id),
        "process.roles": ",".join(roles),
        "listeners": ",".join(listeners),
        **place,
        **CONTROLLER_LISTENER,
        **quorum,
        "log.dirs": ",".join(map(str, directories)),
        **BROKER_SETTINGS,
        **common,
    }
    return lines({name: value for name, value in settings.items() if not name.startswith(_OF_ZOOKEEPER)})


def voters_text(ports: Mapping[int, int]) -> str:
    """``controller.quorum.voters`` of controllers by id."""
    return ",".join(f"{voter}@{LOOPBACK}:{port}" for voter, port in ports.items())


def zookeeper_properties(port: int, data: Path, own: Mapping[str, str]) -> str:
    """``zoo.cfg``: ticks short enough that sessions of three seconds are allowed and end about in time."""
    return lines(
        {
            "dataDir": str(data),
            "clientPort": str(port),
            "clientPortAddress": LOOPBACK,
            "tickTime": "500",
            "maxSessionTimeout": "60000",
            "maxClientCnxns": "0",
            "admin.enableServer": "false",
            **own,
        }
    )


def zookeeper_log4j() -> str:
    """ZooKeeper's own words go to its standard output."""
    return lines({"log4j.rootLogger": "INFO, out", **_appender("out", None)})


def broker_log4j(release: Release, logs: Path, state_change_level: str, keeps_flood: bool = False) -> str:
    """``server.log``, ``controller.log`` and ``state-change.log`` as a broker's own distribution sets them up.

    ``state_change_level`` is that of ``state.change.logger`` and of the controller: TRACE up to 2.5, INFO since.
    Without ``keeps_flood`` the lines that a follower of 0.8 repeats without pause are left out of ``server.log``.
    """
    settings = {
        "log4j.rootLogger": "INFO, server",
        **_appender("server", logs / "server.log"),
        **_appender("controller", logs / "controller.log"),
        **_appender("stateChange", logs / "state-change.log"),
        "log4j.logger.kafka.controller": f"{state_change_level}, controller",
        "log4j.additivity.kafka.controller": "false",
        "log4j.logger.state.change.logger": f"{state_change_level}, stateChange",
        "log4j.additivity.state.change.logger": "false",
    }
    if release.floods_fetch_errors and not keeps_flood:
        for number, text in enumerate(_FLOOD):
            filter_name = f"log4j.appender.server.filter.{number}"
            settings[filter_name] = "org.apache.log4j.varia.StringMatchFilter"
            settings[f"{filter_name}.StringToMatch"] = text
            settings[f"{filter_name}.AcceptOnMatch"] = "false"
    return lines(settings)


def kraft_log4j(release: Release, logs: Path, state_change_level: str) -> str:
    """The same three logs of a node of a quorum, by the loggers of its controller: ``org.apache.kafka.controller`` at
    DEBUG where ``state_change_level`` is TRACE, which would be every heartbeat."""
    files = {"server": "server", "controller": "controller", "stateChange": "state-change"}
    level = {"TRACE": "DEBUG"}.get(state_change_level, state_change_level)
    loggers = {
        "org.apache.kafka.controller": (level, "controller"),
        "kafka.controller": (level, "controller"),
        "state.change.logger": (state_change_level, "stateChange"),
    }
    if not release.has_log4j2:
        settings = {"log4j.rootLogger": "INFO, server"}
        for name, file in files.items():
            settings |= _appender(name, logs / f"{file}.log")
        for logger, (at, appender) in loggers.items():
            settings |= {f"log4j.logger.{logger}": f"{at}, {appender}", f"log4j.additivity.{logger}": "false"}
        return lines(settings)
    settings = {"rootLogger.level": "INFO", "rootLogger.appenderRef.file.ref": "server"}
    for name, file in files.items():
        settings |= {
            f"appender.{name}.type": "File",
            f"appender.{name}.name": name,
            f"appender.{name}.fileName": str(logs / f"{file}.log"),
            f"appender.{name}.layout.type": "PatternLayout",
            f"appender.{name}.layout.pattern": _PATTERN,
        }
    for number, (logger, (at, appender)) in enumerate(loggers.items()):
        settings |= {
            f"logger.{number}.name": logger,
            f"logger.{number}.level": at,
            f"logger.{number}.additivity": "false",
            f"logger.{number}.appenderRef.file.ref": appender,
        }
    return lines(settings)


def _appender(name: str, file: Path | None) -> dict[str, str]:
    kind = "org.apache.log4j.ConsoleAppender" if file is None else "org.apache.log4j.FileAppender"
    settings = {
        f"log4j.appender.{name}": kind,
        f"log4j.appender.{name}.layout": "org.apache.log4j.PatternLayout",
        f"log4j.appender.{name}.layout.ConversionPattern": _PATTERN,
    }
    return settings if file is None else settings | {f"log4j.appender.{name}.File": str(file)}


def lines(settings: Mapping[str, str]) -> str:
    """As a file of Java properties."""
    return "".join(f"{key}={value}\n" for key, value in settings.items())
