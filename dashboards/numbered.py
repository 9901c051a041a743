"""Values by number, so that the page's data names each once."""

from __future__ import annotations

from typing import Any


class Numbered:
    """Values by the order in which they are first met."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._index: dict[Any, int] = {}

    def of(self, value: Any, key: Any = None) -> int:
        """The value's number."""
        known = value if key is None else key
        if known not in self._index:
            self._index[known] = len(self.values)
            self.values.append(value)
        return self._index[known]
