"""The releases of Kafka that the lab runs, and what differs between them for whoever starts and drives one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, order=True)
class Release:
    """One release of Kafka with the ZooKeeper it depends on."""

    number: tuple[int, ...]

    @property
    def version(self) -> str:
        return ".".join(map(str, self.number))

    @property
    def has_listeners(self) -> bool:
        """``listeners`` in place of ``port`` and ``host.name`` (KIP-2, 0.9)."""
        return self.number >= (0, 9)

    @property
    def client_api(self) -> tuple[int, int, int] | None:
        """The protocol version to tell kafka-python; None where the broker answers ApiVersions (KIP-35, 0.10)."""
        return None if self.number >= (0, 10) else (0, 8, 2)

    @property
    def has_log_dirs(self) -> bool:
        """DescribeLogDirs is answered (KIP-113, 1.0)."""
        return self.number >= (1, 0)

    @property
    def floods_fetch_errors(self) -> bool:
        """A follower of a dead leader tries again without waiting (before KAFKA-1461, 0.9): 30,000 lines a second."""
        return self.number < (0, 9)


RELEASES: Final = tuple(Release(number) for number in ((0, 8, 2, 2), (1, 1, 1), (2, 8, 2), (3, 9, 1)))
BY_VERSION: Final = {release.version: release for release in RELEASES}
OLDEST: Final = RELEASES[0]
NEWEST: Final = RELEASES[-1]
