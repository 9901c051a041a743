"""What must not reach the lake: passwords, keys and tokens, in whatever text they stand.

One rule says which names are a secret's. It judges the keys of properties and configurations (:func:`masked_value`) and
the names in log lines, znodes and what is rejected (:func:`masked_text`), where secrets that have a form of their own
are found without a name. A secret behind no name and of no such form is not found.

Ids of records and hashes of files are made of the bytes as they are: they do not depend on what is hidden.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any, Final

HIDDEN: Final = "[hidden]"

_SECRET: Final = re.compile(
    r"passw(?:or)?d|passphrase|secret|sasl.?jaas|keystore|truststore|credential|token|certificate\.chain|license"
    r"|(?:private|master|api|access|account|encryption|signing|stored|server|shared)[._-]?key|\bhmac$|signature$"
    r"|authorization$|cookie$|(?:^|[._-])(?:pass|pwd|salt)$"
    r"|(?:^|[._-])(?:ssl|tls|ssh|rsa|aes|hmac|client|deploy)[._-]key$",
    re.IGNORECASE,
)
#: A variable of an environment, where ``=`` stands behind it: behind anything else it is a word of Kafka's.
_VARIABLE: Final = re.compile(r"[A-Z][A-Z0-9_]*_KEY(?:_BASE64|_PEM)?")
#: Names that only sound like a secret: what they hold is needed to judge a cluster, and is none.
_NO_SECRET: Final = re.compile(
    r"[._-](?:type|algorithm|location|ms|bytes|class|protocol|enabled?|interval|iterations|length|id|name)$|(?-i:Id|Name)$"
    r"|(?:^|_)(?:public|primary|foreign|partition|partitioning|sort|routing|message|record|cache|group|row|index)_key$",
    re.IGNORECASE,
)
#: What every text that holds a secret has, in small letters: one look at each is cheaper than the expressions.
_SIGNS: Final = (
    *("pass", "pwd", "secret", "jaas", "loginmodule", "credential", "token", "key", "truststore", "certificate.chain"),
    *("license", "hmac", "signature", "authorization", "cookie", "salt", "bearer ", "basic ", "eyj", "curl "),
)

#: A name in running text and what stands between it and its value: ``password=``, ``"token": "``, ``<secret>``. What is
#: longer is no name, and none begins in its midst: so each character is looked at once.
_NAME: Final = re.compile(
    r"(?<![\w.\-])(?P<name>[\w.\-]{3,200}+)[\\\"'\])]{0,4}+[ \t]{0,8}+(?:=>|:=|==|[=:>])[ \t]{0,8}+", re.ASCII
)
#: Its value: quoted, quoted in a text that is quoted itself, or up to the next blank. No group with a lookahead is
#: repeated possessively: what the last round's finds and must not have there CPython before 3.11.5 takes, too.
_VALUE: Final = re.compile(
    r"""(?P<quote>"|(?P<single>'))"""
    r"""(?P<quoted>(?(single)[^'\\]*+(?:\\.[^'\\]*+)*+|[^"\\]*+(?:\\.[^"\\]*+)*+))"""
    r"""|(?P<marks>\\++["'])(?P<within>.*?)(?=(?P=marks)|\Z)"""
    r"""|(?P<bare>(?:(?:Bearer|Basic|Digest|Negotiate)[ \t]{1,8})?(?!,["'])[^\s<]+?(?=,["']|[\s<]|\Z))""",
    re.DOTALL | re.IGNORECASE,
)
_REST_OF_LINE: Final = re.compile(r"[^\r\n]*")
#: What may stand before a name that a line begins with: then all behind it is the value, blanks and all.
_BEGIN_OF_LINE: Final = re.compile(r"(?:\A|\n)[ \t]*(?:- |export |set |ENV )?[\"']?\Z")
_LONGEST_BEGIN: Final = 64
#: Between two parts of a text: no value goes over it, and no line of a log has it.
_PART: Final = "\n\0"
#: What ends a list or a sentence is none of a value.
_CLOSING: Final = ",;)]}\"'"
#: What is printed where a value is not set, or was hidden before.
_NO_VALUE: Final = re.compile(r"null|none|true|false|\**|\W?(?:hidden|redacted|masked)\W?", re.IGNORECASE)
#: Kafka's requests name their own kind so: ``apiKey=UPDATE_METADATA``, ``"requestApiKey":2``.
_KAFKA_API: Final = re.compile(r"\w*[aA]piKey=(?:\d{1,3}|[A-Z_]+)", re.ASCII)
#: Kafka prints what it knows of a partition behind its name: ``tokens-0=PartitionState(leader=1, ...``.
_OF_PARTITION: Final = re.compile(r"[\w.\-]+-\d+=\w*\(\w+=", re.ASCII)

#: Secrets that are known by their form, each behind what a text with one has in small letters; what is kept of a secret
#: is the first group.
_FORMS: Final = tuple(
    (signs, re.compile(pattern, re.IGNORECASE | re.DOTALL))
    for signs, pattern in (
        # What a JAAS configuration gives to a login module: options.
        (
            ("loginmodule",),
            r"(LoginModule\s{1,20}(?:required|requisite|sufficient|optional)\b)(?!\s*\[hidden\])[^;]*+",
        ),
        # An option of a command.
        (("--",), r"((?<![\w.\-])--[\w.\-]{0,60}?(?:password|passwd|secret|token)[ \t]{1,8})(?!\[hidden\])[^\s\-]\S*+"),
        # The user and password that curl is given.
        (
            ("curl ",),
            r"(\bcurl (?:[^\n;|]{0,200}?[ \t])?(?:-\w{0,6}u[ \t]{0,8}|--(?:proxy-)?user(?:=|[ \t]{1,8}))"
            r"[\"']?[^\s:\"']{1,100}:)(?!\[hidden\])[^\s\"']++",
        ),
        # What stands in a header of HTTP: no word of a sentence is so long and has digits or capitals.
        (("bearer ", "basic "), r"(\b(?:Bearer|Basic)[ \t]{1,8})(?-i:(?=\S*[A-Z0-9]))[\w.~+/=\-]{16,}+"),
        (("eyj",), r"()(?<![\w.\-])eyJ[\w\-]{8,}+\.[\w\-]{8,}+(?:\.[\w\-]*+)?"),
        (("private key",), r"(-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----)(?!\[hidden\]).*?(?=-----END |\Z)"),
    )
)
_URI_SECRETS: Final = (
    re.compile(r"(//[^/@\s:]*+:)[^/\s]+@"),
    re.compile(r"(//)[\w.~%+\-]{20,}+@", re.ASCII),
)
#: Znodes that hold credentials and nothing that is needed: SCRAM users, and delegation tokens.
_SECRET_ZNODE: Final = re.compile(r"/config/users/|/delegation_token/tokens/")
_CONFIG_ZNODE: Final = "/config/"


def masked_value(key: str, value: str) -> str:
    """A property's value, or :data:`HIDDEN` where it is, or may be, a secret."""
    return HIDDEN if _is_secret(key, "=") or (value and masked_text(value, in_uris=False) != value) else _in_uris(value)


def masked_text(text: str, in_uris: bool = True) -> str:
    """The text with :data:`HIDDEN` for each secret in it; one without any, or masked before, is given as it is.

    Behind a name that sounds like a secret's all goes up to the end of the quotation, to the next blank, or, where the
    line begins with the name, to the line's end: rather too much than too little.
    """
    small = text.lower()
    if any(sign in small for sign in _SIGNS):
        for signs, form in _FORMS:
            if any(sign in small for sign in signs):
                text = form.sub(rf"\1{HIDDEN}", text)
        text = _behind_names(text)
    return _in_uris(text) if in_uris else text


def masked_texts(texts: Sequence[str]) -> Sequence[str]:
    """:func:`masked_text` of each; all are looked at together, since hardly any holds a sign of a secret."""
    small = "\n".join(texts).lower()
    begins = list(accumulate((len(text) + 1 for text in texts), initial=0))
    if len(small) + 1 != begins[-1]:
        return [masked_text(text) for text in texts]
    signed: set[int] = set()
    for sign in (*_SIGNS, "@"):
        at = small.find(sign)
        while at >= 0:
            place = bisect_right(begins, at) - 1
            signed.add(place)
            at = small.find(sign, begins[place + 1])
    if not signed:
        return texts
    return [masked_text(text) if place in signed else text for place, text in enumerate(texts)]


def masked_lines(first: str, more: str | None) -> tuple[str, str | None]:
    """The same for a text that goes on behind its first part: what begins in the one may end in the other."""
    if more is None:
        return masked_text(first), None
    whole = f"{first}{_PART}{more}"
    shown = masked_text(whole)
    if shown == whole:
        return first, more
    if whole.count(_PART) > 1:
        return masked_text(first), masked_text(more)
    first, _, more = shown.partition(_PART)
    return first, more or None


def masked_znode(path: str | None, data: str | None) -> str | None:
    """A znode's data without what is secret; data that holds none is given as it is.

    Of a znode without a path, which is outside of Kafka's chroot and so another program's, nothing is shown.
    """
    if not data:
        return data
    if path is None or _SECRET_ZNODE.search(path):
        return HIDDEN
    if _CONFIG_ZNODE in path:
        try:
            entry = json.loads(data)
            config: dict[str, Any] = entry["config"]
            shown = {
                key: masked_value(key, value) if isinstance(value, str) else value for key, value in config.items()
            }
            data = data if shown == config else json.dumps(entry | {"config": shown}, separators=(",", ":"))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            pass  # what is secret in it is found by its name, as in any text
    return masked_text(data)


@lru_cache(maxsize=4096)
def _is_secret(name: str, behind: str) -> bool:
    """``behind``: the character that follows the name."""
    is_named = _SECRET.search(name) is not None or (behind == "=" and _VARIABLE.fullmatch(name) is not None)
    return is_named and _NO_SECRET.search(name) is None


def _behind_names(text: str) -> str:
    parts: list[str] = []
    done = 0
    named = _NAME.search(text)
    while named is not None:
        end = named.end()
        # what ends in a value is hidden with it; not what begins there: {password: a,token: b}
        is_secret = end > done and _is_secret(named["name"], text[named.end("name")])
        value = _value_behind(text, named) if is_secret else None
        if value is not None:
            parts += (text[done : value[0]], HIDDEN)
            end, done = value
        named = _NAME.search(text, end)
    return text if not parts else "".join([*parts, text[done:]])


def _value_behind(text: str, named: re.Match[str]) -> tuple[int, int] | None:
    """Where the value behind a name begins and ends; None where there is none, or nothing to hide."""
    found = _VALUE.match(text, named.end())
    if found is None:
        return None
    group = found.lastgroup
    assert group is not None
    begin, end = found.span(group)
    if group == "bare":
        before = text[max(0, named.start() - _LONGEST_BEGIN) : named.start()]
        if _BEGIN_OF_LINE.search(before) and (named.start() <= _LONGEST_BEGIN or "\n" in before):
            rest = _REST_OF_LINE.match(text, begin)
            assert rest is not None
            end = rest.end()
        end = begin + len(text[begin:end].rstrip(" \t" + _CLOSING))
    value = text[begin:end]
    whole = f"{named['name']}={value}"
    is_none = not value or _NO_VALUE.fullmatch(value) or _KAFKA_API.fullmatch(whole) or _OF_PARTITION.match(whole)
    return None if is_none else (begin, end)


def _in_uris(text: str) -> str:
    if "@" in text and "//" in text:
        for pattern in _URI_SECRETS:
            text = pattern.sub(rf"\1{HIDDEN}@", text)
    return text
