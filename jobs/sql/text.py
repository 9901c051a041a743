"""SQL text cut into statements."""

from __future__ import annotations

import re
from typing import Final

_TOKEN: Final = re.compile(
    r"""
      '(?:[^'\\]|\\.)*'      # a string; '' is two strings side by side, which cuts the same
    | "(?:[^"\\]|\\.)*"      # a string, or with ANSI a name
    | `[^`]*`                # a name
    | --[^\n]*               # a comment to the end of the line
    | /\*.*?\*/              # a comment in brackets
    | ;
    """,
    re.VERBOSE | re.DOTALL,
)


def split_statements(text: str) -> tuple[list[str], str]:
    """The statements that a semicolon ends, and what follows the last one.

    Semicolons in strings, quoted names and comments end nothing. Statements of blanks and comments are left out.

    >>> split_statements("SELECT ';'; SELECT 2")
    (["SELECT ';'"], 'SELECT 2')
    """
    statements: list[str] = []
    start = 0
    for token in _TOKEN.finditer(text):
        if token.group() == ";":
            statements.append(text[start : token.start()].strip())
            start = token.end()
    return [statement for statement in statements if not is_blank(statement)], text[start:].strip()


def statements_of(text: str) -> list[str]:
    """All statements, the last one also without a semicolon."""
    complete, rest = split_statements(text)
    return complete if is_blank(rest) else [*complete, rest]


def is_blank(text: str) -> bool:
    """Whether there is nothing but blanks and comments."""
    return not re.sub(r"--[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL).strip()
