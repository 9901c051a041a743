"""One connection to one broker, through kafka-python: requests one by one, each with its deadline."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any, Final, TypeVar

import kafka.errors as errors
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

from ingest.capture.brokers.failures import BrokerUnreachable, ConnectionClosed, in_words, is_closed, refused

#: Brokers before 0.10 know no ApiVersions: they close the connection that asks for them.
BEFORE_API_VERSIONS: Final = (0, 8, 2)
#: An answer about a hundred thousand partitions is some tens of megabytes.
_LONGEST_ANSWER: Final = 1 << 30

_T = TypeVar("_T")


class _Manager(KafkaConnectionManager):  # type: ignore[misc]  # kafka-python is not typed
    """Reads what a broker sent before it closed the connection: kafka-python drops an answer that came with the end,
    as that of a broker that refuses credentials."""

    async def _build_transport(self, node: Any, timeout_at: float | None = None) -> Any:
        transport = await super()._build_transport(node, timeout_at=timeout_at)
        receive = transport._sock_recv

        def received() -> tuple[bytes, Exception | None]:
            data, error = receive()
            return (data, None) if data else (data, error)  # the end is met again by the next reading

        transport._sock_recv = received
        return transport


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
        self._has_answered = False
        try:
            self._connect(api_version)
        except errors.KafkaConnectionError as error:
            has_sasl = "SASL" in settings.get("security_protocol", "")
            if has_sasl and self._connection.broker_version_data is not None and is_closed(error):
                self.close()
                raise refused(self._address, settings, is_reported=False) from error
            if api_version is not None or has_sasl or not is_closed(error):
                raise self._unreachable(error) from error
            try:
                self._connect(BEFORE_API_VERSIONS)
            except Exception as again:
                raise self._unreachable(again) from again
        except Exception as error:  # whatever a client of another's makes of what is no broker
            raise self._unreachable(error) from error

    def version(self, request: type[Any], newest: int) -> int | None:
        """The newest version of a request, up to ``newest``, that the broker knows; None where it knows none."""
        try:
            return int(self._connection.broker_version_data.api_version(request, max_version=newest))
        except errors.IncompatibleBrokerVersion:
            return None

    def required_version(self, request: type[Any], newest: int) -> int:
        """As :meth:`version` of a request that every broker must know."""
        version = self.version(request, newest)
        if version is None:
            reason = f"{self._address} knows no version of {request.name} that this program does"
            raise BrokerUnreachable(reason, is_refusal=True)
        return version

    def ask(self, request: Any) -> Any:
        """The answer to one request."""
        try:
            answer = self._net.run(self._send, request)
            self._has_answered = True
            return answer
        except (errors.KafkaError, OSError, RuntimeError) as error:
            if self._has_answered and is_closed(error):
                self.close()
                raise ConnectionClosed(f"{self._address} closed the connection") from error
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
        self._manager = _Manager(
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
        """Wait for the connection; kafka-python's own deadline leaves out the handshake of TLS."""
        late = errors.RequestTimedOutError(f"timed out after {self._timeout_ms:.0f} ms")
        timer = self._net.call_at(time.monotonic() + self._timeout_ms / 1000, lambda: self._connection.close(late))
        try:
            await self._connection
        finally:
            self._net.cancel(timer)

    async def _send(self, request: Any) -> Any:
        return await self._connection.send_request(request, request_timeout_ms=self._timeout_ms)

    def _unreachable(self, error: Exception) -> BrokerUnreachable:
        self.close()
        return in_words(error, self._address, self._settings)


def quieten() -> None:
    """Keep the clients' own log lines off the terminal, and what they would print of credentials at DEBUG away."""
    for name in ("kafka", "kazoo"):
        logger = logging.getLogger(name)
        if logger.getEffectiveLevel() < logging.WARNING:
            logger.setLevel(logging.WARNING)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
