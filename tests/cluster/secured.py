"""A cluster of the lab with every kind of lock on: listeners, users, ACLs, and ZooKeeper's own."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.security import ACL, Id, make_digest_acl

from jobs.lab.admin import Partition
from jobs.lab.machines.ports import LOOPBACK, free_ports
from jobs.lab.machines.releases import Release
from jobs.lab.machines.with_zookeeper import ZooKeeperCluster
from jobs.lab.waiting import wait_for
from tests.cluster.certificates import STORE_PASSWORD, Authority, Certified

BROKERS: Final = (1, 2)
#: Seen by who may DESCRIBE it, and by nobody else.
TOPICS: Final = ("orders", "payroll")

#: Each user's password; none is part of another, so that each can be looked for.
PASSWORDS: Final = {
    "capturer": "sasl-Secret-11",
    "stranger": "sasl-Secret-22",
    "reader": "sasl-Secret-33",
    "clerk": "sasl-Secret-44",
    "scramble": "sasl-Secret-55",
    "watch": "zoo-Secret-66",
    "kafka": "zoo-Secret-88",
}
SECRETS: Final = (*PASSWORDS.values(), STORE_PASSWORD)

#: Of the listener BRIEFSASL: connections must show their credentials again after so long (KIP-368, 2.2).
REAUTHENTICATION_MS: Final = 2_000

_SCRAM: Final = "SCRAM-SHA-256"
#: Listeners by name, and their security protocol.
_LISTENERS: Final[Mapping[str, str]] = {
    "TLS": "SSL",
    "MUTUAL": "SSL",
    "ELSEWHERE": "SSL",
    "PLAINTLS": "SASL_SSL",
    "SCRAMTLS": "SASL_SSL",
    "PLAINSASL": "SASL_PLAINTEXT",
    "SCRAMSASL": "SASL_PLAINTEXT",
    "BRIEFSASL": "SASL_PLAINTEXT",
}
#: Who may what, below the authorizer's znode: topics to describe, and whether the cluster.
_DESCRIBE: Final[Mapping[str, tuple[str, ...]]] = {
    "/kafka-acl/Topic/orders": ("reader", "clerk"),
    "/kafka-acl/Topic/payroll": ("reader",),
}


@dataclass(frozen=True)
class Papers:
    """What the cluster's servers and its clients hold."""

    authority: Authority
    stranger: Authority
    server: Certified
    elsewhere: Certified
    client: Certified
    forged: Certified

    @staticmethod
    def made(folder: Path) -> Papers:
        ours, others = Authority(folder, "ours"), Authority(folder, "others")
        return Papers(
            ours,
            others,
            ours.certify("server", ("127.0.0.1", "localhost")),
            ours.certify("elsewhere", ("elsewhere.example",)),
            ours.certify("client"),
            others.certify("forged"),
        )


@dataclass
class Secured:
    """The cluster, what its servers and clients hold, and the end of each partition once it is produced to."""

    cluster: LockedCluster
    papers: Papers
    has_zookeeper_tls: bool
    nobody: int
    ends: dict[Partition, int] = field(default_factory=dict)

    @property
    def zookeeper(self) -> str:
        return self.cluster.zookeeper.address

    @property
    def zookeeper_tls(self) -> str | None:
        """Where ZooKeeper listens for TLS; None where its release cannot."""
        return f"{LOOPBACK}:{self.cluster.secure_port}" if self.has_zookeeper_tls else None

    def bootstrap(self, listener: str) -> str:
        """The brokers' addresses; those of nobody and of ZooKeeper for what is wrong."""
        others = {
            "PLAINTEXT": self.cluster.bootstrap,
            "ZOOKEEPER": self.zookeeper,
            "NOBODY": f"{LOOPBACK}:{self.nobody}",
        }
        if listener in others:
            return others[listener]
        return ",".join(f"{LOOPBACK}:{ports[listener]}" for ports in self.cluster.ports.values())

    def lock_znodes(self, hidden: Sequence[str] = ()) -> None:
        """Give every znode of Kafka's to the brokers, READ to the user ``watch`` (by digest and by SASL), and nothing
        to anybody else; of what is below ``hidden`` nothing to ``watch`` either."""
        with self._as_kafka() as client:
            _lock(client, "/", tuple(hidden))

    def wait_until_gone(self, broker: int) -> None:
        """Until ZooKeeper has ended the session of a broker that was killed: before, it would refuse to start."""
        with self._as_kafka() as client:
            wait_for(f"broker {broker} is not registered", lambda: not client.exists(f"/brokers/ids/{broker}"))

    @contextlib.contextmanager
    def _as_kafka(self) -> Iterator[KazooClient]:
        options = {"mechanism": "DIGEST-MD5", "username": "kafka", "password": PASSWORDS["kafka"]}
        client = KazooClient(self.zookeeper, sasl_options=options)
        client.start()
        try:
            yield client
        finally:
            client.stop()
            client.close()


def secured(release: Release, folder: Path) -> Secured:
    """A cluster that is not started yet: two brokers, each with all of the listeners and an authorizer; ZooKeeper with
    SASL and, where its release can, TLS."""
    papers = Papers.made(folder / "papers")
    has_tls = release.number >= (2, 8)  # ZooKeeper 3.5 and later, with netty among the jars
    server, client = folder / "zookeeper-jaas.conf", folder / "broker-jaas.conf"
    digest = "org.apache.zookeeper.server.auth.DigestLoginModule"
    users = " ".join(f'user_{name}="{PASSWORDS[name]}"' for name in ("kafka", "watch"))
    server.write_text(f"Server {{ {digest} required {users}; }};\n")
    client.write_text(f'Client {{ {digest} required username="kafka" password="{PASSWORDS["kafka"]}"; }};\n')
    cluster = LockedCluster(release, folder / "cluster", papers, (server, client), has_tls)
    return Secured(cluster, papers, has_tls, *free_ports(1))


class LockedCluster(ZooKeeperCluster):
    """``ports`` are those of each broker's listeners, by name; ZooKeeper listens for TLS on ``secure_port``. ``logins``
    are the JAAS files of ZooKeeper and of the brokers."""

    def __init__(
        self, release: Release, folder: Path, papers: Papers, logins: tuple[Path, Path], has_tls: bool
    ) -> None:
        self.secure_port, *ports = free_ports(1 + len(BROKERS) * len(_LISTENERS))
        free = iter(ports)
        self.ports = {broker_id: {name: next(free) for name in _LISTENERS} for broker_id in BROKERS}
        self.zookeeper_options, self.broker_options = (
            (f"-Djava.security.auth.login.config={login}",) for login in logins
        )
        self.zookeeper_settings = {
            "authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
            **({"secureClientPort": str(self.secure_port), **_zookeeper_tls(papers)} if has_tls else {}),
        }
        super().__init__(release, folder, BROKERS, _settings(release, papers))

    def broker_settings(self, broker_id: int, port: int) -> Mapping[str, str]:
        """Every listener beside the plain one (KIP-103, 0.10.2)."""
        listeners = {"PLAINTEXT": port, **self.ports[broker_id]}
        protocols = {"PLAINTEXT": "PLAINTEXT", **_LISTENERS}
        return {
            "listeners": ",".join(f"{name}://{LOOPBACK}:{number}" for name, number in listeners.items()),
            "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
            "inter.broker.listener.name": "PLAINTEXT",
            **super().broker_settings(broker_id, port),
        }

    def prepare(self) -> None:
        """What brokers read of users and ACLs."""
        for path, data in {**_scram_users(), **_acls()}.items():
            self.client.create(path, data.encode(), makepath=True)


def _settings(release: Release, papers: Papers) -> dict[str, str]:
    old = release.number < (2, 4)
    plain = " ".join(f'user_{name}="{PASSWORDS[name]}"' for name in ("capturer", "stranger", "reader", "clerk"))
    security = "org.apache.kafka.common.security"
    settings = {
        "authorizer.class.name": f"kafka.security.a{'uth.SimpleA' if old else 'uthorizer.A'}clAuthorizer",
        "super.users": "User:ANONYMOUS;User:capturer;User:scramble;User:CN=client",
        **_store("", papers.server.store, papers.authority.store),
        **_store("listener.name.elsewhere.", papers.elsewhere.store, papers.authority.store),
        "listener.name.mutual.ssl.client.auth": "required",
    }
    for name in ("plaintls", "plainsasl", "briefsasl"):
        settings |= {
            f"listener.name.{name}.sasl.enabled.mechanisms": "PLAIN",
            f"listener.name.{name}.plain.sasl.jaas.config": f"{security}.plain.PlainLoginModule required {plain};",
        }
    settings["listener.name.briefsasl.plain.connections.max.reauth.ms"] = str(REAUTHENTICATION_MS)
    for name in ("scramtls", "scramsasl"):
        settings |= {
            f"listener.name.{name}.sasl.enabled.mechanisms": _SCRAM,
            f"listener.name.{name}.{_SCRAM.lower()}.sasl.jaas.config": f"{security}.scram.ScramLoginModule required;",
        }
    return settings


def _store(prefix: str, keys: Path, trusted: Path) -> dict[str, str]:
    return {
        f"{prefix}ssl.keystore.location": str(keys),
        f"{prefix}ssl.keystore.password": STORE_PASSWORD,
        f"{prefix}ssl.keystore.type": "PKCS12",
        f"{prefix}ssl.key.password": STORE_PASSWORD,
        f"{prefix}ssl.truststore.location": str(trusted),
        f"{prefix}ssl.truststore.password": STORE_PASSWORD,
        f"{prefix}ssl.truststore.type": "PKCS12",
    }


def _zookeeper_tls(papers: Papers) -> dict[str, str]:
    return {
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "ssl.keyStore.location": str(papers.server.store),
        "ssl.keyStore.password": STORE_PASSWORD,
        "ssl.trustStore.location": str(papers.authority.store),
        "ssl.trustStore.password": STORE_PASSWORD,
        "ssl.clientAuth": "need",
    }


def _scram_users() -> dict[str, str]:
    """As ``kafka-configs --alter --add-config SCRAM-SHA-256=...`` writes them."""
    salt, rounds = b"a salt of the test", 4096
    salted = hashlib.pbkdf2_hmac("sha256", PASSWORDS["scramble"].encode(), salt, rounds)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    parts = {"salt": salt, "stored_key": stored, "server_key": server}
    encoded = ",".join(f"{name}={base64.b64encode(value).decode()}" for name, value in parts.items())
    return {"/config/users/scramble": _json({"version": 1, "config": {_SCRAM: f"{encoded},iterations={rounds}"}})}


def _acls() -> dict[str, str]:
    """As ``kafka-acls`` writes them. Who may DESCRIBE the cluster is only a super user."""
    found = {}
    for path, users in _DESCRIBE.items():
        rules = [
            {"principal": f"User:{user}", "permissionType": "Allow", "operation": "Describe", "host": "*"}
            for user in users
        ]
        found[path] = _json({"version": 1, "acls": rules})
    return found


def _lock(client: KazooClient, path: str, hidden: tuple[str, ...]) -> None:
    for name in client.get_children(path):
        below = f"{path.rstrip('/')}/{name}"
        if below != "/zookeeper":
            _lock(client, below, hidden)
    if path == "/":
        return
    rights = [ACL(31, Id("sasl", "kafka"))]
    if not any(path == root or path.startswith(f"{root}/") for root in hidden):
        rights += [make_digest_acl("watch", PASSWORDS["watch"], read=True), ACL(1, Id("sasl", "watch"))]
    client.set_acls(path, rights)


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))
