"""The jars of ZooKeeper and Kafka, of four releases: listed, pinned, fetched once.

The lists in ``jobs/lab/jars`` are whole: nothing is resolved, so that today's run and next year's run the same bytes.
They were made by resolving ``org.apache.kafka:kafka_2.10:0.8.2.2``, ``kafka_2.11:1.1.1``, ``kafka_2.13:2.8.2`` and
``kafka_2.13:3.9.1`` with a binding of slf4j to log4j and, from 2.8, what their ZooKeeper leaves to its user
(``metrics-core``, ``snappy-java``); left out is what 0.8's log4j names and Central does not hold (``jms``,
``jmxtools``, ``jmxri``), and what ZooKeeper 3.4 needs for its tests and its shell.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Final

from jobs.caches import CACHE_VARIABLE, cache_dir
from jobs.delta_jars import JarsMissing, _proxy_options, file_name
from jobs.lab.releases import Release

#: Below the cache: one folder of jars for each release.
FOLDER: Final = "kafka"


def pinned(release: Release) -> dict[str, str]:
    """``group:artifact:version`` of each jar of a release, and the SHA-256 of its bytes."""
    text = (resources.files("jobs.lab") / "jars" / f"{release.version}.txt").read_text(encoding="utf-8")
    return dict(line.split() for line in text.splitlines() if line and not line.startswith("#"))


def kafka_jars(java: str, release: Release, cache: Path | None = None) -> tuple[Path, ...]:
    """The jars of a release as local files, downloaded at the first call.

    ``java`` is the Java program that runs Ivy. Every byte is compared with the list, once for each process.

    :raises JarsMissing: where they are neither in the cache nor to be had; the message says what to do.
    """
    folder = (cache or cache_dir()) / FOLDER / release.version
    wanted = {folder / file_name(coordinate): digest for coordinate, digest in pinned(release).items()}
    if not all(_is_whole(path, digest) for path, digest in wanted.items()):
        _download(java, release, folder)
        for path, digest in wanted.items():
            if not _is_whole(path, digest):
                path.unlink(missing_ok=True)
                raise JarsMissing(f"{path.name} as downloaded is not the file that the lab was made with: try again")
    return tuple(wanted)


def _is_whole(path: Path, digest: str) -> bool:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() == digest
    except OSError:
        return False


def _download(java: str, release: Release, folder: Path) -> None:
    """Resolve into a folder beside the cache's and move each jar in whole: two first starts may meet here."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix="ivy-") as scratch_name:
            scratch = Path(scratch_name)
            said = _run_ivy(java, pinned(release), scratch)
            for coordinate in pinned(release):
                fetched = scratch / "jars" / file_name(coordinate)
                if not fetched.is_file():
                    raise JarsMissing(_no_network(release, fetched.name, folder, said))
                os.replace(fetched, folder / fetched.name)
    except OSError as error:
        raise JarsMissing(
            f"cannot write Kafka's jars to {folder} ({error.strerror or error}): set {CACHE_VARIABLE} to a folder that"
            " can be written"
        ) from error


def _run_ivy(java: str, coordinates: Mapping[str, str], scratch: Path) -> str:
    import pyspark

    ivy = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"), None)
    if ivy is None:
        raise JarsMissing("pyspark's own Ivy is not installed with it: install pyspark again from its package")
    (scratch / "ivy.xml").write_text(ivy_module(coordinates), encoding="utf-8")
    with resources.as_file(resources.files("jobs.lab") / "ivysettings.xml") as settings:
        finished = subprocess.run(
            [
                java, *_proxy_options(os.environ), f"-Divy.default.ivy.user.dir={scratch / 'home'}", "-cp", str(ivy),
                "org.apache.ivy.Main", "-settings", str(settings), "-cache", str(scratch / "cache"),
                "-ivy", str(scratch / "ivy.xml"), "-confs", "default", "-types", "jar", "bundle",
                "-retrieve", f"{scratch / 'jars'}/[artifact]-[revision].[ext]",
            ],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
    return finished.stdout


def ivy_module(coordinates: Mapping[str, str]) -> str:
    """The module that depends on the jars named and nothing behind them."""
    dependencies = "".join(
        f'<dependency org="{group}" name="{artifact}" rev="{version}" transitive="false" conf="default-&gt;default"/>'
        for group, artifact, version in (coordinate.split(":") for coordinate in coordinates)
    )
    return (
        '<ivy-module version="2.0"><info organisation="kafka-state-replay" module="lab"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{dependencies}</dependencies></ivy-module>"
    )


def _no_network(release: Release, missing: str, folder: Path, ivy_output: str) -> str:
    reason = next((line.strip() for line in ivy_output.splitlines() if "Exception" in line or "ERROR" in line), "")
    detail = f" ({reason[:200]})" if reason else ""
    return (
        f"cannot download {missing} of Kafka {release.version}{detail}: the lab's first run needs Maven Central;"
        f" or put the jars that jobs/lab/jars/{release.version}.txt names into {folder}"
    )
