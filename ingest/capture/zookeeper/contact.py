"""What a server of ZooKeeper says at the first contact, where its client does not report why it gets no session."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ingest.capture import tls
from ingest.capture.settings import zookeeper_files

_PATIENCE_S: Final = 3.0
#: A command of four letters: every server answers, if only that the command is not allowed.
_COMMAND: Final = b"srvr"

Hosts = Sequence[tuple[str, int]]


def silence(hosts: Hosts, settings: Mapping[str, Any]) -> str | None:
    """Why no server of these can be reached at all; None where one listens, or may be slow. With TLS, whether its
    handshake fails: kazoo would try for ever and say nothing."""
    reason = None
    for host, port in hosts:
        try:
            with socket.create_connection((host, port), timeout=_PATIENCE_S) as plain:
                problem = _handshake(plain, host, f"{host}:{port}", settings) if settings.get("use_ssl") else None
        except socket.gaierror:
            problem = f"the name of the ZooKeeper server {host} is not known: see --zookeeper"
        except ConnectionRefusedError:
            problem = f"nothing listens at {host}:{port}: see --zookeeper"
        except OSError:
            return None
        if problem is None:
            return None
        reason = problem
    return reason


def suspicion(hosts: Hosts, settings: Mapping[str, Any]) -> str | None:
    """What may be wrong with servers that are reached and give no session: they do not speak as ZooKeeper does."""
    if settings.get("use_ssl"):
        return None
    for host, port in hosts:
        with contextlib.suppress(OSError), socket.create_connection((host, port), timeout=_PATIENCE_S) as plain:
            plain.sendall(_COMMAND + b"\n\n")  # a listener for TLS says nothing to less than five bytes
            with contextlib.suppress(ConnectionResetError):
                if plain.recv(1):
                    return None
            return (
                f"{host}:{port} breaks off the connection: is it ZooKeeper's port, and the one without TLS?"
                f" see {tls.ZOOKEEPER.switch}"
            )
    return None


def _handshake(plain: socket.socket, host: str, address: str, settings: Mapping[str, Any]) -> str | None:
    """With TLS 1.3 the server judges our certificate after the handshake: what it then reads says so."""
    files = zookeeper_files(settings)
    context = tls.usable_context(files, tls.ZOOKEEPER, checks_host=settings.get("check_hostname", True))
    if files.trusted is not None:
        context.load_default_certs()  # as kazoo does
    has_certificate = files.certificate is not None
    try:
        connection = context.wrap_socket(plain, server_hostname=host)
    except TimeoutError:
        return None
    except (ssl.SSLError, ConnectionError) as error:
        return tls.in_words(str(error), address, tls.ZOOKEEPER, has_certificate=has_certificate)
    try:
        with connection:
            connection.sendall(_COMMAND)
            connection.recv(1)
    except (ssl.SSLEOFError, ConnectionError):  # its word on our certificate may be lost with the connection
        return f"{address} broke off the connection after the TLS handshake: see {tls.ZOOKEEPER.certificate}"
    except ssl.SSLError as error:
        return tls.in_words(str(error), address, tls.ZOOKEEPER, has_certificate=has_certificate)
    except TimeoutError:
        return None
    return None
