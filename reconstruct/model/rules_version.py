"""The version of the rules: in every silver and gold row, so that judging old logs by better rules is visible."""

from __future__ import annotations

from typing import Final

MODEL_VERSION: Final = "2"
