"""Wrappers as data: what container runtimes and shippers put around each line of a log.

A wrapper tells, where it can, which process wrote a line: a *stream*. Wrappers may lie around one another, as in
``kubectl logs --prefix --timestamps``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from ingest.readers.logs.json_layouts import Path, first_at, load, value_at

#: Parts a process's name from its channel (standard error), whose lines are apart from those of its other channel.
CHANNEL: Final = b"\0"
_STDERR: Final = CHANNEL + b"stderr"


class Unwrapped(NamedTuple):
    """A line without its wrapper.

    ``more`` says that the line goes on in the stream's next line; ``stream`` is NULL where nothing tells it.
    """

    text: bytes
    more: bool = False
    stream: bytes | None = None


#: Takes a line without its line feed; NULL for a line that does not have the wrapper.
Unwrap = Callable[[bytes], "Unwrapped | None"]


@dataclass(frozen=True)
class Wrapper:
    """What a container runtime or a shipper puts around each line.

    ``cuts_lines`` says that it writes long lines in pieces, ``names_streams`` that it may tell processes apart.
    """

    name: str
    unwrap: Unwrap
    cuts_lines: bool = False
    names_streams: bool = False


def _prefix(pattern: bytes) -> Unwrap:
    """A wrapper before the line; the pattern's groups, joined by blanks, are the stream."""
    compiled = re.compile(pattern)
    named = compiled.groups > 0

    def unwrap(line: bytes) -> Unwrapped | None:
        found = compiled.match(line)
        if found is None:
            return None
        return Unwrapped(line[found.end() :], False, b" ".join(filter(None, found.groups())) if named else None)

    return unwrap


_COLOUR: Final = rb"(?:\x1b\[[\d;]*m)*"
_ZONED: Final = rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)"
_ANSI: Final = re.compile(rb"\x1b\[[\d;]*[mK]")
_KUBERNETES: Final = re.compile(_ZONED + rb" std(out|err) ([FP])(?:[: ][^ ]*)?? ")
_SYSLOG: Final = _prefix(
    rb"(?:<\d{1,3}>)?(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?|" + _ZONED + rb"|\d{10}\.\d{6}"
    rb"|[A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? [A-Z+\-\d]+) ([\w.\-]+) ([^\s:\[\]]+(?:\[\d+\])?): ?"
)
_SYSLOG_5424: Final = _prefix(
    rb"<\d{1,3}>1 (?:-|\d{4}\S+) (\S+) (\S+) (\S+) \S+ (?:-|(?:\[(?:[^\]\"]|\"(?:[^\"\\]|\\.)*\")*\])+)"
    rb" ?(?:\xef\xbb\xbf)?"
)


def _without_colours(line: bytes) -> Unwrapped | None:
    return Unwrapped(_ANSI.sub(b"", line)) if b"\x1b[" in line else None


def _unwrap_kubernetes(line: bytes) -> Unwrapped | None:
    found = _KUBERNETES.match(line)
    if found is None:
        return None
    channel, piece = found.groups()
    return Unwrapped(line[found.end() :], piece == b"P", b"" if channel == b"out" else _STDERR)


def _syslog(unwrap: Unwrap) -> Unwrap:
    """Syslog daemons write a tab as ``#011``: stack traces begin with one."""

    def unescaped(line: bytes) -> Unwrapped | None:
        found = unwrap(line)
        return found._replace(text=found.text.replace(b"#011", b"\t")) if found and b"#011" in found.text else found

    return unescaped


#: Whether the line of an object with these bytes goes on in the next object.
_Continues = Callable[[Mapping[str, Any], bytes], bool]


def _in_json(text_path: Path, streams: Sequence[Path], more: _Continues | None = None) -> Unwrap:
    """A wrapper that holds the line as a text of a JSON object, or as its bytes where these are no UTF-8."""

    def unwrap(line: bytes) -> Unwrapped | None:
        entry = load(line) if line[:1] in (b"{", b"[", b",", b" ") else None
        text = value_at(entry, text_path) if entry is not None else None
        if isinstance(text, list) and all(isinstance(byte, int) and 0 <= byte < 256 for byte in text):
            data = bytes(text)
        elif isinstance(text, str):
            data = text.encode("utf-8", "surrogatepass")
        else:
            return None
        assert entry is not None
        found = (value_at(entry, path) for path in streams)
        name = " ".join(value for value in found if isinstance(value, str) and value).encode("utf-8", "replace")
        channel = _STDERR if "stderr" in (entry.get("stream"), entry.get("source")) else b""
        return Unwrapped(data.rstrip(b"\r\n"), more is not None and more(entry, data), name + channel)

    return unwrap


def _is_piece(entry: Mapping[str, Any], data: bytes) -> bool:
    """Docker ends a whole line with its line feed; what forwards them says it in a field of its own."""
    tag = first_at(entry, (("logtag",), ("_p",), ("partial_message",)))
    if tag is not None:
        return tag in ("P", "true", True)
    return not data.endswith(b"\n") and entry.keys() <= {"log", "stream", "time", "attrs"}


def _is_broken(entry: Mapping[str, Any], data: bytes) -> bool:
    return entry.get("_LINE_BREAK") == "line-max"


_PODS: Final[Sequence[Path]] = (("kubernetes", "pod_name"), ("kubernetes", "container_name"), ("container_name",))
_SHIPPED: Final[Sequence[Path]] = (
    ("logStreamName",),
    ("logStream",),
    ("kubernetes", "pod", "name"),
    ("kubernetes", "pod_name"),
    ("container", "name"),
    ("host", "name"),
    ("host",),
    ("log", "file", "path"),
)

#: Where two wrappers read a file equally well, the earlier one is taken.
WRAPPERS: Final[Sequence[Wrapper]] = (
    Wrapper(
        "compose",
        _prefix(_COLOUR + rb"([A-Za-z0-9][\w.\-]*(?:@[\w.\-]+)?) +\|" + _COLOUR + rb"(?: |$)" + _COLOUR),
        names_streams=True,
    ),
    Wrapper("kubernetes", _unwrap_kubernetes, cuts_lines=True),
    Wrapper("docker_json", _in_json(("log",), _PODS, _is_piece), cuts_lines=True, names_streams=True),
    Wrapper(
        "journald_json",
        _in_json(("MESSAGE",), (("_HOSTNAME",), ("_SYSTEMD_UNIT",), ("_PID",)), _is_broken),
        cuts_lines=True,
        names_streams=True,
    ),
    Wrapper(
        "loki_json",
        _in_json(("line",), (("labels", "pod"), ("labels", "container"), ("labels", "instance"))),
        names_streams=True,
    ),
    Wrapper("message_json", _in_json(("message",), _SHIPPED), names_streams=True),
    Wrapper("google_json", _in_json(("textPayload",), (("resource", "labels", "pod_name"),)), names_streams=True),
    Wrapper("timestamped", _prefix(_ZONED + rb" ")),
    Wrapper("pod", _prefix(rb"\[pod/([^\]]+)\] "), names_streams=True),
    Wrapper("syslog", _syslog(_SYSLOG), names_streams=True),
    Wrapper("syslog_5424", _syslog(_SYSLOG_5424), names_streams=True),
    Wrapper("ansi", _without_colours),
    Wrapper("stern", _prefix(rb"([a-z0-9][a-z0-9.\-]*) ([a-z0-9][a-z0-9\-]*) "), names_streams=True),
)
