"""What must not reach the lake: passwords, keys and tokens in properties and in Kafka's znodes."""

from __future__ import annotations

import json
import re
from typing import Any, Final

HIDDEN: Final = "[hidden]"

_SECRET: Final = re.compile(
    r"password|passwd|secret|sasl\.jaas|keystore|truststore|private\.?key|master\.key|credential|token|api\.?key"
    r"|certificate\.chain|license",
    re.IGNORECASE,
)
#: Names that only sound like a secret: what they hold is needed to judge a cluster, and is none.
_NO_SECRET: Final = re.compile(
    r"\.(?:type|algorithm|location|ms|bytes|class|protocol|enabled?|interval|iterations|length)$", re.IGNORECASE
)
_SECRET_VALUE: Final = re.compile(
    r"\b(?:password|passwd|[a-z]*secret|api[_.]?key|access[_.]?key|sasl\.jaas\.config)\b\s*[=:]", re.IGNORECASE
)
_URI_SECRET: Final = re.compile(r"(//[^/@\s:]*:)[^/@\s]+@")
#: Znodes that hold credentials and nothing that is needed: SCRAM users, and delegation tokens.
_SECRET_ZNODE: Final = re.compile(r"/config/users/|/delegation_token/tokens/")
_CONFIG_ZNODE: Final = "/config/"


def masked_value(key: str, value: str) -> str:
    """A property's value, or :data:`HIDDEN` where it is, or may be, a secret."""
    if (_SECRET.search(key) and not _NO_SECRET.search(key)) or _SECRET_VALUE.search(value):
        return HIDDEN
    return _URI_SECRET.sub(rf"\1{HIDDEN}@", value)


def masked_znode(path: str | None, data: str | None) -> str | None:
    """A znode's data without what is secret; data that holds none is given as it is."""
    if path is None or not data or "/" not in path:
        return data
    if _SECRET_ZNODE.search(path):
        return HIDDEN
    if _CONFIG_ZNODE not in path:
        return data
    try:
        entry = json.loads(data)
        config: dict[str, Any] = entry["config"]
        shown = {key: masked_value(key, value) if isinstance(value, str) else value for key, value in config.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return data
    return data if shown == config else json.dumps(entry | {"config": shown}, separators=(",", ":"))
