"""Text of others made safe for a terminal: of a log, a name, a path or an error."""

from __future__ import annotations


def printable(text: str, kept: str = "") -> str:
    r"""The text with escapes for all that is no visible character: control characters, marks that turn the direction
    of writing, line ends, and bytes of a name that are no UTF-8. Characters of ``kept`` stay as they are.

    >>> printable("topic\x1b[31m\n\u202e")
    'topic\\x1b[31m\\n\\u202e'
    >>> printable("two\nlines", kept="\n")
    'two\nlines'
    """
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or each in kept else each.encode("unicode_escape").decode("ascii") for each in text
    )
