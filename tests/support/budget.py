"""How much a run of the tests may cost: a share of everything in ``make test``, all of it in ``make test-hard``."""

from __future__ import annotations

import os
from typing import Final

IS_HARD: Final = os.environ.get("HYPOTHESIS_PROFILE") == "hard"
