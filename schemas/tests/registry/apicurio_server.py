"""Apicurio, the registry that ours is compared with: fetched into a cache, and started.

``python -m schemas.tests.registry.apicurio_server`` fetches it, for ``make test-tools``.
"""

import hashlib
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from platformdirs import user_cache_path

from nightwire.core.stack import free_port

VERSION = "3.0.9"
SHA256 = "2b28181501a20cbf6efcd77f9b7153908fc01f3d3a7c32024c0bd9e1b04c8a43"
START_TIMEOUT = 200.0
"""Longest wait for an answer, on a busy machine; 5 s suffice on an idle one. [s]"""


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
def running(java: str, log: Path) -> Iterator[str]:
    """Run Apicurio, in memory, its output in *log*; yield the address of its Confluent interface.

    Raises:
        RuntimeError: It ended, or did not answer in time.
    """
    (runner,) = fetch().glob("*-runner.jar")
    port = free_port()
    command = [java, "-Xmx256m", f"-Dquarkus.http.port={port}", "-Dquarkus.http.host=127.0.0.1"]
    with log.open("wb") as out:
        child = subprocess.Popen([*command, "-jar", str(runner)], cwd=home(), stdout=out, stderr=out)
    try:
        url = f"http://127.0.0.1:{port}/apis/ccompat/v7"
        _await(url, child, log)
        yield url
    finally:
        child.terminate()
        child.wait(60)


def _await(url: str, child: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT
    while True:
        try:
            if httpx.get(f"{url}/subjects").status_code == httpx.codes.OK:
                return
        except httpx.TransportError:
            pass
        if child.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"Apicurio does not answer: {log.read_text()[-2000:]}")
        time.sleep(0.1)  # polling a port, not hoping


if __name__ == "__main__":
    sys.stdout.write(f"Apicurio {VERSION}: {fetch()}\n")
