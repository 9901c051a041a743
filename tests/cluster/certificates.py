"""Certificates for the secured clusters: one authority, servers, a client; made anew, valid for a day."""

from __future__ import annotations

import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID

#: Of every key store made here, and of the client's key.
STORE_PASSWORD: Final = "store-Secret-77"
_LIFE: Final = dt.timedelta(days=1)


@dataclass(frozen=True)
class Certified:
    """A certificate and its key: as PKCS12 for Java, as PEM for us. The key of ``key`` has no password, that of
    ``locked_key`` has :data:`STORE_PASSWORD`."""

    store: Path
    certificate: Path
    key: Path
    locked_key: Path


class Authority:
    """A certificate authority of its own; ``pem`` and ``store`` are what trusts it."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder / name
        self._folder.mkdir(parents=True)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        self._certificate = (
            _builder(self._name, self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_usage(signs=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self.pem = self._folder / "authority.pem"
        self.pem.write_bytes(self._certificate.public_bytes(Encoding.PEM))
        self.store = self._folder / "authority.p12"
        trusted = pkcs12.PKCS12Certificate(self._certificate, b"authority")
        self.store.write_bytes(
            pkcs12.serialize_java_truststore([trusted], BestAvailableEncryption(STORE_PASSWORD.encode()))
        )

    def certify(self, name: str, hosts: tuple[str, ...] = ()) -> Certified:
        """A certificate for ``CN=name``; of a server that is called ``hosts``, names or addresses."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _builder(_named(name), self._name, key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName([_general(host) for host in hosts]), False)
        certificate = builder.sign(self._key, hashes.SHA256())
        made = Certified(*(self._folder / f"{name}{kind}" for kind in (".p12", ".pem", ".key", ".locked.key")))
        secret = BestAvailableEncryption(STORE_PASSWORD.encode())
        made.store.write_bytes(
            pkcs12.serialize_key_and_certificates(name.encode(), key, certificate, [self._certificate], secret)
        )
        made.certificate.write_bytes(certificate.public_bytes(Encoding.PEM))
        made.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        made.locked_key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, secret))
        return made


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + _LIFE)
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
