"""Jars: pinned in a lock, fetched once into a cache outside the clone, checked as they come."""

import hashlib
import shutil
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from platformdirs import user_cache_path


class JarError(Exception):
    """A jar could not be fetched, or is not the one that is pinned."""


@dataclass(frozen=True)
class Jar:
    """One line of a lock."""

    group: str
    artifact: str
    version: str
    size: int
    sha256: str

    @property
    def name(self) -> str:
        """Name of its file."""
        return f"{self.artifact}-{self.version}.jar"


KAFKA: Traversable = files("nightwire.core.stack.kafka") / "jars.lock"
"""Kafka itself."""


def locked_jars(lock: Traversable = KAFKA) -> list[Jar]:
    """Return the jars that *lock* pins: ``group:artifact:version size sha256`` a line."""
    return [_parse(line) for line in lock.read_text().splitlines() if line]


def jar_folder(on_jar: Callable[[Jar], None] = lambda _: None, lock: Traversable = KAFKA) -> Path:
    """Return the folder that holds exactly the pinned jars; fetch them where it is not there yet.

    Args:
        on_jar: Called as each jar has come.
        lock: What pins them.

    Raises:
        JarError: One could not be fetched, or has another checksum than the lock says.
    """
    folder = _folder(lock)
    if not folder.exists():
        _fill(folder, locked_jars(lock), on_jar)
    return folder


def jars_here() -> bool:
    """Whether `jar_folder` has nothing to fetch for Kafka."""
    return _folder(KAFKA).exists()


def _folder(lock: Traversable) -> Path:
    digest = hashlib.sha256("".join(jar.sha256 for jar in locked_jars(lock)).encode()).hexdigest()[:16]
    return user_cache_path("nightwire") / "jars" / digest


def _fill(folder: Path, jars: list[Jar], on_jar: Callable[[Jar], None]) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        fresh = Path(scratch) / "jars"
        fresh.mkdir()
        with ThreadPoolExecutor(8) as pool:
            for jar in pool.map(lambda jar: _fetch(jar, Path(scratch) / "maven", fresh), jars):
                on_jar(jar)
        try:
            fresh.rename(folder)
        except OSError:  # another process was first
            if not folder.exists():
                raise


def _fetch(jar: Jar, cache: Path, folder: Path) -> Jar:
    from jgo.maven import MavenContext

    try:
        context = MavenContext(repo_cache=cache, local_repos=[])
        project = context.project(jar.group, jar.artifact)
        found = Path(project.at_version(jar.version).artifact().resolve())
    except Exception as error:  # jgo lets the errors of many libraries through
        raise JarError(f"{jar.name} could not be fetched: {error}; is the network there?") from error
    _check(jar, found)
    shutil.copyfile(found, folder / jar.name)
    return jar


def _check(jar: Jar, path: Path) -> None:
    content = path.read_bytes()
    if len(content) != jar.size or hashlib.sha256(content).hexdigest() != jar.sha256:
        Path(path).unlink()
        raise JarError(f"{jar.name} is not the pinned one: {len(content)} bytes, {jar.size} expected")


def _parse(line: str) -> Jar:
    coordinates, size, sha256 = line.split()
    group, artifact, version = coordinates.split(":")
    return Jar(group, artifact, version, int(size), sha256)
