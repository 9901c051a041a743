"""The bill of materials, whole: to the Python packages that ``cyclonedx-py`` lists come the jars and what is vendored.

Run by ``make sbom``, in the environment that it makes: the CycloneDX library is no dependency of the project.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from jobs.session.pinned_jars import DELTA_JARS
from tests import ROOT

_VENDORED = ROOT / "checks" / "data_docs_assets" / "README.md"


def jars() -> Iterator[Component]:
    """The jars that the first session fetches, each with the SHA-256 it is compared with."""
    for coordinate, digest in DELTA_JARS.items():
        group, name, version = coordinate.split(":")
        yield Component(
            type=ComponentType.LIBRARY,
            group=group,
            name=name,
            version=version,
            purl=PackageURL("maven", group, name, version),
            bom_ref=f"maven:{coordinate}",
            licenses=[LicenseFactory().make_from_string("Apache-2.0")],
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)],
        )


def vendored() -> Iterator[Component]:
    """The style and script of the Data Docs, as the table beside them says."""
    rows = re.findall(r"^\| `.+` \| (\S+) \| ([\d.]+) \| (.+) \|$", _VENDORED.read_text("utf-8"), re.MULTILINE)
    for package, version, licences in rows:
        scope, _, name = package.rpartition("/")
        yield Component(
            type=ComponentType.LIBRARY,
            group=scope or None,
            name=name,
            version=version,
            purl=PackageURL("npm", scope or None, name, version),
            bom_ref=f"npm:{package}@{version}",
            licenses=[LicenseFactory().make_from_string(licences)],
        )


def main(packages: str, bill: str) -> None:
    bom = Bom.from_json(json.loads(Path(packages).read_text("utf-8")))  # type: ignore[attr-defined]
    for component in (*jars(), *vendored()):
        bom.components.add(component)
        bom.register_dependency(bom.metadata.component, [component])
    JsonV1Dot6(bom).output_to_file(bill, allow_overwrite=True, indent=2)
    print(f"{len(bom.components)} components in {bill}")


if __name__ == "__main__":
    main(*sys.argv[1:])
