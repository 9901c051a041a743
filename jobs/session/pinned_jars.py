"""Jars by their coordinates and the SHA-256 of their bytes: fetched once, the same bytes today and next year.

Spark's own Ivy (the jar that pyspark ships) fetches exactly what is listed, with settings of ours into a cache of ours,
so that neither a half-filled ``~/.m2`` nor another program's ``~/.ivy2`` has a say. Later starts need no network.
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
from urllib.parse import urlsplit

from jobs.session.caches import CACHE_VARIABLE, cache_dir

#: ``group:artifact:version`` of each jar and the SHA-256 of its bytes. They belong to ``delta-spark`` of the same
#: version; the artifact's name carries the Spark and Scala versions it was built for.
DELTA_JARS: Final[Mapping[str, str]] = {
    "io.delta:delta-spark_4.1_2.13:4.4.0": "75a9400986853c061f5109f012547de2545a5759e5e752e5ef633dabe16a4f10",
    "io.delta:delta-storage:4.4.0": "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
}
#: What ``spark-submit --packages`` takes.
DELTA_PACKAGES: Final = ",".join(DELTA_JARS)


class JarsMissing(Exception):
    """Jars are neither in the cache nor to be had; the message says what to do."""


def file_name(coordinate: str) -> str:
    """``artifact-version.jar`` of a ``group:artifact:version``."""
    _, artifact, version = coordinate.split(":")
    return f"{artifact}-{version}.jar"


def delta_jars(java: str, cache: Path | None = None) -> tuple[Path, ...]:
    """Delta's jars as :func:`local_jars` gives them."""
    return local_jars(java, DELTA_JARS, (cache or cache_dir()) / "jars", " and ".join(map(file_name, DELTA_JARS)))


def local_jars(java: str, pinned: Mapping[str, str], folder: Path, listed: str) -> tuple[Path, ...]:
    """The jars as files in ``folder``, downloaded at the first call; every byte is compared, at every call.

    ``pinned`` gives the SHA-256 of each ``group:artifact:version``; ``java`` is the Java program that runs Ivy.
    ``listed`` is how an error names all of the jars.

    :raises JarsMissing: where they are neither there nor to be had; the message says what to do.
    """
    wanted = {folder / file_name(coordinate): digest for coordinate, digest in pinned.items()}
    if not all(_is_whole(path, digest) for path, digest in wanted.items()):
        try:
            _download(java, pinned, folder, listed)
        except OSError as error:
            raise JarsMissing(
                f"cannot write jars to {folder} ({error.strerror or error}): set {CACHE_VARIABLE} to a folder that can"
                " be written"
            ) from error
        for path, digest in wanted.items():
            if not _is_whole(path, digest):
                path.unlink(missing_ok=True)
                raise JarsMissing(
                    f"{path.name} as downloaded is not the file that this version was made with: try again"
                )
    return tuple(wanted)


def _is_whole(path: Path, digest: str) -> bool:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() == digest
    except OSError:
        return False


def _download(java: str, pinned: Mapping[str, str], folder: Path, listed: str) -> None:
    """Fetch into a folder beside the cache's and move each jar in whole: two first starts may meet here."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="ivy-") as scratch_name:
        scratch = Path(scratch_name)
        output = _run_ivy(java, pinned, scratch)
        for coordinate in pinned:
            fetched = scratch / "jars" / file_name(coordinate)
            if not fetched.is_file():
                raise JarsMissing(
                    f"cannot download {fetched.name}{_reason(output)}: the first start needs Maven Central; or put"
                    f" {listed} into {folder}"
                )
            os.replace(fetched, folder / fetched.name)


def _run_ivy(java: str, pinned: Mapping[str, str], scratch: Path) -> str:
    import pyspark

    ivy = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"), None)
    if ivy is None:
        raise JarsMissing("pyspark's own Ivy is not installed with it: install pyspark again from its package")
    (scratch / "ivy.xml").write_text(ivy_module(pinned), encoding="utf-8")
    with resources.as_file(resources.files("jobs.session") / "ivysettings.xml") as settings:
        finished = subprocess.run(
            [
                java,
                *proxy_options(os.environ),
                f"-Divy.default.ivy.user.dir={scratch / 'home'}",
                "-cp",
                str(ivy),
                "org.apache.ivy.Main",
                "-settings",
                str(settings),
                "-cache",
                str(scratch / "cache"),
                "-ivy",
                str(scratch / "ivy.xml"),
                "-confs",
                "default",
                "-types",
                "jar",
                "bundle",
                "-retrieve",
                f"{scratch / 'jars'}/[artifact]-[revision].[ext]",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    return finished.stdout


def ivy_module(pinned: Mapping[str, str]) -> str:
    """The module that depends on the jars named and on nothing behind them."""
    dependencies = "".join(
        f'<dependency org="{group}" name="{artifact}" rev="{version}" transitive="false" conf="default-&gt;default"/>'
        for group, artifact, version in (coordinate.split(":") for coordinate in pinned)
    )
    return (
        '<ivy-module version="2.0"><info organisation="kafka-state-replay" module="jars"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{dependencies}</dependencies></ivy-module>"
    )


def proxy_options(environment: Mapping[str, str]) -> list[str]:
    """Java's words for ``HTTPS_PROXY``, which Java itself does not read."""
    proxy = urlsplit(environment.get("HTTPS_PROXY") or environment.get("https_proxy") or "")
    if not proxy.hostname:
        return []
    return [f"-Dhttps.proxyHost={proxy.hostname}", f"-Dhttps.proxyPort={proxy.port or 80}"]


def _reason(ivy_output: str) -> str:
    """`` (REASON)``, or nothing where Ivy gives none."""
    reason = next((line.strip() for line in ivy_output.splitlines() if "Exception" in line or "ERROR" in line), "")
    return f" ({reason[:200]})" if reason else ""
