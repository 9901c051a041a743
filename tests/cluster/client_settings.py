"""Settings of clients, by Kafka's names, that open the locks of a secured cluster."""

from __future__ import annotations

from tests.cluster.certificates import STORE_PASSWORD, Certified
from tests.cluster.secured import PASSWORDS, Secured


def tls(cluster: Secured, **more: str) -> dict[str, str]:
    return {
        "security.protocol": "SSL",
        "ssl.truststore.location": str(cluster.papers.authority.pem),
        **{name.replace("_", "."): value for name, value in more.items()},
    }


def shown(certified: Certified) -> dict[str, str]:
    return {"ssl.keystore.location": str(certified.certificate), "ssl.key.location": str(certified.key)}


def sasl(
    cluster: Secured, user: str, mechanism: str = "PLAIN", protocol: str = "SASL_SSL", password: str | None = None
) -> dict[str, str]:
    return tls(cluster) | {
        "security.protocol": protocol,
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": PASSWORDS[user] if password is None else password,
    }


def jaas(cluster: Secured) -> dict[str, str]:
    login = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    return tls(cluster) | {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": f'{login} username="scramble" password="{PASSWORDS["scramble"]}";',
    }


def locked(cluster: Secured) -> dict[str, str]:
    client = cluster.papers.client
    return (
        tls(cluster) | shown(client) | {"ssl.key.location": str(client.locked_key), "ssl.key.password": STORE_PASSWORD}
    )


def digest(password: str = PASSWORDS["watch"]) -> dict[str, str]:
    return {"zookeeper.digest.username": "watch", "zookeeper.digest.password": password}


def zookeeper_sasl(password: str = PASSWORDS["watch"], user: str = "watch") -> dict[str, str]:
    return {"zookeeper.sasl.username": user, "zookeeper.sasl.password": password}


def zookeeper_tls(cluster: Secured, client: Certified | None = None) -> dict[str, str]:
    found = {
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.ssl.truststore.location": str(cluster.papers.authority.pem),
    }
    if client is not None:
        found["zookeeper.ssl.keystore.location"] = str(client.certificate)
        found["zookeeper.ssl.key.location"] = str(client.key)
    return found
