"""Many folders in one ingest, each attributed by itself: an ingest for each would cost seconds of planning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from ingest.containers import storage
from ingest.files.attribution import Attributed, attribute
from ingest.files.histories import part_histories
from ingest.files.inspected import Inspected
from ingest.lake.delta import Lake
from ingest.run import pipeline


def ingest_apart(lake: Lake, folders: Mapping[Path, str | None]) -> tuple[dict[Path, set[str]], tuple[str, ...]]:
    """Take what is below each folder, as if it were given alone, with the cluster id that is given with it if any.

    The lake has to be empty: nothing of it says whose a file is. Returns the clusters of each folder, and what was
    warned of.
    """
    assert not lake.rows_count(pipeline.INGESTED_FILES)
    options = pipeline.IngestOptions()
    clusters: dict[Path, set[str]] = {}

    def each_by_itself(
        lake: Lake, inspected: Sequence[Inspected], options: pipeline.IngestOptions
    ) -> tuple[list[Attributed], list[str]]:
        owners, warnings = [], []
        for folder, cluster_id in folders.items():
            below = storage.locate(str(folder)) + "/"
            files = [file for file in inspected if file.location.startswith(below)]
            of_folder, said = attribute(files, cluster_id=cluster_id, brokers={}, known_cluster=None)
            parted, of_histories = part_histories(of_folder, {})
            clusters[folder] = {owner.cluster_id for owner in parted}
            owners += parted
            warnings += [*said, *of_histories]
        assert len(owners) == len(inspected)
        return owners, warnings

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pipeline, "_attributed", each_by_itself)
        patched.setattr(pipeline, "part_histories", lambda owners, known: (owners, []))
        report = pipeline.ingest_paths(lake, [str(folder) for folder in folders], options, lambda message: None)
    return clusters, report.warnings
