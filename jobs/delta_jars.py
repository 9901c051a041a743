"""Delta's two jars: named, pinned, fetched once.

Spark's own Ivy (the jar that pyspark ships) resolves them with settings of ours into a cache of ours, so that
neither a half-filled ``~/.m2`` nor another program's ``~/.ivy2`` has a say. Afterwards no start needs a network.
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

from jobs.caches import CACHE_VARIABLE, cache_dir

#: ``group:artifact:version`` of each jar and the SHA-256 of its bytes. They belong to ``delta-spark`` of the same
#: version; the artifact's name carries the Spark and Scala versions it was built for.
DELTA_JARS: Final[Mapping[str, str]] = {
    "io.delta:delta-spark_4.1_2.13:4.4.0": "75a9400986853c061f5109f012547de2545a5759e5e752e5ef633dabe16a4f10",
    "io.delta:delta-storage:4.4.0": "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
}
#: What ``spark-submit --packages`` takes.
DELTA_PACKAGES: Final = ",".join(DELTA_JARS)


class JarsMissing(Exception):
    """Delta's jars are neither in the cache nor to be had; the message says what to do."""


def delta_jars(java: str, cache: Path | None = None) -> tuple[Path, ...]:
    """The jars as local files, downloaded at the first call.

    ``java`` is the Java program that runs Ivy. Raises :class:`JarsMissing`.
    """
    folder = (cache or cache_dir()) / "jars"
    wanted = {folder / file_name(coordinate): digest for coordinate, digest in DELTA_JARS.items()}
    if not all(_is_whole(path, digest) for path, digest in wanted.items()):
        _download(java, folder)
        for path, digest in wanted.items():
            if not _is_whole(path, digest):
                path.unlink(missing_ok=True)
                raise JarsMissing(f"{path.name} as downloaded is not the file this version was made with: try again")
    return tuple(wanted)


def file_name(coordinate: str) -> str:
    """``artifact-version.jar`` of a ``group:artifact:version``."""
    _, artifact, version = coordinate.split(":")
    return f"{artifact}-{version}.jar"


def _is_whole(path: Path, digest: str) -> bool:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() == digest
    except OSError:
        return False


def _download(java: str, folder: Path) -> None:
    """Resolve into a folder beside the cache's and move each jar in whole: two first starts may meet here."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix="ivy-") as scratch_name:
            scratch = Path(scratch_name)
            result = _run_ivy(java, scratch)
            for coordinate in DELTA_JARS:
                fetched = scratch / "jars" / file_name(coordinate)
                if not fetched.is_file():
                    raise JarsMissing(_no_network(folder, result))
                os.replace(fetched, folder / fetched.name)
    except OSError as error:
        raise JarsMissing(
            f"cannot write Delta's jars to {folder} ({error.strerror or error}): set {CACHE_VARIABLE} to a folder that"
            " can be written"
        ) from error


def _run_ivy(java: str, scratch: Path) -> str:
    import pyspark

    ivy = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"), None)
    if ivy is None:
        raise JarsMissing("pyspark's own Ivy is not installed with it: install pyspark again from its package")
    (scratch / "ivy.xml").write_text(_ivy_module(), encoding="utf-8")
    with resources.as_file(resources.files("jobs") / "ivysettings.xml") as settings:
        finished = subprocess.run(
            [
                java, *_proxy_options(os.environ), f"-Divy.default.ivy.user.dir={scratch / 'home'}", "-cp", str(ivy),
                "org.apache.ivy.Main", "-settings", str(settings), "-cache", str(scratch / "cache"),
                "-ivy", str(scratch / "ivy.xml"), "-confs", "default", "-types", "jar",
                "-retrieve", f"{scratch / 'jars'}/[artifact]-[revision].[ext]",
            ],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
    return finished.stdout


def _ivy_module() -> str:
    """The module that depends on the two jars and nothing behind them."""
    dependencies = "".join(
        f'<dependency org="{group}" name="{artifact}" rev="{version}" transitive="false" conf="default-&gt;master"/>'
        for group, artifact, version in (coordinate.split(":") for coordinate in DELTA_JARS)
    )
    return (
        '<ivy-module version="2.0"><info organisation="kafka-state-replay" module="jars"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{dependencies}</dependencies></ivy-module>"
    )


def _proxy_options(environment: Mapping[str, str]) -> list[str]:
    """Java's words for ``HTTPS_PROXY``, which Java itself does not read."""
    proxy = urlsplit(environment.get("HTTPS_PROXY") or environment.get("https_proxy") or "")
    if not proxy.hostname:
        return []
    return [f"-Dhttps.proxyHost={proxy.hostname}", f"-Dhttps.proxyPort={proxy.port or 80}"]


def _no_network(folder: Path, ivy_output: str) -> str:
    reason = next((line.strip() for line in ivy_output.splitlines() if "Exception" in line or "ERROR" in line), "")
    names = " and ".join(file_name(coordinate) for coordinate in DELTA_JARS)
    detail = f" ({reason[:200]})" if reason else ""
    return f"cannot download Delta's jars{detail}: the first start needs Maven Central; or put {names} into {folder}"
