"""The clients' settings, by the names that Kafka's own clients know them by.

They come from a properties file (``--client-properties``) and from the environment, which counts before the file:
``sasl.password`` as ``KAFKA_STATE_REPLAY_SASL_PASSWORD``. Values never enter a message, a log or a capture.
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Mapping
from typing import Any, Final

from ingest.capture import tls
from ingest.capture.params import CaptureError
from ingest.capture.tls import Files, usable_context

ENVIRONMENT_PREFIX: Final = "KAFKA_STATE_REPLAY_"

#: Kafka's names, as Java's and librdkafka's clients have them, and kafka-python's.
_KAFKA: Final[Mapping[str, str]] = {
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "sasl.kerberos.service.name": "sasl_kerberos_service_name",
    "ssl.truststore.location": "ssl_cafile",
    "ssl.ca.location": "ssl_cafile",
    "ssl.keystore.location": "ssl_certfile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
    "client.id": "client_id",
}
#: ZooKeeper's, as Kafka's brokers and ``zookeeper-shell`` have them, and kazoo's.
_ZOOKEEPER: Final[Mapping[str, str]] = {
    "zookeeper.ssl.truststore.location": "ca",
    "zookeeper.ssl.keystore.location": "certfile",
    "zookeeper.ssl.key.location": "keyfile",
    "zookeeper.ssl.keystore.password": "keyfile_password",
}
_OTHERS: Final = frozenset(
    {
        "sasl.jaas.config",
        "ssl.endpoint.identification.algorithm",
        "zookeeper.ssl.client.enable",
        "zookeeper.ssl.endpoint.identification.algorithm",
        "zookeeper.ssl.hostname.verification",
        "zookeeper.sasl.mechanism",
        "zookeeper.sasl.username",
        "zookeeper.sasl.password",
        "zookeeper.digest.username",
        "zookeeper.digest.password",
    }
)
KNOWN: Final = frozenset({*_KAFKA, *_ZOOKEEPER, *_OTHERS})
_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI")
_JAAS_OPTION: Final = re.compile(r'\b(username|password)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;]+))')


def client_properties(path: str | None, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The settings of the file and of the environment that are known; of others, see :func:`unknown_names`.

    Raises :class:`CaptureError` where the file cannot be read.
    """
    given = _file(path) if path is not None else {}
    given |= {
        name: environment[variable]
        for name in KNOWN
        if (variable := ENVIRONMENT_PREFIX + name.upper().replace(".", "_")) in environment
    }
    return given


def unknown_names(properties: Mapping[str, str]) -> list[str]:
    """Names of settings that the capture does not use."""
    return sorted(set(properties) - KNOWN)


def addresses(bootstrap_servers: str) -> list[tuple[str, int]]:
    """``HOST:PORT,HOST:PORT...`` in its parts; raises :class:`CaptureError` where one is no address."""
    found = []
    for server in bootstrap_servers.split(","):
        host, _, port = server.strip().rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise CaptureError(f"{server.strip()!r} is no HOST:PORT of a bootstrap server")
        found.append((host.strip("[]"), int(port)))
    return found


def kafka_settings(properties: Mapping[str, str]) -> dict[str, Any]:
    """Arguments of kafka-python's clients; raises :class:`CaptureError` where a value cannot be used."""
    settings = _given(properties, _KAFKA)
    protocol = settings["security_protocol"] = settings.get("security_protocol", "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        raise CaptureError(f"security.protocol must be one of {', '.join(_PROTOCOLS)}")
    for option, quoted, plain in _JAAS_OPTION.findall(properties.get("sasl.jaas.config", "")):
        settings.setdefault(f"sasl_plain_{option}", re.sub(r"\\(.)", r"\1", quoted) or plain)
    if "SASL" in protocol:
        mechanism = settings.setdefault("sasl_mechanism", "GSSAPI")
        if mechanism not in _MECHANISMS:
            raise CaptureError(f"sasl.mechanism must be one of {', '.join(_MECHANISMS)}")
        if mechanism != "GSSAPI" and not {"sasl_plain_username", "sasl_plain_password"} <= settings.keys():
            raise CaptureError(f"sasl.mechanism {mechanism} needs sasl.username and sasl.password, or sasl.jaas.config")
        if mechanism == "GSSAPI":
            _require("gssapi", "gssapi", "SASL GSSAPI")
    if properties.get("ssl.endpoint.identification.algorithm") == "":
        settings["ssl_check_hostname"] = False
    names = ("ssl_cafile", "ssl_certfile", "ssl_keyfile", "ssl_password")
    if "SSL" in protocol.split("_") or any(name in settings for name in names):
        usable_context(Files(*map(settings.get, names)), tls.KAFKA)
    return settings


def zookeeper_settings(properties: Mapping[str, str]) -> dict[str, Any]:
    """Arguments of kazoo's client; raises :class:`CaptureError` where a value cannot be used."""
    settings = _given(properties, _ZOOKEEPER)
    if settings or properties.get("zookeeper.ssl.client.enable", "").lower() == "true":
        settings["use_ssl"] = properties.get("zookeeper.ssl.client.enable", "true").lower() == "true"
        settings["check_hostname"] = (
            properties.get("zookeeper.ssl.endpoint.identification.algorithm", "HTTPS") != ""
            and properties.get("zookeeper.ssl.hostname.verification", "true").lower() != "false"
        )
    if "zookeeper.digest.username" in properties:
        user, password = properties["zookeeper.digest.username"], properties.get("zookeeper.digest.password", "")
        settings["auth_data"] = [("digest", f"{user}:{password}")]
    if "zookeeper.sasl.username" in properties:
        settings["sasl_options"] = _zookeeper_sasl(properties)
    if settings.get("use_ssl"):
        usable_context(zookeeper_files(settings), tls.ZOOKEEPER)
        if "certfile" in settings:
            settings.setdefault("keyfile", settings["certfile"])  # else kazoo would not show the certificate
    return settings


def _given(properties: Mapping[str, str], names: Mapping[str, str]) -> dict[str, Any]:
    return {ours: properties[name] for name, ours in names.items() if properties.get(name, "") != ""}


def zookeeper_files(settings: Mapping[str, Any]) -> Files:
    """The PEM files among the arguments of kazoo's client."""
    return Files(*(settings.get(name) for name in ("ca", "certfile", "keyfile", "keyfile_password")))


def _zookeeper_sasl(properties: Mapping[str, str]) -> dict[str, str]:
    _require("puresasl", "pure-sasl", "SASL to ZooKeeper")
    mechanism = properties.get("zookeeper.sasl.mechanism", "DIGEST-MD5")
    if mechanism == "GSSAPI":
        _require("kerberos", "kerberos", "SASL GSSAPI to ZooKeeper")
    elif mechanism != "DIGEST-MD5":
        raise CaptureError("zookeeper.sasl.mechanism must be DIGEST-MD5 or GSSAPI")
    return {
        "mechanism": mechanism,
        "username": properties["zookeeper.sasl.username"],
        "password": properties.get("zookeeper.sasl.password", ""),
    }


def _file(path: str) -> dict[str, str]:
    from ingest.readers.properties import read  # with what it imports, the most of a capture's start
    from ingest.readers.work import Kept, WorkItem

    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise CaptureError(f"cannot read the client properties {path}: {error.strerror}") from error
    item = WorkItem(path, None, path, "client_properties", "", None, "", "", len(data))
    return {
        row.values["config_key"]: row.values["config_value"]
        for row in read(item, [data], show=lambda key, value: value)
        if isinstance(row, Kept)
    }


def _require(module: str, package: str, what: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise CaptureError(f"{what} needs the package {package}: install it beside this program")
