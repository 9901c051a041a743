"""What went wrong between us and a broker, in a sentence that says what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import kafka.errors as errors

from ingest.capture import tls

#: What kafka-python calls it, and how the system does where the broker left unread what we had sent.
_CLOSED: Final = ("disconnected", "ECONNRESET", "Connection reset", "EPIPE", "Broken pipe", "UNEXPECTED_EOF")


class BrokerUnreachable(Exception):
    """No answer from a broker, for the reason given; ``is_refusal`` where something answers at its address, and the
    reason says what else to look at."""

    def __init__(self, reason: str, *, is_refusal: bool = False) -> None:
        super().__init__(reason)
        self.is_refusal = is_refusal


class ConnectionClosed(BrokerUnreachable):
    """The broker closed a connection on which it had answered: it ended, or the connection was silent for too long."""


def is_closed(error: Exception) -> bool:
    """Whether the broker only closed the connection, which was there."""
    text = str(error)
    return "Handshake failed" not in text and any(sign in text for sign in _CLOSED)


def closed(address: str, settings: Mapping[str, Any]) -> BrokerUnreachable:
    """It closed the connection before it answered anything: as listeners do that speak another protocol."""
    protocol = settings.get("security_protocol", "PLAINTEXT")
    names = "security.protocol"
    if "SSL" in protocol.split("_") and "ssl_certfile" not in settings:
        names += f", and {tls.KAFKA.certificate} where it wants a certificate of its clients"
    return BrokerUnreachable(
        f"{address} closed the connection: is it a broker's listener for {protocol}? see {names}", is_refusal=True
    )


def refused(address: str, settings: Mapping[str, Any], *, is_reported: bool = True) -> BrokerUnreachable:
    """The broker does not take the credentials. Before 1.0 (KIP-152) it only closes: then nothing tells them from the
    mechanism."""
    mechanism = settings.get("sasl_mechanism")
    if is_reported:
        reason = f"{address} refuses the credentials (SASL {mechanism}): see sasl.username and sasl.password"
    else:
        reason = f"{address} refuses the credentials, or SASL {mechanism} altogether: see sasl.mechanism"
    return BrokerUnreachable(reason, is_refusal=True)


def in_words(error: Exception, address: str, settings: Mapping[str, Any]) -> BrokerUnreachable:
    """kafka-python's error, or OpenSSL's inside it."""
    text = str(error)
    if isinstance(error, errors.SaslAuthenticationFailedError):
        return refused(address, settings)
    if isinstance(error, errors.UnsupportedSaslMechanismError | errors.IllegalSaslStateError):
        return BrokerUnreachable(
            f"{address} does not take SASL {settings.get('sasl_mechanism')}: see sasl.mechanism and security.protocol",
            is_refusal=True,
        )
    if isinstance(error, errors.RequestTimedOutError | errors.KafkaTimeoutError) or "timed out" in text:
        return BrokerUnreachable(f"{address} does not answer in time")
    if is_closed(error):
        return closed(address, settings)
    if "Handshake failed" in text or "[SSL" in text:
        reason = tls.in_words(text, address, tls.KAFKA, has_certificate="ssl_certfile" in settings)
        return BrokerUnreachable(reason, is_refusal=True)
    if "DNS" in text:
        return BrokerUnreachable(f"the name in {address} is not known")
    if "ECONNREFUSED" in text:
        return BrokerUnreachable(f"nothing listens at {address}")
    if not isinstance(error, errors.KafkaError | OSError | RuntimeError):
        return BrokerUnreachable(f"{address} answers what cannot be read ({type(error).__name__}): is it a broker?")
    return BrokerUnreachable(f"{address} cannot be asked: {type(error).__name__} {text}".strip())
