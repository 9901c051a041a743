"""Which Java is found, and how it is given Delta's jars."""

from __future__ import annotations

import pytest

from jobs.session import java
from jobs.session.pinned_jars import JarsMissing, delta_jars, proxy_options


@pytest.mark.parametrize(
    ("text", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "11.0.2"', 11),
        ('IMPLEMENTOR="Debian"\nJAVA_RUNTIME_VERSION="17.0.15+6"\nJAVA_VERSION="21.0.2"\n', 21),
        ('JAVA_RUNTIME_VERSION="17.0.15+6"', None),
        ("nothing", None),
    ],
)
def test_java_major(text, major):
    assert java.java_major(text) == major


def fake_java(tmp_path, version: str) -> None:
    program = tmp_path / "jdk" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)


def test_java_missing_names_the_package(monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(java.JavaMissing, match="apt-get install openjdk-17-jre-headless"):
        java.find_java()


def test_java_too_old(monkeypatch, tmp_path):
    fake_java(tmp_path, "11.0.2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    with pytest.raises(java.JavaMissing, match=r"is Java 11, which Spark 4\.1 does not run on: install Java 17 or 21"):
        java.find_java()


def test_java_home_wins_as_it_does_for_spark(monkeypatch, tmp_path):
    fake_java(tmp_path, "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    assert java.find_java() == str(tmp_path / "jdk" / "bin" / "java")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))
    with pytest.raises(java.JavaMissing, match="JAVA_HOME points to no Java"):
        java.find_java()


def test_a_java_whose_release_tells_its_version_is_not_started(monkeypatch, tmp_path):
    home = tmp_path / "jdk"
    monkeypatch.setenv("JAVA_HOME", str(home))
    fake_java(tmp_path, "no version is told")
    (home / "release").write_text('IMPLEMENTOR="Debian"\nJAVA_VERSION="17.0.15"\n')
    assert java.find_java() == str(home / "bin" / "java")
    (home / "bin" / "java").chmod(0o644)
    with pytest.raises(java.JavaMissing, match="JAVA_HOME points to no Java"):
        java.find_java()


@pytest.mark.parametrize("told", ['JAVA_VERSION="11.0.2"', 'JAVA_VERSION=""', 'OS_NAME="Linux"'])
def test_where_release_does_not_tell_that_it_will_do_java_is_asked(monkeypatch, tmp_path, told):
    fake_java(tmp_path, "11.0.2")
    (tmp_path / "jdk" / "release").write_text(told)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    with pytest.raises(java.JavaMissing, match="is Java 11"):
        java.find_java()


def test_a_download_that_fails_says_what_to_do(tmp_path):
    program = tmp_path / "java"
    program.write_text("#!/bin/sh\necho 'Server access error (java.net.ConnectException: refused)'\n")
    program.chmod(0o755)
    with pytest.raises(JarsMissing, match=r"ConnectException.*Maven Central.*delta-storage-4.4.0.jar into"):
        delta_jars(str(program), cache=tmp_path / "cache")
    assert list((tmp_path / "cache").rglob("*")) == [tmp_path / "cache" / "jars"]


def test_the_proxy_of_the_environment_is_handed_to_java():
    assert proxy_options({"HTTPS_PROXY": "http://proxy.example:3128"}) == [
        "-Dhttps.proxyHost=proxy.example",
        "-Dhttps.proxyPort=3128",
    ]
    assert proxy_options({}) == []
