"""``python -m tests.cluster.lease_in_a_bucket LAKE``: two machines that want the lease of a lake in S3 at once, each
beginning to write it before the other has. Prints of each in turn whether it got it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ingest.lake.delta import Lake
from ingest.lake.lease import Lease
from jobs.session.session import build_session, stop_session

_LEASE = "000000000001.json"


class Between:
    """A file system, or a file that it makes, of which the end of each file waits for something else."""

    def __init__(self, real: Any, first: Callable[[], None]) -> None:
        self._real, self._first = real, first

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def createFile(self, path: Any) -> Between:
        return Between(self._real.createFile(path), self._first)

    def overwrite(self, may: bool) -> Between:
        return Between(self._real.overwrite(may), self._first)

    def opt(self, name: str, value: bool) -> Between:
        return Between(self._real.opt(name, value), self._first)

    def build(self) -> Between:
        return Between(self._real.build(), self._first)

    def close(self) -> None:
        self._first()
        self._real.close()


def main(place: str) -> None:
    spark = build_session("leases", master="local[1]")
    mine, other = (Lease(Lake(spark, place), command) for command in ("mine", "other"))

    def first() -> None:
        print("other", other._write(_LEASE, '"of the other"', anew=False))

    mine._files = Between(mine._files, first)
    print("mine", mine._write(_LEASE, '"mine"', anew=False))
    print("read", mine._read(_LEASE))
    stop_session(spark)


if __name__ == "__main__":
    main(sys.argv[1])
