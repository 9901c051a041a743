"""Spark's Thrift server put together so that each connection comes to :class:`~jobs.serving.service.Service`.

Spark's own start takes the client's settings and statements as they come, makes a metastore for itself, and ends the
process where a port is taken. Its parts do the same work here: its service for sessions, statements and results, and
Thrift's pool of threads, with our own between them.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from jobs.command.job import UsageError
from jobs.serving.passwords import Login
from jobs.serving.service import Service

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HIVE: Final = {
    "hive.server2.authentication": "NONE",
    "hive.server2.enable.doAs": "false",
    "hive.server2.logging.operation.enabled": "false",
    "hive.server2.global.init.file.location": "",
    # the lake is named in memory: whatever of Hive looks for a metastore finds none, and makes none
    "hive.metastore.uris": "none",
}
#: Clients at a time; one more is turned away.
MOST_CLIENTS: Final = 64
#: The longest message of a client.
_MOST_BYTES: Final = 16 << 20
_SECONDS_TO_STOP: Final = 1


@contextlib.contextmanager
def listening(
    spark: SparkSession, host: str, port: int, passwords: Mapping[str, bytes] | None
) -> Iterator[tuple[int, threading.Thread]]:
    """A server while this lasts: its port, and the thread that ends where it fails. ``spark`` holds the lake's names.

    :class:`~jobs.command.job.UsageError` where the address cannot be taken.
    """
    from py4j.protocol import Py4JJavaError

    _let_java_call(spark.sparkContext._gateway)
    java: Any = spark._jvm
    thrift = java.org.apache.thrift
    try:
        socket = thrift.transport.TServerSocket(java.java.net.InetSocketAddress(host, port))
    except Py4JJavaError as error:
        raise UsageError(not_free(host, port)) from error
    sessions, inner = _inner(spark, java)
    service, login = Service(spark, inner, sessions.getSessionManager()), Login(passwords)
    arguments = getattr(thrift.server, "TThreadPoolServer$Args")(socket)
    arguments.processor(java.org.apache.hive.service.auth.TSetIpAddressProcessor(service))
    arguments.transportFactory(_transport(java, login))
    arguments.protocolFactory(getattr(thrift.protocol, "TBinaryProtocol$Factory")(True, True, _MOST_BYTES, _MOST_BYTES))
    arguments.maxWorkerThreads(MOST_CLIENTS).stopTimeoutVal(_SECONDS_TO_STOP)
    server = thrift.server.TThreadPoolServer(arguments)
    server.setServerEventHandler(_closing_lost_sessions(inner))
    thread = threading.Thread(target=_serve, args=(server,), daemon=True)
    thread.start()
    try:
        yield int(socket.getServerSocket().getLocalPort()), thread
    finally:
        server.stop()
        spark.sparkContext.cancelAllJobs()
        thread.join(_SECONDS_TO_STOP + 1)
        sessions.stop()


def not_free(host: str, port: int) -> str:
    """What to do where the address cannot be listened on."""
    return f"cannot listen on port {port} of {host}: it is in use, or not this machine's; give --port, 0 for a free one"


def _let_java_call(gateway: Any) -> None:
    """Java calls Python over a port of loopback, on which py4j asks for no token: here it does, as where Python calls
    Java, or whoever is on this machine could set our objects' fields."""
    from py4j.java_gateway import JavaObject
    from pyspark.java_gateway import ensure_callback_server_started

    token = gateway.gateway_parameters.auth_token
    gateway.callback_server_parameters.auth_token = token
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    client = JavaObject("GATEWAY_SERVER", gateway._gateway_client).getCallbackClient()
    field = client.getClass().getSuperclass().getDeclaredField("authToken")
    field.setAccessible(True)
    field.set(client, token)


def _serve(server: Any) -> None:
    with contextlib.suppress(Exception):  # Java has gone
        server.serve()


def _inner(spark: SparkSession, java: Any) -> tuple[Any, Any]:
    """Spark's own service, and that as Thrift calls it; neither listens."""
    own = java.org.apache.spark.sql.hive.thriftserver
    conf = java.org.apache.hadoop.hive.conf.HiveConf()
    for name, value in _HIVE.items():
        conf.set(name, value)
    session = spark._jsparkSession
    events = own.ui.HiveThriftServer2EventManager(session.sparkContext())
    getattr(own.HiveThriftServer2, "eventManager_$eq")(events)
    sessions = own.SparkSQLCLIService(own.HiveThriftServer2(session), session)
    sessions.init(conf)
    sessions.start()
    inner = java.org.apache.hive.service.cli.thrift.ThriftBinaryCLIService(sessions)
    inner.init(conf)
    return sessions, inner


def _transport(java: Any, login: Login) -> Any:
    """How a connection begins: SASL PLAIN, as clients of HiveServer2 do if told nothing else."""
    java.org.apache.hive.service.auth.PlainSaslHelper.getPlainTransportFactory("NONE")  # makes PLAIN known to Java
    factory = getattr(java.org.apache.thrift.transport, "TSaslServerTransport$Factory")()
    factory.addServerDefinition("PLAIN", "NONE", None, java.java.util.HashMap(), login)
    return factory


def _closing_lost_sessions(inner: Any) -> Any:
    """Spark's own handler that closes the session of a client that went without a word."""
    field = inner.getClass().getSuperclass().getDeclaredField("serverEventHandler")
    field.setAccessible(True)
    return field.get(inner)
