"""TLS of the clients: whether the PEM files that were given can be used, and what a failed handshake says."""

from __future__ import annotations

import os
import re
import ssl
from dataclasses import dataclass
from typing import Final

from ingest.capture.params import CaptureError

_JAVA_STORES: Final = (".jks", ".p12", ".pfx", ".keystore", ".truststore")
_VERIFY: Final = re.compile(r"certificate verify failed: (.*?)\.?(?: \(_ssl|$)")
_REASON: Final = re.compile(r"\] (.*?)\.?(?: \(_ssl|$)")
_OTHER_HOST: Final = re.compile(r"not valid for '?([^']+)'?")


@dataclass(frozen=True)
class Names:
    """How the settings of one of the clients are called."""

    trusted: str
    certificate: str
    key: str
    password: str
    host: str
    switch: str


KAFKA: Final = Names(
    "ssl.truststore.location",
    "ssl.keystore.location",
    "ssl.key.location",
    "ssl.key.password",
    "ssl.endpoint.identification.algorithm",
    "security.protocol",
)
ZOOKEEPER: Final = Names(
    "zookeeper.ssl.truststore.location",
    "zookeeper.ssl.keystore.location",
    "zookeeper.ssl.key.location",
    "zookeeper.ssl.keystore.password",
    "zookeeper.ssl.endpoint.identification.algorithm",
    "zookeeper.ssl.client.enable",
)


@dataclass(frozen=True)
class Files:
    """Paths of the PEM files, and the key's password; None where none is given."""

    trusted: str | None
    certificate: str | None
    key: str | None
    password: str | None


def usable_context(files: Files, names: Names, *, checks_host: bool = True) -> ssl.SSLContext:
    """A client's context; raises :class:`CaptureError` where a file is not what it must be.

    The key's password is never asked for at the terminal, as OpenSSL would.
    """
    for path in (files.trusted, files.certificate, files.key):
        if path is not None:
            _require_file(path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = checks_host
    for path, name in ((files.trusted, names.trusted), (files.certificate, names.certificate)):
        if path is not None:
            _require_certificate(path, name)
    if files.trusted is None:
        context.load_default_certs()
    else:
        context.load_verify_locations(files.trusted)
    if files.certificate is not None:
        _load_key(context, files, names)
    elif files.key is not None:
        raise CaptureError(f"{names.key} needs the certificate that belongs to the key: see {names.certificate}")
    return context


def in_words(text: str, address: str, names: Names, *, has_certificate: bool) -> str:
    """Why there is no TLS, from the text of OpenSSL's error."""
    verify = _VERIFY.search(text)
    if verify is not None:
        host = _OTHER_HOST.search(verify[1])
        if host is not None:
            return f"the certificate of {address} is not valid for {host[1]}: see {names.host}"
        return f"the certificate of {address} is not trusted ({verify[1]}): see {names.trusted}"
    if "WRONG_VERSION_NUMBER" in text or "UNEXPECTED_EOF" in text or "[SSL" not in text:
        return f"{address} broke off the TLS handshake: is it a listener for TLS? see {names.switch}"
    found = _REASON.search(text)
    reason = found[1] if found else text
    if has_certificate:
        return f"{address} refuses the client's certificate, or its TLS ({reason}): see {names.certificate}"
    return f"{address} refuses TLS without a certificate of the client ({reason}): see {names.certificate}"


def _require_file(path: str) -> None:
    if path.lower().endswith(_JAVA_STORES):
        raise CaptureError(f"{path} is a Java key store: export it as PEM (keytool -exportcert -rfc) and name that")
    if not os.path.isfile(path):
        raise CaptureError(f"there is no file {path}, which the client properties name")
    if not os.access(path, os.R_OK):
        raise CaptureError(f"no permission to read {path}, which the client properties name")


def _require_certificate(path: str, name: str) -> None:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except OSError as error:
        raise CaptureError(f"{path} holds no certificate as PEM, which {name} must") from error


def _load_key(context: ssl.SSLContext, files: Files, names: Names) -> None:
    assert files.certificate is not None
    holder = files.key or files.certificate
    try:
        context.load_cert_chain(files.certificate, files.key, lambda: files.password or "")
    except OSError as error:  # ssl.SSLError is one; with an empty password OpenSSL gives EINVAL
        if "MISMATCH" in str(error):
            problem = f"the key in {holder} does not belong to the certificate in {files.certificate}"
        elif files.password:
            problem = f"{holder} holds no key as PEM that {names.password} opens"
        else:
            problem = f"{holder} holds no key as PEM, or one that needs {names.password}"
        raise CaptureError(f"{problem}: see {names.key}") from error
