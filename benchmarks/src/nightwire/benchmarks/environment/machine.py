"""What a result was measured on: the machine, and the versions of everything in it."""

import hashlib
import os
import platform
import re
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

from nightwire.core import __version__

CLONE = Path(__file__).resolve().parents[5]
"""The clone that this runs from, where it runs from one."""


def machine() -> dict[str, Any]:
    """Return cores, CPU model, memory [byte] and kernel."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "cpu": cpu_model(Path("/proc/cpuinfo").read_text()),
        "memory_bytes": psutil.virtual_memory().total,
        "kernel": platform.release(),
        "system": _system(),
    }


def cpu_model(cpuinfo: str) -> str:
    """Return the CPU's name out of ``/proc/cpuinfo``; some virtual machines give none."""
    found = re.search(r"^model name\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    return " ".join(found[1].split()) if found else f"unnamed {platform.machine()}"


def versions(root: Path, *, own_kafka: bool) -> dict[str, Any]:
    """Return the versions of what took part.

    Args:
        root: The clone, for commit and whether it has changes.
        own_kafka: Whether the harness started Kafka, whose version is then known.
    """
    import confluent_kafka

    return {
        "nightwire": __version__,
        "commit": commit(root),
        "dirty": bool(_output_of(["git", "-C", str(root), "status", "--porcelain", "-uno"])),
        "python": platform.python_version(),
        "kafka": _kafka() if own_kafka else "of the cluster",
        "librdkafka": confluent_kafka.libversion()[0],
        "confluent_kafka": _package("confluent-kafka"),
        "fastavro": _package("fastavro"),
        "spark": _package("pyspark"),
        "spark_master": os.environ.get("NIGHTWIRE_SPARK_MASTER"),
        "java": _java(),
    }


def commit(root: Path) -> str:
    """Return the commit that the clone *root* is at."""
    return _output_of(["git", "-C", str(root), "rev-parse", "--short=12", "HEAD"]) or "unknown"


def changes(root: Path) -> str:
    """Return a digest of the changes in the clone *root* since its commit; empty without any."""
    diff = _output_of(["git", "-C", str(root), "diff", "HEAD"])
    return hashlib.sha256(diff.encode()).hexdigest()[:12] if diff else ""


def _system() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.system()


def _package(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"


def _kafka() -> str:
    from nightwire.core.stack import jar_folder

    names = sorted(path.name for path in jar_folder().glob("kafka-clients-*.jar"))
    found = re.search(r"kafka-clients-(.+)\.jar", names[0]) if names else None
    return found[1] if found else "unknown"


def _java() -> str:
    from nightwire.core.runtime import java_home

    java = java_home() / "bin" / "java"
    done = subprocess.run([str(java), "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "([^"]+)"', done.stderr)
    return found[1] if found else "unknown"


def _output_of(command: list[str]) -> str:
    if shutil.which(command[0]) is None:
        return ""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def data_folder() -> Path | None:
    """Return the folder of real data: ``NIGHTWIRE_DATA``, else that beside the clone, or None."""
    beside = CLONE.parent / "shared" / "data"
    found = Path(os.environ.get("NIGHTWIRE_DATA", beside))
    return found if found.is_dir() else None
