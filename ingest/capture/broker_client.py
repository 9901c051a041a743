"""One connection to one broker, through kafka-python: requests one by one, each with its deadline."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final, TypeVar

import kafka.errors as errors
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

from ingest.capture.requests import newest

#: Brokers before 0.10 know no ApiVersions: they close the connection that asks for them.
BEFORE_API_VERSIONS: Final = (0, 8, 2)
#: An answer about a hundred thousand partitions is some tens of megabytes.
_LONGEST_ANSWER: Final = 1 << 30

_T = TypeVar("_T")


class BrokerUnreachable(Exception):
    """No answer from a broker, for the reason given; ``is_refusal`` where asking again will not help."""

    def __init__(self, reason: str, *, is_refusal: bool = False) -> None:
        super().__init__(reason)
        self.is_refusal = is_refusal


class BrokerClient:
    """Connects at once. Raises :class:`BrokerUnreachable`; a client that raised is closed and of no more use.

    ``settings`` are arguments of kafka-python's clients. A broker that cannot be asked for its versions is taken for
    one of 0.8.2, unless ``api_version`` says which it is.
    """

    def __init__(
        self,
        host: str,
        port: int,
        settings: Mapping[str, Any],
        *,
        timeout_s: float,
        api_version: tuple[int, ...] | None = None,
    ) -> None:
        quieten()
        self._address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._settings = settings
        self._timeout_ms = timeout_s * 1000
        self._net: Any = None
        self._manager: Any = None
        self._connection: Any
        try:
            self._connect(api_version)
        except errors.KafkaConnectionError as error:
            has_sasl = "SASL" in settings.get("security_protocol", "")
            if has_sasl and self._connection.broker_version_data is not None and "disconnected" in str(error):
                # It told its versions, then closed: the answer that says why is lost with the connection.
                self.close()
                raise _refused(self._address, settings) from error
            if api_version is not None or has_sasl or "disconnected" not in str(error):
                raise self._unreachable(error) from error
            try:
                self._connect(BEFORE_API_VERSIONS)
            except (errors.KafkaError, OSError) as again:
                raise self._unreachable(again) from again
        except (errors.KafkaError, OSError) as error:
            raise self._unreachable(error) from error

    def version(self, request: type[Any], newest_known: int) -> int | None:
        """The version of a request to ask with; None where the broker does not know it."""
        known = self._connection.broker_version_data.api_versions.get(request.API_KEY)
        return newest(known, newest_known)

    def ask(self, request: Any) -> Any:
        """The answer to one request."""
        try:
            return self._net.run(self._send, request)
        except (errors.KafkaError, OSError, RuntimeError) as error:
            if "disconnected" in str(error):
                self.close()
                raise BrokerUnreachable(f"{self._address} closed the connection") from error
            raise self._unreachable(error) from error

    def close(self) -> None:
        manager, net, self._manager, self._net = self._manager, self._net, None, None
        if manager is not None:
            manager.close()
        if net is not None:
            net.close()

    def _connect(self, api_version: tuple[int, ...] | None) -> None:
        self.close()
        self._net = NetworkSelector(slow_task_threshold_secs=0)  # it is a thread of its own that a large answer keeps
        self._manager = KafkaConnectionManager(
            self._net,
            **{
                **self._settings,
                "bootstrap_servers": [self._address],
                "api_version": api_version,
                "request_timeout_ms": self._timeout_ms,
                "receive_message_max_bytes": _LONGEST_ANSWER,
            },
        )
        (node,) = self._manager.cluster.bootstrap_brokers()
        self._connection = self._manager.get_connection(
            node.node_id, timeout_ms=self._timeout_ms, refresh_metadata_on_err=False
        )
        self._net.run(self._connected)

    async def _connected(self) -> None:
        await self._connection

    async def _send(self, request: Any) -> Any:
        return await self._connection.send_request(request, request_timeout_ms=self._timeout_ms)

    def _unreachable(self, error: Exception) -> BrokerUnreachable:
        self.close()
        return _in_words(error, self._address, self._settings)


def quieten() -> None:
    """Keep the clients' own log lines off the terminal, and what they would print of credentials at DEBUG away."""
    for name in ("kafka", "kazoo"):
        logger = logging.getLogger(name)
        if logger.getEffectiveLevel() < logging.WARNING:
            logger.setLevel(logging.WARNING)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())


def _refused(address: str, settings: Mapping[str, Any]) -> BrokerUnreachable:
    return BrokerUnreachable(
        f"{address} refuses the credentials, or SASL {settings.get('sasl_mechanism')} altogether", is_refusal=True
    )


def _in_words(error: Exception, address: str, settings: Mapping[str, Any]) -> BrokerUnreachable:
    text = str(error)
    protocol = settings.get("security_protocol", "PLAINTEXT")
    if isinstance(error, errors.SaslAuthenticationFailedError):
        return _refused(address, settings)
    if isinstance(error, errors.UnsupportedSaslMechanismError | errors.IllegalSaslStateError):
        return BrokerUnreachable(
            f"{address} does not take SASL {settings.get('sasl_mechanism')}: see sasl.mechanism and security.protocol",
            is_refusal=True,
        )
    if "Handshake failed" in text:
        return BrokerUnreachable(f"no TLS with {address}: {text.rpartition('Handshake failed: ')[2]}", is_refusal=True)
    if isinstance(error, errors.RequestTimedOutError | errors.KafkaTimeoutError) or "timed out" in text:
        return BrokerUnreachable(f"{address} does not answer in time")
    if "disconnected" in text:
        return BrokerUnreachable(f"{address} closed the connection; is it a broker's listener for {protocol}?")
    if "DNS" in text:
        return BrokerUnreachable(f"the name in {address} is not known")
    if "ECONNREFUSED" in text:
        return BrokerUnreachable(f"nothing listens at {address}")
    return BrokerUnreachable(f"{address} cannot be asked: {type(error).__name__} {text}".strip())
