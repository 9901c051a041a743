"""``serve`` without Spark: who may connect, and what of a client's call reaches Spark's own service."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any

import pytest

from jobs import cli
from jobs.serving import passwords, service
from jobs.serving.passwords import Login
from jobs.serving.service import Service


class Made:
    """Any object of Java's Thrift: keeps what it was made with and what was set."""

    def __init__(self, *given: Any) -> None:
        self.given, self.set = given, {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("set", "unset")):
            return lambda *value: self.set.__setitem__(name.removeprefix("set"), value[0] if value else None)
        if name.startswith("get"):
            return lambda: self.set.get(name.removeprefix("get"))
        if name.startswith("isSet"):
            return lambda: name.removeprefix("isSet") in self.set
        raise AttributeError(name)


class Thrift:
    TStatusCode = SimpleNamespace(ERROR_STATUS="error", SUCCESS_STATUS="success")
    TProtocolVersion = SimpleNamespace(HIVE_CLI_SERVICE_PROTOCOL_V8=8)

    def __getattr__(self, name: str) -> Any:
        return Made


class Inner:
    """Spark's own service: what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []

    def __getattr__(self, name: str) -> Any:
        def call(request: Any) -> Made:
            self.asked.append((name, request))
            answer = Made()
            answer.setStatus("done")
            return answer

        return call


@pytest.fixture
def inner() -> Inner:
    return Inner()


@pytest.fixture
def served(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> Service:
    rpc = SimpleNamespace(thrift=Thrift())
    java = SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(hive=SimpleNamespace(service=rpc))))
    rpc.rpc = SimpleNamespace(thrift=rpc.thrift)
    monkeypatch.setattr(service, "refusal", lambda spark, text: None if text == "SELECT 1" else f"not {text}")
    return Service(SimpleNamespace(_jvm=java), inner, None)  # type: ignore[arg-type]


def request(**given: Any) -> Made:
    made = Made()
    made.set.update(given)
    return made


def test_settings_of_a_client_are_dropped(served, inner):
    settings = {
        "set:system:user.home": "/nowhere",
        "set:hiveconf:spark.sql.runSQLOnFiles": "true",
        "set:metaconf:a": "b",
        "hive.server2.proxy.user": "root",
        "use:database": "GOLD",
    }
    served.OpenSession(request(Configuration=settings))
    served.OpenSession(request())
    assert [asked.set["Configuration"] for _, asked in inner.asked] == [
        {"use:database": "gold"},
        {"use:database": "default"},
    ]


def test_a_schema_that_there_is_not_opens_no_session(served, inner):
    status, _ = served.OpenSession(request(Configuration={"use:database": "x; DROP TABLE y"})).given
    assert "there is no schema x; drop table y: there are bronze, default" in status.set["ErrorMessage"]
    assert inner.asked == []


@pytest.mark.parametrize("statement", ["SELECT 1", "USE gold", "use database `silver` ;", "USE SCHEMA questions"])
def test_what_is_allowed_is_run_as_judged_and_without_settings(served, inner, statement):
    served.ExecuteStatement(request(Statement=statement, ConfOverlay={"a": "b"}))
    ((name, asked),) = inner.asked
    assert name == "ExecuteStatement"
    assert asked.set["Statement"] == statement
    assert "unsetConfOverlay" in asked.set


@pytest.mark.parametrize("statement", ["SELECT 2", "USE nowhere", "USE gold; DROP TABLE x", "USE a.b", "", "USE `gold"])
def test_what_is_refused_does_not_reach_spark(served, inner, statement):
    (status,) = served.ExecuteStatement(request(Statement=statement)).given
    assert status.given == ("error",)
    assert status.set["ErrorMessage"]
    assert inner.asked == []


@pytest.mark.parametrize("call", ["UploadData", "DownloadData", "GetDelegationToken", "RenewDelegationToken", "x"])
def test_calls_that_are_not_named_do_not_reach_spark(served, call):
    with pytest.raises(AttributeError):
        getattr(served, call)


def test_keys_of_a_table_are_those_of_its_specification(served, inner):
    served.GetPrimaryKeys(request(SchemaName="gold", TableName="incidents"))
    served.GetPrimaryKeys(request(SchemaName="questions", TableName="x' UNION SELECT 1"))
    keys, none = (asked.given[1] for _, asked in inner.asked)
    assert "('', 'gold', 'incidents', 'cluster_id', 1, 'incidents_key')" in keys
    assert "UNION" not in none
    assert none.endswith("WHERE false")


def test_an_error_is_one_line(served, inner, monkeypatch):
    told = (
        "org.apache.hive.service.cli.HiveSQLException: Error running query: [A.B]"
        " org.apache.spark.sql.AnalysisException: [A.B] There is\nno `x`. SQLSTATE: 42703; line 1\n\tat org.apache"
    )
    status = request(ErrorMessage=told)
    monkeypatch.setattr(Inner, "GetOperationStatus", lambda self, asked: status, raising=False)
    assert served.GetOperationStatus(None).set["ErrorMessage"] == "[A.B] There is no `x`. SQLSTATE: 42703"


class Asked:
    """A callback of Java's, by the name of its class."""

    def __init__(self, kind: str, **told: Any) -> None:
        self.authorized: bool | None = None
        self._kind = kind
        for name, value in told.items():
            setattr(self, name, lambda value=value: value)

    def getClass(self) -> Any:
        return SimpleNamespace(getSimpleName=lambda: self._kind)

    def setAuthorized(self, allowed: bool) -> None:
        self.authorized = allowed


def allows(login: Login, user: str, password: str) -> bool | None:
    """Whether a client that sends these is let in; Hive keeps the sign of each byte that it makes a character of."""
    as_hive_has_it = [
        "".join(chr(byte if byte < 0x80 else 0xFF00 | byte) for byte in text.encode()) for text in (user, password)
    ]
    answer = Asked("AuthorizeCallback")
    login.handle(
        [
            Asked("NameCallback", getName=as_hive_has_it[0]),
            Asked("PasswordCallback", getPassword=list(as_hive_has_it[1])),
            answer,
        ]
    )
    return answer.authorized


def test_only_who_knows_a_password_is_let_in(tmp_path, monkeypatch):
    monkeypatch.setattr(passwords.time, "sleep", lambda seconds: None)
    file = tmp_path / "users"
    file.write_text("# of the team\nalice:open: sesame\n\nbob:größe\n", encoding="utf-8")
    file.chmod(0o600)
    login = Login(passwords.read_passwords(str(file)))
    assert allows(login, "alice", "open: sesame")
    assert allows(login, "bob", "größe")
    for user, password in (("alice", "größe"), ("alice", ""), ("carol", "x"), ("", ""), ("alice", "open: sesamex")):
        assert allows(login, user, password) is False
    assert allows(Login(None), "anybody", "anything")


@pytest.mark.parametrize(
    ("text", "mode", "words"),
    [
        ("alice:x\n", 0o644, "may be read by others: chmod 600 it"),
        ("alice\n", 0o600, "line 1: give user:password"),
        ("# nobody\n", 0o600, "holds no line user:password"),
    ],
)
def test_a_file_of_passwords_that_will_not_do(tmp_path, capsys, text, mode, words):
    file = tmp_path / "users"
    file.write_text(text)
    file.chmod(mode)
    assert cli.main(["serve", "--lake", str(tmp_path), "--password-file", str(file)]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--host", "0.0.0.0"], "is reached from other machines: give --password-file FILE"),
        (["--host", "::"], "is reached from other machines"),
        (["--port", "65536"], "give 0 to 65535"),
        (["--password-file", "nowhere"], "cannot read --password-file nowhere"),
    ],
)
def test_an_address_that_others_reach_needs_passwords(tmp_path, capsys, options, words):
    assert cli.main(["serve", "--lake", str(tmp_path), *options]) == 2
    assert words in capsys.readouterr().err


def test_a_port_in_use_is_said_before_spark_starts(tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert cli.main(["serve", "--lake", str(tmp_path), "--port", str(port)]) == 2
    assert f"cannot listen on port {port} of 127.0.0.1" in capsys.readouterr().err


def test_loopback_needs_none(tmp_path):
    _, _, params = cli.parse(["serve", "--lake", str(tmp_path), "--port", "0"])
    assert (params.host, params.port, params.passwords) == ("127.0.0.1", 0, None)
