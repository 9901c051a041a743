"""The template of a message: its text with the values taken out, so that equal messages can be counted together.

For messages that no shape knows. What is a value is told by its form alone: a number, an address, a path, an id, a
quoted text, a partition. A bare word is taken as it is, so a topic's name in the middle of a sentence stays.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

#: No template is longer, in characters.
MAX_TEMPLATE_LENGTH: Final = 200
#: No more of a message is looked at: what goes on so long is a list.
_MAX_LOOKED_AT: Final = 1024

_TEXT: Final = re.compile(r"\"[^\"]*\"(?P<is_key>\s?:)?")
_SINGLE_QUOTED: Final = re.compile(r"(?<![\w'])'[^']*'(?!\w)", re.ASCII)
_PATH: Final = re.compile(r"(?<![\w>./])(?:/[\w.$@+~=%-]+){2,}/?|(?<!\w)[A-Za-z]:\\[^\s\"',;)\]]*", re.ASCII)
_NAMED: Final = re.compile(
    r"\b(?P<key>topic|topicName|topicId|clientId|groupId|memberId|principal)=[^\s,;:()\[\]{}<>\"'=]+", re.ASCII
)
_PAIR: Final = re.compile(r"\[[\w.-]+,\d+\]", re.ASCII)
#: A name or number that holds a digit, with the port behind it.
_VALUE: Final = re.compile(r"(?<![\w.-])[A-Za-z_.-]*+(?:\d[\w.-]*(?::\d+)?|:\d+)", re.ASCII)

_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)*|0x[0-9a-fA-F]+", re.ASCII)
_DIGITS: Final = re.compile(r"\d+(?:\.\d+)*", re.ASCII)
_ADDRESS: Final = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?|[A-Za-z][\w-]*(?:\.[\w-]+)+:\d+", re.ASCII)
_ID: Final = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?=\w*[a-fx])[0-9a-f]{7,}|(?=[\w-]*[A-Z])[\w-]{22}", re.ASCII
)
_PARTITION: Final = re.compile(r"(?=[\d-]*[A-Za-z_.])[\w.-]*-\d+", re.ASCII)
#: Threads are named as partitions are; their name is worth keeping.
_THREAD: Final = re.compile(r"thread|handler|reaper|manager|worker|kafkaapi", re.ASCII | re.IGNORECASE)

#: ``N, N`` and ``<partition> -> N, <partition> -> N``: how many a list has is a value too.
_REPETITION: Final = re.compile(r"((?:<\w+>|N)(?: -> (?:<\w+>|\w+))?)(?:, ?\1)+(?![\w<])", re.ASCII)


_MARKS_OF_VALUES: Final = re.compile(r"[\d\"/\\]")
#: Longer words are lists or JSON, which rarely come twice: they are not remembered.
_LONGEST_REMEMBERED_WORD: Final = 64


def normalised_template(message: str) -> str:
    """The template of a message, at most :data:`MAX_TEMPLATE_LENGTH` characters; that of a template is itself.

    Numbers become ``N``; others ``<host>``, ``<path>``, ``<id>``, ``<text>``, ``<name>`` and ``<partition>``. Two
    messages that differ in such values only, or in how many a list has, give the same template.
    """
    text = message
    if len(text) > _MAX_LOOKED_AT:
        text = text[:_MAX_LOOKED_AT]
        end = text.rfind(",", _MAX_LOOKED_AT // 2)  # no half of an element, or of a word
        text = text[: end if end > 0 else text.rfind(" ")]
    while True:
        reduced = _reduced(text)[:MAX_TEMPLATE_LENGTH].rstrip()
        if reduced == text or _is_settled(reduced):
            return reduced
        text = reduced


def _is_settled(text: str) -> bool:
    """Whether no value and no list is left in a reduced text, as a look at single characters tells."""
    return not ("N," in text or ">," in text or " -> " in text or text.count("'") > 1 or _MARKS_OF_VALUES.search(text))


def _reduced(text: str) -> str:
    """One pass; each that changes the text leaves fewer digits, quotes, slashes, blanks or elements of lists."""
    if '"' in text:
        text = _TEXT.sub(_quoted, text)
    if text.count("'") > 1:
        text = _SINGLE_QUOTED.sub("<text>", text)
    text = " ".join(
        [_remembered(word) if len(word) <= _LONGEST_REMEMBERED_WORD else _word(word) for word in text.split()]
    )
    return _REPETITION.sub(r"\1", text) if "N," in text or ">," in text or " -> " in text else text


def _quoted(found: re.Match[str]) -> str:
    """The key of a JSON object stays."""
    return found[0] if found["is_key"] else "<text>"


def _word(word: str) -> str:
    """A word without blanks, its values replaced."""
    if word.isdecimal():
        return "N"
    if "/" in word or "\\" in word:
        word = _PATH.sub("<path>", word)
    if "=" in word:
        word = _NAMED.sub(r"\g<key>=<name>", word)
    if "[" in word:
        word = _PAIR.sub("<partition>", word)
    return _VALUE.sub(_placeholder, word)


_remembered: Final = lru_cache(maxsize=65536)(_word)


def _placeholder(found: re.Match[str]) -> str:
    """What stands for a name or number; the dot that ends a sentence is none of it."""
    value = found[0].rstrip(".-")
    return _of_form(value) + found[0][len(value) :]


def _of_form(value: str) -> str:
    if _NUMBER.fullmatch(value):
        return "N"
    if _ADDRESS.fullmatch(value):
        return "<host>"
    if _ID.fullmatch(value):
        return "<id>"
    if _PARTITION.fullmatch(value) and not _THREAD.search(value):
        return "<partition>"
    return _DIGITS.sub("N", value)
