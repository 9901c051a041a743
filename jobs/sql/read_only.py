"""Which SQL the command line runs: statements that read the lake's tables, and nothing else.

Judged on the plan that Spark's parser makes of a statement, before Spark looks at a file or a table: each node of it,
in each subquery, must be one of those named here. What is not named is refused: scripts, files as relations, functions
that call Java, and whatever a later Spark adds.
"""

from __future__ import annotations

import contextlib
import difflib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from dashboards.views import QUESTION_FUNCTIONS
from jobs.sql.catalog import RELATIONS
from jobs.sql.settings import READING_ONLY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


READING_WORDS: Final = ("SELECT", "WITH", "VALUES", "TABLE", "FROM", "SHOW", "DESCRIBE", "DESC", "EXPLAIN")

#: Plans that name a relation, a table of the lake or a WITH of the same statement.
_RELATIONS: Final = frozenset({"UnresolvedRelation", "UnresolvedTable", "UnresolvedTableOrView"})
#: Plans that call a function, and how its name is asked for.
_CALLS: Final = {
    "UnresolvedFunction": "nameParts",
    "UnresolvedTableValuedFunction": "name",
    "UnresolvedGenerator": "name",
}
#: Plans and unresolved expressions that only combine what their children give.
_COMBINING: Final = _words(
    """
    Project Filter Aggregate UnresolvedHaving Sort GlobalLimit LocalLimit Offset Distinct Union Except Intersect Join
    LateralJoin SubqueryAlias UnresolvedSubqueryColumnAliases UnresolvedTVFAliases UnresolvedWith UnresolvedInlineTable
    OneRowRelation LocalRelation RelationTimeTravel Generate Window WithWindowDefinition Pivot Unpivot UnresolvedHint
    Repartition RepartitionByExpression RebalancePartitions Sample UnresolvedAlias UnresolvedAttribute UnresolvedStar
    UnresolvedStarExceptOrReplace UnresolvedStarWithColumns UnresolvedExtractValue UnresolvedRegex UnresolvedOrdinal
    MultiAlias UnresolvedGroupingAnalytics NamedParameter PosParameter
    """
)
#: Plans that tell of tables, functions and plans, and change nothing. What they contain is judged, too.
_TELLING: Final = _words(
    """
    ExplainCommand DescribeQueryCommand DescribeRelation DescribeRelationJsonCommand DescribeColumn DescribeNamespace
    DescribeFunction DescribeDeltaHistory DescribeDeltaDetailCommand ShowTables ShowTablesExtended ShowColumns
    ShowCreateTable ShowTableProperties ShowPartitions ShowFunctions ShowViews ShowNamespacesCommand ShowNamespaces
    ShowCatalogsCommand ShowCurrentNamespaceCommand UnresolvedNamespace CurrentNamespace$ UnresolvedFunctionName
    """
)
_NODE: Final = "org.apache.spark.sql.catalyst.trees.TreeNode"
#: The expressions that Spark's grammar makes itself (``+``, ``CASE``, ``CAST``); functions are still names in a plan
#: that is only parsed.
_EXPRESSIONS: Final = re.compile(r"org\.apache\.spark\.sql\.catalyst\.expressions\.(?:\w+\.)?\w+\$?")
#: Expressions whose fields hold no other one, not gone into.
_LEAVES: Final = frozenset({"Literal", "UnresolvedAttribute", "UnresolvedStar", "AttributeReference"})

#: Groups of Spark's own functions that compute their result from their arguments alone.
_FUNCTION_GROUPS: Final = _words(
    """
    agg_funcs array_funcs bitwise_funcs collection_funcs conditional_funcs conversion_funcs csv_funcs datetime_funcs
    generator_funcs hash_funcs json_funcs lambda_funcs map_funcs math_funcs predicate_funcs st_funcs string_funcs
    struct_funcs url_funcs variant_funcs window_funcs
    """
)
#: Those of other groups that do, or that tell something of the session.
_FUNCTIONS: Final = _words(
    """
    range assert_true raise_error typeof version uuid monotonically_increasing_id spark_partition_id current_catalog
    current_database current_schema current_user session_user user bitmap_bit_position bitmap_bucket_number bitmap_count
    hll_sketch_estimate hll_union
    """
)
#: Spark's own for what its grammar writes as an operator, and has no group.
_OPERATORS: Final = frozenset({"!=", "<>", "case", "||"})


@contextlib.contextmanager
def reading_only(spark: SparkSession) -> Iterator[None]:
    """While this lasts the session's own settings allow no more than :func:`refusal` does, where Spark has such."""
    before = {name: spark.conf.get(name) for name in READING_ONLY}
    try:
        for name, value in READING_ONLY.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, was in before.items():
            spark.conf.set(name, str(was))


def refusal(spark: SparkSession, statement: str) -> str | None:
    """Why the statement will not be run, as a sentence; None where it only reads the lake.

    Raises pyspark's ``ParseException`` for what is no SQL.
    """
    word = first_word(statement)
    if word not in READING_WORDS:
        return _sentence(word)
    # parsers ask the thread for the session whose settings they follow
    spark._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)  # type: ignore[union-attr]
    plan = spark._jsparkSession.sessionState().sqlParser().parsePlan(statement)
    judge = _Judge(spark)
    refused = next(filter(None, (judge.refused(*found) for found in judge.nodes(plan))), None)
    return None if refused is None else _sentence(refused)


def first_word(statement: str) -> str:
    """The first keyword in capitals, comments and opening parentheses left out; empty where there is none."""
    rest = statement
    while True:
        shorter = re.sub(r"\A(\s+|--[^\n]*|/\*.*?\*/|\()", "", rest, flags=re.DOTALL)
        if shorter == rest:
            break
        rest = shorter
    match = re.match(r"[A-Za-z]+", rest)
    return match.group(0).upper() if match else ""


class _Judge:
    """What one session makes of the nodes of one plan."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._gateway = spark.sparkContext._gateway
        self._classes: dict[str, tuple[str, str]] = {}

    def nodes(self, plan: Any) -> Iterator[tuple[Any, str, frozenset[str]]]:
        """Every node that any field of any node holds, the name of its class, and the names that WITH gives where it
        stands."""
        waiting: list[tuple[Any, frozenset[str]]] = [(plan, frozenset())]
        while waiting:
            each, names = waiting.pop()
            if not hasattr(each, "getClass"):
                continue
            class_name = str(each.getClass().getName())
            kind, simple_name = self._class(class_name, each)
            if kind == "node":
                yield each, class_name, names
                if simple_name == "UnresolvedWith":
                    for relation in _scala(each.cteRelations()):
                        own = names | {str(relation._1()).lower()}
                        waiting.append((relation._2(), own if each.allowRecursion() else names))
                        names = own
                    waiting.append((each.child(), names))
                    continue
            if kind == "other" or (kind == "node" and simple_name in _LEAVES):
                continue
            waiting += [(one, names) for one in (_scala(each) if kind == "many" else _fields(each))]

    def _class(self, name: str, each: Any) -> tuple[str, str]:
        """Whether what is of this class is a node of the plan, many of something, a case class that may hold nodes, or
        something else; and the simple name."""
        from py4j.java_gateway import is_instance_of

        if name not in self._classes:
            kinds = (("node", _NODE), ("many", "scala.collection.Iterable"), ("product", "scala.Product"))
            kind = next((kind for kind, of in kinds if is_instance_of(self._gateway, each, of)), "other")
            self._classes[name] = kind, str(each.getClass().getSimpleName())
        return self._classes[name]

    def refused(self, node: Any, class_name: str, names: frozenset[str]) -> str | None:
        """What of the node is not allowed, in words; None where all is."""
        _, name = self._class(class_name, node)
        if name in _RELATIONS:
            return _refused_relation(node, name, names)
        if name in _CALLS:
            return self._refused_function(getattr(node, _CALLS[name])())
        if name in _COMBINING or name in _TELLING or _EXPRESSIONS.fullmatch(class_name):
            return None
        return f"what Spark calls {name}"

    def _refused_function(self, named: Any) -> str | None:
        parts = (
            [str(part) for part in _scala(named)]
            if self._class(str(named.getClass().getName()), named)[0] == "many"
            else [*(str(each) for each in _scala(named.database())), str(named.funcName())]
        )
        shown = f"the function {'.'.join(parts)}"
        function = parts[0].lower()
        if len(parts) > 1:
            return shown
        if function in _OPERATORS or function in QUESTION_FUNCTIONS:
            return None
        catalog = self._spark._jsparkSession.sessionState().catalog()
        identifier = self._spark._jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(function)  # type: ignore[union-attr]
        if not catalog.functionExists(identifier) and not catalog.isRegisteredFunction(identifier):
            return None  # Spark has the sentence for it
        about = catalog.lookupFunctionInfo(identifier)
        is_own = str(about.getSource()) == "built-in"
        return None if is_own and (about.getGroup() in _FUNCTION_GROUPS or function in _FUNCTIONS) else shown


def _refused_relation(node: Any, kind: str, names: frozenset[str]) -> str | None:
    parts = [str(part) for part in _scala(node.multipartIdentifier())]
    name = [part.lower() for part in parts]
    if kind == "UnresolvedRelation":
        if node.isStreaming() or not node.options().isEmpty():
            return "a relation with options, or as a stream,"
        if len(name) == 1 and name[0] in names:
            return None
    if len(name) == 3 and name[0] == "spark_catalog":
        del name[0]
    shown = ".".join(f"`{part}`" for part in parts)
    is_of_lake = len(name) == 2 and ".".join(name) in RELATIONS
    return None if is_of_lake else f"{shown}, which is no table of the lake{_meant(name[-1])},"


def _meant(name: str) -> str:
    """The tables and views with that name, or nearly that, in another schema perhaps, as a question."""
    known = {full_name.partition(".")[2]: full_name for full_name in reversed(RELATIONS)}
    near = [name] if name in known else difflib.get_close_matches(name, known, n=3)
    return f" (did you mean {' or '.join(known[one] for one in near)}?)" if near else ""


def _scala(several: Any) -> Iterator[Any]:
    """The elements, with a call of Java each."""
    elements = several.iterator().toIndexedSeq()
    return (elements.apply(index) for index in range(elements.length()))


def _fields(product: Any) -> Iterator[Any]:
    return (product.productElement(index) for index in range(product.productArity()))


def _sentence(refused: str) -> str:
    what = f"{refused} is not run here" if refused else "there is no SQL statement"
    return f"{what}: this SQL is read-only ({', '.join(READING_WORDS)} over the lake's tables)"
