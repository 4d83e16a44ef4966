"""Apicurio, the registry that ours is compared with: fetched into the cache outside the clone, and started.

``python schemas/tests/_apicurio.py`` fetches it, for ``make test-tools``.
"""

import hashlib
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from platformdirs import user_cache_path

VERSION = "3.0.9"
SHA256 = "2b28181501a20cbf6efcd77f9b7153908fc01f3d3a7c32024c0bd9e1b04c8a43"
SIZE = 108_860_403  # [byte]


def home() -> Path:
    """Return where Apicurio lies once it is fetched."""
    return user_cache_path("nightwire") / "apicurio" / VERSION


def fetch() -> Path:
    """Return Apicurio's folder; fetch and check it where it is not there yet.

    Raises:
        ValueError: What came is not what is pinned here.
    """
    if home().exists():
        return home()
    from jgo.maven import MavenContext

    home().parent.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home().parent.parent) as scratch:
        context = MavenContext(repo_cache=Path(scratch) / "maven", local_repos=[])
        project = context.project("io.apicurio", "apicurio-registry-app").at_version(VERSION)
        archive = Path(project.artifact(classifier="all", packaging="tar.gz").resolve())
        found = hashlib.sha256(archive.read_bytes()).hexdigest()
        if found != SHA256:
            raise ValueError(f"Apicurio {VERSION} has sha256 {found}, {SHA256} is pinned")
        fresh = Path(scratch) / "fresh"
        with tarfile.open(archive) as opened:
            opened.extractall(fresh, filter="data")
        home().parent.mkdir(exist_ok=True)
        fresh.rename(home())
    return home()


@contextmanager
def running(java: str, port: int, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run Apicurio, in memory, on *port*; its output goes to *log*.  It takes some seconds to listen."""
    (runner,) = fetch().glob("*-runner.jar")
    command = [java, "-Xmx256m", f"-Dquarkus.http.port={port}", "-Dquarkus.http.host=127.0.0.1"]
    with log.open("wb") as out:
        child = subprocess.Popen([*command, "-jar", str(runner)], cwd=home(), stdout=out, stderr=out)
    try:
        yield child
    finally:
        child.terminate()
        child.wait(20)


if __name__ == "__main__":
    sys.stdout.write(f"Apicurio {VERSION}: {fetch()}\n")
