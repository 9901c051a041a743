"""The clients' files, and what a server says at the first contact, without a cluster: real certificates on loopback."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest.capture import CaptureError
from ingest.capture.settings import kafka_settings, zookeeper_settings
from ingest.capture.tls import KAFKA, Files, in_words, usable_context
from ingest.capture.zookeeper.contact import silence, suspicion
from tests.cluster.certificates import STORE_PASSWORD, Authority, Certified


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("papers"), "ours")


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("papers"), "others")


@pytest.fixture(scope="module")
def client(authority: Authority) -> Certified:
    return authority.certify("client")


@pytest.fixture(scope="module")
def server(authority: Authority) -> Certified:
    return authority.certify("server", ("127.0.0.1",))


class TestFiles:
    def test_a_key_with_its_password_is_opened(self, authority: Authority, client: Certified) -> None:
        files = Files(str(authority.pem), str(client.certificate), str(client.locked_key), STORE_PASSWORD)
        assert usable_context(files, KAFKA).check_hostname

    @pytest.mark.parametrize(
        ("password", "sentence"),
        [(None, "or one that needs ssl.key.password: see"), ("wrong", "that ssl.key.password opens: see ssl.key.loc")],
    )
    def test_a_locked_key_is_never_asked_for_at_the_terminal(
        self, client: Certified, password: str | None, sentence: str, capfd: pytest.CaptureFixture[str]
    ) -> None:
        with pytest.raises(CaptureError, match=sentence):
            usable_context(Files(None, str(client.certificate), str(client.locked_key), password), KAFKA)
        printed = capfd.readouterr()
        assert printed.out + printed.err == ""

    def test_a_key_of_another_certificate_is_said(self, client: Certified, server: Certified) -> None:
        with pytest.raises(CaptureError, match=r"server\.key does not belong to the certificate in .*client\.pem"):
            usable_context(Files(None, str(client.certificate), str(server.key), None), KAFKA)

    def test_a_certificate_without_its_key_is_said(self, client: Certified) -> None:
        with pytest.raises(CaptureError, match=r"client.pem holds no key as PEM, .*: see ssl.key.location"):
            usable_context(Files(None, str(client.certificate), None, None), KAFKA)

    def test_a_key_without_a_certificate_is_said(self, client: Certified) -> None:
        with pytest.raises(CaptureError, match=r"ssl.key.location needs the certificate .*: see ssl.keystore.location"):
            usable_context(Files(None, None, str(client.key), None), KAFKA)

    def test_one_file_may_hold_both(self, client: Certified, tmp_path: Path) -> None:
        both = tmp_path / "both.pem"
        both.write_bytes(client.certificate.read_bytes() + client.key.read_bytes())
        usable_context(Files(None, str(both), None, None), KAFKA)
        given = {"zookeeper.ssl.keystore.location": str(both)}
        assert zookeeper_settings(given)["keyfile"] == str(both)  # without it kazoo shows no certificate

    def test_what_is_no_pem_is_said(self, tmp_path: Path) -> None:
        (tmp_path / "ca").write_text("no certificate")
        with pytest.raises(CaptureError, match=r"holds no certificate as PEM, which ssl\.truststore"):
            kafka_settings({"ssl.truststore.location": str(tmp_path / "ca")})


class Listener:
    """Takes connections, with TLS or without, and answers the first bytes of each; ``ruins`` closes instead."""

    def __init__(self, context: ssl.SSLContext | None, *, ruins: bool = False) -> None:
        self._context = context
        self._ruins = ruins
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.hosts = [("127.0.0.1", int(self._listening.getsockname()[1]))]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                plain, _ = self._listening.accept()
            except OSError:
                return
            with contextlib.suppress(OSError), plain:
                connection = self._context.wrap_socket(plain, server_side=True) if self._context else plain
                connection.recv(100)
                if not self._ruins:
                    connection.sendall(b"Zookeeper version: 3.8.4")


@pytest.fixture
def listener(request: pytest.FixtureRequest, authority: Authority, server: Certified) -> Iterator[Listener]:
    """``tls``, ``mutual``, ``plain``, or ``ruin``: of what kind it is."""
    context = None
    if request.param in ("tls", "mutual"):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(server.certificate, server.key)
        context.load_verify_locations(authority.pem)
        context.verify_mode = ssl.CERT_REQUIRED if request.param == "mutual" else ssl.CERT_NONE
    made = Listener(context, ruins=request.param == "ruin")
    yield made
    made.close()


def tls_settings(trusted: Authority, client: Certified | None = None) -> dict[str, object]:
    properties = {"zookeeper.ssl.truststore.location": str(trusted.pem)}
    if client is not None:
        properties["zookeeper.ssl.keystore.location"] = str(client.certificate)
        properties["zookeeper.ssl.key.location"] = str(client.key)
    return zookeeper_settings(properties)


class TestFirstContactWithZooKeeper:
    @pytest.mark.parametrize("listener", ["mutual"], indirect=True)
    def test_all_is_well(self, listener: Listener, authority: Authority, client: Certified) -> None:
        assert silence(listener.hosts, tls_settings(authority, client)) is None

    @pytest.mark.parametrize("listener", ["tls"], indirect=True)
    def test_an_authority_that_is_not_trusted(self, listener: Listener, stranger: Authority) -> None:
        said = silence(listener.hosts, tls_settings(stranger))
        assert said is not None
        assert said.endswith("see zookeeper.ssl.truststore.location")

    @pytest.mark.parametrize("listener", ["tls"], indirect=True)
    def test_another_name(self, listener: Listener, authority: Authority) -> None:
        said = silence([("localhost", listener.hosts[0][1])], tls_settings(authority))
        assert said is not None
        assert "is not valid for localhost: see zookeeper.ssl.endpoint.identification.algorithm" in said

    @pytest.mark.parametrize("listener", ["mutual"], indirect=True)
    def test_no_certificate_of_the_client(self, listener: Listener, authority: Authority) -> None:
        """Whether the server's word on it arrives, or the end of the connection first, is chance."""
        said = silence(listener.hosts, tls_settings(authority))
        assert said is not None
        assert said.endswith("see zookeeper.ssl.keystore.location")

    @pytest.mark.parametrize("listener", ["ruin"], indirect=True)
    def test_no_tls_there(self, listener: Listener, authority: Authority) -> None:
        said = silence(listener.hosts, tls_settings(authority))
        assert said is not None
        assert "broke off the TLS handshake: is it a listener for TLS? see zookeeper.ssl.client.enable" in said

    @pytest.mark.parametrize("listener", ["plain"], indirect=True)
    def test_a_server_that_answers_is_not_suspected(self, listener: Listener) -> None:
        assert silence(listener.hosts, {}) is None
        assert suspicion(listener.hosts, {}) is None

    @pytest.mark.parametrize("listener", ["ruin"], indirect=True)
    def test_a_server_that_only_closes_is_no_zookeeper(self, listener: Listener) -> None:
        said = suspicion(listener.hosts, {})
        assert said is not None
        assert "is it ZooKeeper's port, and the one without TLS?" in said

    @pytest.mark.parametrize("listener", ["tls"], indirect=True)
    def test_one_server_that_is_well_is_enough(self, listener: Listener, authority: Authority) -> None:
        assert silence([("127.0.0.1", 9), *listener.hosts], tls_settings(authority)) is None


@pytest.mark.parametrize("mechanism", ["PLAIN", "MAGIC"])
def test_a_mechanism_that_zookeeper_has_not_is_refused_before_it_is_tried(mechanism: str) -> None:
    given = {"zookeeper.sasl.username": "u", "zookeeper.sasl.mechanism": mechanism}
    with pytest.raises(CaptureError, match="must be DIGEST-MD5 or GSSAPI"):
        zookeeper_settings(given)


def test_an_alert_after_the_handshake_is_about_the_client_s_certificate() -> None:
    """As TLS 1.3 has it, and kafka-python gives it."""
    text = "KafkaConnectionError: [SSL: SSLV3_ALERT_BAD_CERTIFICATE] sslv3 alert bad certificate (_ssl.c:2580)"
    said = in_words(text, "b:1", KAFKA, has_certificate=False)
    assert said == (
        "b:1 refuses TLS without a certificate of the client (sslv3 alert bad certificate): see ssl.keystore.location"
    )
