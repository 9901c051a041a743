"""The Java that Spark will run on: found, or missed with a sentence."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import Final

#: Spark 4.1 runs on Java 17 and 21.
OLDEST_JAVA: Final = 17

_INSTALL: Final = "install Java 17 or 21, e.g. apt-get install openjdk-17-jre-headless"


class JavaMissing(Exception):
    """No Java that Spark runs on; the message names what to install."""


def find_java() -> str:
    """Path of the Java program that Spark will take: ``JAVA_HOME``'s, else the first one on ``PATH``.

    Raises :class:`JavaMissing` where there is none, or one older than 17.
    """
    home = os.environ.get("JAVA_HOME")
    program = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if program is None:
        raise JavaMissing(f"Java is missing: {_INSTALL}")
    known = _major_of_release(program)
    if known is not None and known >= OLDEST_JAVA:
        return program
    try:
        answer = subprocess.run([program, "-version"], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        where = "JAVA_HOME points to no Java" if home else "Java does not start"
        raise JavaMissing(f"{where} ({program}): {_INSTALL}") from error
    major = java_major(answer.stderr + answer.stdout)
    if major is None:
        raise JavaMissing(f"{program} does not tell its version: {_INSTALL}")
    if major < OLDEST_JAVA:
        raise JavaMissing(f"{program} is Java {major}, which Spark 4.1 does not run on: {_INSTALL}")
    return program


def _major_of_release(program: str) -> int | None:
    """What the file ``release`` of a JDK or JRE says, sooner than Java does; None where it has none, or no program."""
    home = os.path.dirname(os.path.dirname(os.path.realpath(program)))
    try:
        with open(os.path.join(home, "release"), encoding="utf-8", errors="replace") as file:
            return java_major(file.read()) if os.access(program, os.X_OK) else None
    except OSError:
        return None


def java_major(text: str) -> int | None:
    """Major version in the output of ``java -version``, or in a file ``release``: 8 for ``1.8.0_392``, 17 for
    ``17.0.9``; None if none is there.

    >>> java_major('openjdk version "17.0.9" 2023-10-17')
    17
    """
    match = re.search(r'(?:version |\bJAVA_VERSION=)"(?:1\.)?(\d+)', text)
    return int(match.group(1)) if match else None
