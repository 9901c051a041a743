"""What of Spark's own settings makes SQL read-only, beside the guard (:mod:`jobs.sql.read_only`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: What Spark itself can be told not to do: paths as names of tables, variables of the environment in a statement's
#: text, and scripts of several statements.
READING_ONLY: Final[Mapping[str, str]] = {
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.variable.substitute": "false",
    "spark.sql.scripting.enabled": "false",
}
