"""What a client of the Thrift server may ask, judged before Spark's own service is asked.

Of HiveServer2's calls those are passed on that are named here. A statement is judged as ``sql`` judges it. Settings
that a client brings are dropped: by them it could set properties of Java, start a metastore, and change what the guard
relies on.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from dashboards.views import DEFAULT_SCHEMA, QUESTIONS_SCHEMA, View
from ingest.lake.tables import SCHEMAS, TABLES
from jobs.session.printable import printable
from jobs.sql.answer import sql_error
from jobs.sql.catalog import RELATIONS
from jobs.sql.read_only import refusal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Where a client may go (``USE``): it changes what is listed; statements name tables with their schema all the same.
KNOWN_SCHEMAS: Final = frozenset({DEFAULT_SCHEMA, *SCHEMAS, QUESTIONS_SCHEMA})
#: Calls that are passed on as they are.
PASSED_ON: Final = (
    "CloseSession",
    "GetInfo",
    "GetTypeInfo",
    "GetCatalogs",
    "GetSchemas",
    "GetTables",
    "GetTableTypes",
    "GetColumns",
    "GetFunctions",
    "CancelOperation",
    "CloseOperation",
    "GetResultSetMetadata",
    "GetQueryId",
)
_RPC: Final = "org.apache.hive.service.rpc.thrift"
#: TFetchResultsReq.fetchType: 0 is rows.
_FETCH_LOG: Final = 1
_DATABASE: Final = "use:database"
_USE: Final = re.compile(r"\s*use\s+(?:(?:database|schema|namespace)\s+)?(`?)(\w+)\1\s*;?\s*", re.IGNORECASE)
#: What HiveServer2 puts before Spark's own words.
_WRAPPED: Final = re.compile(r"\A.*?Error running query: (?:\[[\w.]+\] )?(?:[\w.]+Exception: )?")
#: As PyHive asks, and by it Superset: Hive answers with the names alone, Spark with the schema first.
_LISTED: Final = re.compile(r"\s*show\s+(tables|views)\s+in\s+`(\w+)`\s*", re.IGNORECASE)
_SYNTAX_OR_ACCESS: Final = "42000"
_KEYS: Final = "TABLE_CAT, TABLE_SCHEM, TABLE_NAME, COLUMN_NAME, KEY_SEQ, PK_NAME"
_CROSS_REFERENCES: Final = (
    "PKTABLE_CAT PKTABLE_SCHEM PKTABLE_NAME PKCOLUMN_NAME FKTABLE_CAT FKTABLE_SCHEM FKTABLE_NAME FKCOLUMN_NAME KEY_SEQ"
    " UPDATE_RULE DELETE_RULE FK_NAME PK_NAME DEFERRABILITY"
)


class Service:
    """HiveServer2's interface for Java, over Spark's own service (``inner``) and the session that judges."""

    def __init__(self, spark: SparkSession, inner: Any, sessions: Any) -> None:
        self._spark, self._inner, self._sessions = spark, inner, sessions
        java: Any = spark._jvm
        self._java, self._rpc = java, java.org.apache.hive.service.rpc.thrift

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name in PASSED_ON:
            return lambda request: getattr(self._inner, name)(request)
        raise AttributeError(name)

    def OpenSession(self, request: Any) -> Any:
        """A session without any of the client's settings but the schema that it is in."""
        given = request.getConfiguration() or {}
        schema = str(given.get(_DATABASE) or DEFAULT_SCHEMA).lower()
        if schema not in KNOWN_SCHEMAS:
            return self._rpc.TOpenSessionResp(
                self._wrong(_no_schema(schema)), self._rpc.TProtocolVersion.HIVE_CLI_SERVICE_PROTOCOL_V8
            )
        request.setConfiguration({_DATABASE: schema})
        opened = self._inner.OpenSession(request)
        if opened.isSetSessionHandle():
            self._know_no_metastore(opened.getSessionHandle())
        return opened

    def ExecuteStatement(self, request: Any) -> Any:
        """Run what the guard of ``sql`` lets through, and ``USE``."""
        statement = str(request.getStatement())
        wrong = self._refused(statement)
        if wrong is not None:
            return self._rpc.TExecuteStatementResp(self._wrong(wrong))
        listed = _LISTED.fullmatch(statement)
        is_known = listed is not None and listed.group(2) in KNOWN_SCHEMAS
        return self._run(request, self._names_alone(*listed.groups()) if listed and is_known else statement)

    def GetOperationStatus(self, request: Any) -> Any:
        """What becomes of a statement; an error as one line, not with all of Java's stack."""
        status = self._inner.GetOperationStatus(request)
        if status.isSetErrorMessage():
            status.setErrorMessage(_in_a_line(str(status.getErrorMessage())))
        return status

    def FetchResults(self, request: Any) -> Any:
        """Rows; of an operation's log, which clients ask for again and again, there is none."""
        if request.getFetchType() == _FETCH_LOG:
            return self._rpc.TFetchResultsResp(self._wrong("operations have no log"))
        return self._inner.FetchResults(request)

    def GetPrimaryKeys(self, request: Any) -> Any:
        """The columns of a table's key, by its specification; of a view none. Spark would ask a metastore."""
        name = f"{request.getSchemaName()}.{request.getTableName()}".lower()
        key = TABLES[name].key if name in TABLES else ()
        schema, _, table = name.partition(".")
        rows = [f"('', '{schema}', '{table}', '{column}', {n}, '{table}_key')" for n, column in enumerate(key, 1)]
        none = "('', '', '', '', 0, '')"
        return self._told(
            self._rpc.TGetPrimaryKeysResp,
            request,
            f"SELECT * FROM VALUES {', '.join(rows or [none])} AS t({_KEYS}) WHERE {'true' if rows else 'false'}",
        )

    def GetCrossReference(self, request: Any) -> Any:
        """No table of a lake declares foreign keys."""
        columns = ", ".join(f"'' AS {name}" for name in _CROSS_REFERENCES.split())
        return self._told(self._rpc.TGetCrossReferenceResp, request, f"SELECT {columns} WHERE false")

    def SetClientInfo(self, request: Any) -> Any:
        """Taken, and not used."""
        return self._rpc.TSetClientInfoResp(self._rpc.TStatus(self._rpc.TStatusCode.SUCCESS_STATUS))

    def _refused(self, statement: str) -> str | None:
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        use = _USE.fullmatch(statement)
        if use:
            schema = use.group(2).lower()
            return None if schema in KNOWN_SCHEMAS else _no_schema(schema)
        try:
            return refusal(self._spark, statement)
        except (PySparkException, Py4JJavaError) as error:
            return _in_a_line(str(error))

    def _run(self, request: Any, statement: str) -> Any:
        """Run the very text that was judged, under no settings of the client."""
        request.setStatement(statement)
        request.unsetConfOverlay()
        return self._inner.ExecuteStatement(request)

    def _names_alone(self, kind: str, schema: str) -> str:
        """A statement that gives the names of a schema's tables, or of its views, in one column as Hive does."""
        wants_views = kind.lower() == "views"
        found = self._spark._jsparkSession.sessionState().catalog().listTables(schema)
        named = [str(found.apply(index).table()) for index in range(found.size())]
        names = [name for name in named if isinstance(RELATIONS.get(f"{schema}.{name}"), View) == wants_views]
        listed = ", ".join(f"'{name}'" for name in names)
        return f"SELECT explode(array({listed})) AS tab_name" if names else "SELECT '' AS tab_name WHERE false"

    def _told(self, answer: Any, request: Any, statement: str) -> Any:
        """The answer to a call about tables, by a statement of ours."""
        asked = self._rpc.TExecuteStatementReq(request.getSessionHandle(), statement)
        done = self._inner.ExecuteStatement(asked)
        told = answer(done.getStatus())
        if done.isSetOperationHandle():
            told.setOperationHandle(done.getOperationHandle())
        return told

    def _know_no_metastore(self, handle: Any) -> None:
        """Hive's own authorization stays off: for a list of tables it would make a metastore."""
        cli, security = self._java.org.apache.hive.service.cli, self._java.org.apache.hadoop.hive.ql.security
        state = self._sessions.getSession(cli.SessionHandle(handle)).getSessionState()
        state.setAuthenticator(security.HadoopDefaultAuthenticator())
        state.setAuthorizer(security.authorization.StorageBasedAuthorizationProvider())

    def _wrong(self, sentence: str) -> Any:
        status = self._rpc.TStatus(self._rpc.TStatusCode.ERROR_STATUS)
        status.setSqlState(_SYNTAX_OR_ACCESS)
        status.setErrorCode(0)
        status.setErrorMessage(sentence)
        return status

    class Java:
        implements = (f"{_RPC}.TCLIService$Iface",)


def _no_schema(schema: str) -> str:
    return f"there is no schema {printable(schema)}: there are {', '.join(sorted(KNOWN_SCHEMAS))}"


def _in_a_line(error: str) -> str:
    """Spark's own sentence of an error where the SQL is at fault, else its first line."""
    told = _WRAPPED.sub("", error)
    return sql_error(told) or " ".join((told.strip().splitlines() or [""])[0].split())[:500]
