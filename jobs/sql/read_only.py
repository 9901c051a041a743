"""Which SQL the command line runs: statements that read.

This guards against mistakes, not against an attacker, who has the same shell: SQL may still read any file that
Spark can read and call functions with effects of their own (``reflect``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

READING_WORDS: Final = ("SELECT", "WITH", "VALUES", "TABLE", "FROM", "SHOW", "DESCRIBE", "DESC", "EXPLAIN")

#: Plans that tell of tables and change nothing, by the start of Spark's own class name.
_TELLING_PLANS: Final = ("Show", "Describe")
#: Plans that write, or run something that is not a query, and that Spark does not class as commands.
_ACTING_PLANS: Final = (
    "Call",
    "CompoundBody",
    "InsertIntoDir",
    "InsertIntoStatement",
    "ScriptTransformation",
    "UnresolvedExecuteImmediate",
)
_COMMAND: Final = "org.apache.spark.sql.catalyst.plans.logical.Command"
_PARSED_STATEMENT: Final = "org.apache.spark.sql.catalyst.plans.logical.ParsedStatement"


def refusal(spark: SparkSession, statement: str) -> str | None:
    """Why the statement will not be run, as a sentence; None where it only reads.

    Judged on the plan that Spark's own parser makes of it. Raises pyspark's ``ParseException`` for what is no SQL.
    """
    word = first_word(statement)
    if word not in READING_WORDS:
        return _sentence(word)
    plan = spark._jsparkSession.sessionState().sqlParser().parsePlan(statement)
    return None if _reads(spark, plan) else _sentence(f"a {word} that writes or runs something")


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


def _reads(spark: SparkSession, plan: Any) -> bool:
    name = _name(plan)
    if name == "ExplainCommand":
        return _reads(spark, plan.logicalPlan())
    if name.startswith(_TELLING_PLANS):
        return True
    return not any(_acts(spark, node) for node in _nodes(plan))


def _acts(spark: SparkSession, node: Any) -> bool:
    from py4j.java_gateway import is_instance_of

    gateway = spark.sparkContext._gateway
    return _name(node) in _ACTING_PLANS or any(
        is_instance_of(gateway, node, kind) for kind in (_COMMAND, _PARSED_STATEMENT)
    )


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    children = plan.children()
    for index in range(children.size()):
        yield from _nodes(children.apply(index))


def _name(plan: Any) -> str:
    return str(plan.getClass().getSimpleName())


def _sentence(refused: str) -> str:
    what = f"{refused} is not run here" if refused else "there is no SQL statement"
    return f"{what}: this SQL is read-only ({', '.join(READING_WORDS)})"
