"""Names of hosts, topics and principals in texts, and the pseudonyms that stand for them. Plain Python: no Spark.

A topic is known from a column that holds one. Hosts and principals are found where Kafka's messages, settings and
znodes write them: in listeners, ``Node`` and ``EndPoint``, Java's ``host/address:port``, in ``User:name``.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import ip_address
from typing import Final


class Kind(StrEnum):
    """What a name is the name of; the begin of its pseudonym."""

    TOPIC = "topic"
    HOST = "host"
    USER = "user"


_DIGITS: Final = 10
_PSEUDONYM: Final = re.compile(rf"(?:{'|'.join(Kind)})-[0-9a-f]{{{_DIGITS}}}(?![0-9a-zA-Z])")
_WORD: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_-])?")
_PIECE: Final = re.compile(r"[A-Za-z0-9]+|[._-]")
#: Words kept with what became of them.
_REMEMBERED: Final = 100_000
#: Longer are neither topics (``Topic.MAX_NAME_LENGTH``) nor hosts.
_LONGEST: Final = 255
#: What stands before a host, or behind one: so many characters are looked at.
_BESIDE: Final = 48
_BESIDE_HOST: Final = ("/", ":", "=", ">", '"', "'", "(", ",")
_BEFORE_HOST: Final = re.compile(r"(?:[A-Za-z_]://|(?i:\bhost(?:\.?name)?)[\"']?\s?(?:[:=]|->)\s?[\"']?)$")
_BEFORE_HOST_AND_NUMBER: Final = re.compile(r"EndPoint\((?:-?\d{1,10},\s?)?$")
_NUMBER: Final = re.compile(r",\s?\d")
_BEHIND_HOST: Final = re.compile(rf"/(?:\[?[0-9a-fA-F.:]{{3,39}}\]?|host-\w{{{_DIGITS}}}):\d|:\d{{1,5}} \(id: ")
_BEFORE_HOST_AND_PORT: Final = re.compile(
    r"(?i:\b(?:connect\w{0,3}|sockets?|connections?|server)(?: to| on| with| from)? )$"
)
_PORT: Final = re.compile(r":\d{1,5}(?!\d|,host)")
_LONG_PORT: Final = re.compile(r":\d{4,5}(?![\d)])")
#: Settings that list hosts, some without a port.
_LISTS: Final = re.compile(
    r"(?i:zookeeper\.connect|connectString|bootstrap\.servers|quorum\.voters)[\"']?\s{0,2}[:=]\s{0,2}[\"']?([^\s\"'\])}]{1,4000})"
)
_LISTED: Final = re.compile(r"(?:(?<=,)|(?<=@)|^)(?!\d+@)([A-Za-z0-9][A-Za-z0-9._-]*)")
_USERS: Final = re.compile(
    r"\b(?:User|Group):((?:CN|OU|O|C|L|ST|DC|UID)=[^\"'\])}]{1,500}|[^\s\"',;\])}*]{1,250})"
    r"|(?i:\bprincipal)[\"']?\s?[:=]\s?[\"']?((?!User:|Group:)[^\s\"',;\])}]{1,250})"
    r"|/(?:home|Users|config/users)/([^/\s\"',;]{1,250})"
)
#: Either may be a version or a time, too.
_ADDRESS: Final = re.compile(
    r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w]|\.\d)|(?<![\w:])[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){2,7}(?![\w:])"
)
#: What is the same everywhere and says nothing of whoever runs the cluster.
_EVERYWHERE: Final = frozenset({"localhost", "ANONYMOUS", "anonymous", "null", "none", "true", "false"})
_INTERNAL_TOPICS: Final = frozenset(
    {"__consumer_offsets", "__transaction_state", "__cluster_metadata", "__share_group_state", "__remote_log_metadata"}
)
_FILE: Final = re.compile(r"\.(?:java|scala|kt|py|sh|log|jar|properties)$")
_OWN_ADDRESS: Final = re.compile(r"(?:^|-)(?:127(?:\.\d{1,3}){3}|0\.0\.0\.0)$")
#: Of hosts alone: no word of a message looks so.
_OF_HOSTS_ALONE: Final = re.compile(r"[0-9.-]")


@dataclass(frozen=True)
class Pseudonyms:
    """``key`` makes pseudonyms of which nobody without it can guess the name; the same key and name give the same one.
    ``topics`` and ``hosts`` are looked for in every text; of hosts only those with a digit, a dot or a hyphen: a word
    of letters alone ("kafka", "broker") is replaced where a host is written, and stays a word elsewhere."""

    key: bytes
    topics: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()
    _known: dict[str, str] = field(init=False, repr=False, compare=False)
    _most_pieces: int = field(init=False, repr=False, compare=False)
    _words: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        known = {host: self.host(host) for host in self.hosts if _OF_HOSTS_ALONE.search(host)}
        known |= {topic: self.topic(topic) for topic in self.topics if topic}
        object.__setattr__(self, "_known", known)
        object.__setattr__(self, "_most_pieces", max((len(_PIECE.findall(name)) for name in known), default=0))

    def topic(self, name: str) -> str:
        """What stands for a topic; Kafka's own keep their names."""
        return name if name in _INTERNAL_TOPICS else self._made(Kind.TOPIC, name)

    def host(self, name: str) -> str:
        """What stands for a host or an address; localhost and addresses of the machine itself stay."""
        return self._made(Kind.HOST, name) if _is_host(name) and not _is_own_address(name) else name

    def user(self, name: str) -> str:
        """What stands for a principal's name."""
        return name if name in _EVERYWHERE or _PSEUDONYM.match(name) else self._made(Kind.USER, name)

    def text(self, text: str) -> str:
        """The text with every name in it replaced."""
        text = _USERS.sub(lambda found: _group_replaced(found, self.user), text)
        text = _LISTS.sub(lambda found: _group_replaced(found, self._list), text)
        text = _ADDRESS.sub(lambda found: self.host(found[0]) if is_address(found[0]) else found[0], text)
        return _WORD.sub(self._word, text)

    def _made(self, kind: Kind, name: str) -> str:
        digest = hmac.new(self.key, f"{kind}:{name}".encode("utf-8", "surrogatepass"), hashlib.sha256)
        return f"{kind}-{digest.hexdigest()[:_DIGITS]}"

    def _list(self, hosts: str) -> str:
        return _LISTED.sub(lambda found: self.host(found[0]), hosts)

    def _word(self, found: re.Match[str]) -> str:
        word = found[0]
        if word not in self._known and _is_host_at(found):
            return self.host(word)
        made = self._words.get(word)
        if made is None:
            made = self._without_names(word)
            if len(word) <= _LONGEST and len(self._words) < _REMEMBERED:
                self._words[word] = made
        return made

    def _without_names(self, word: str) -> str:
        """A word that stands where no host is written."""
        if word in self._known or not self._known or _PSEUDONYM.search(word):
            return self._known.get(word, word)
        return self._pieces(word)

    def _pieces(self, word: str) -> str:
        """The word with the longest names replaced that begin and end where a piece of it does."""
        pieces, made, at = _PIECE.findall(word), [], 0
        while at < len(pieces):
            name, until, longest = "", at, (at + 1, pieces[at])
            while until < min(len(pieces), at + self._most_pieces):
                name += pieces[until]
                until += 1
                if name in self._known:
                    longest = (until, self._known[name])
            at = longest[0]
            made.append(longest[1])
        return "".join(made)


def hosts_in(text: str) -> Iterator[str]:
    """The hosts that a text names where hosts are written, to be looked for in all other texts."""
    for found in _LISTS.finditer(text):
        yield from (each[0] for each in _LISTED.finditer(found[1]))
    for found in _WORD.finditer(text):
        if _is_host_at(found):
            yield found[0]


def is_address(text: str) -> bool:
    """Whether this is an IP address, and not a version of Kafka (0.10.2.1)."""
    if text.startswith("0."):
        return False
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _is_host_at(found: re.Match[str]) -> bool:
    """Whether a host is written where the word stands."""
    text, (begin, end) = found.string, found.span()
    beside, behind = text[max(0, begin - 2) : begin], text[end : end + 1]
    if behind not in ("/", ":") and beside[-1:] not in _BESIDE_HOST and beside not in (": ", "= ", "> "):
        return False
    word, behind = found[0], text[end : end + _BESIDE]
    if len(word) > _LONGEST or not _is_host(word):
        return False
    before = text[max(0, begin - _BESIDE) : begin]
    return bool(
        _BEFORE_HOST.search(before)
        or (_NUMBER.match(behind) and _BEFORE_HOST_AND_NUMBER.search(before))
        or _BEHIND_HOST.match(behind)
        or (_PORT.match(behind) and _BEFORE_HOST_AND_PORT.search(before))
        or (_LONG_PORT.match(behind) and _OF_HOSTS_ALONE.search(word))
    )


def _is_host(name: str) -> bool:
    """Whether a word may be a host's name that says anything."""
    return (
        name not in _EVERYWHERE
        and not name.isdecimal()
        and _PSEUDONYM.search(name) is None
        and _OWN_ADDRESS.search(name) is None
        and _FILE.search(name) is None
    )


def _is_own_address(name: str) -> bool:
    return is_address(name) and (ip_address(name).is_loopback or ip_address(name).is_unspecified)


def _group_replaced(found: re.Match[str], replaced: Callable[[str], str]) -> str:
    begin, end = found.span(found.lastindex or 0)
    text, start = found[0], found.start()
    return f"{text[: begin - start]}{replaced(found.string[begin:end])}{text[end - start :]}"
