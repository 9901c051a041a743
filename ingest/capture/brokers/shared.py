"""What the threads that ask the brokers of one cluster share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ingest.capture.brokers.answers import View
from ingest.capture.brokers.client import BrokerClient
from ingest.capture.brokers.descriptions import HiddenTopics
from ingest.capture.missed import Missed
from ingest.capture.output import JsonLines
from ingest.capture.params import CaptureError, CaptureParams

NO_PERMISSION: Final = "no permission to DESCRIBE the cluster"


@dataclass(frozen=True)
class Shared:
    """What the probers of one cluster share. ``found`` is called with the view of every answer to Metadata, ``failed``
    with an error that ends the capture."""

    params: CaptureParams
    settings: Mapping[str, Any]
    descriptions: JsonLines
    log_dirs: JsonLines
    reassignments: JsonLines
    missed: Missed
    hidden: HiddenTopics
    found: Callable[[View], None]
    failed: Callable[[CaptureError], None]

    def connect(self, address: tuple[str, int], timeout_s: float) -> BrokerClient:
        """Raises :class:`BrokerUnreachable`."""
        return BrokerClient(*address, self.settings, timeout_s=timeout_s, api_version=self.params.api_version)
