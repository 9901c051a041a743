"""How much a piece of Python does: lines that were executed, which no machine's hour changes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def lines_executed(action: Callable[[], object]) -> int:
    """Every round of a loop, a comprehension's included, counts for a line; what is done in C does not."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(before)
    return count
