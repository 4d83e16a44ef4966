"""What this machine must have, each with the command that mends it."""

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import click
import psutil
from rich.console import Console
from rich.table import Table

from nightwire.core.runtime.disk import GB, LEAST, WANTED, disk_of
from nightwire.core.runtime.java import NoJavaError, java_home, java_version
from nightwire.core.runtime.ports import USUAL, is_free
from nightwire.schemas import engines


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        what: Its name.
        state: ``ok``, ``missing`` (needed) or ``note`` (works without).
        found: What was found.
        mend: The command that mends it; empty when there is nothing to mend.
    """

    what: str
    state: str
    found: str
    mend: str = ""


def python(version: tuple[int, ...] = sys.version_info[:3]) -> Finding:
    """Look at Python: 3.11 or newer."""
    text = ".".join(map(str, version))
    if version >= (3, 11):
        return Finding("Python", "ok", text)
    return Finding("Python", "missing", text, "apt-get install python3.11 python3.11-venv")


def java() -> Finding:
    """Look for a Java that Kafka and Spark run on."""
    try:
        home = java_home()
    except NoJavaError as error:
        return Finding("Java", "missing", str(error), "apt-get install openjdk-17-jre-headless")
    return Finding("Java", "ok", f"{java_version(home / 'bin' / 'java')} in {home}")


def codec() -> Finding:
    """Look for the compiled Avro codec."""
    if "native" in engines():
        return Finding("Avro codec", "ok", "native")
    return Finding("Avro codec", "note", "Python's, some ten times slower", "make native (Rust's cargo)")


def ports(free: Callable[[int], bool] = is_free) -> Finding:
    """Look whether the usual ports are free; the stack takes others where they are not."""
    taken = [f"{port} ({name})" for name, port in USUAL.items() if not free(port)]
    if not taken:
        return Finding("ports", "ok", ", ".join(map(str, USUAL.values())) + " are free")
    found = ", ".join(taken) + " in use: other ports are taken instead"
    return Finding("ports", "note", found, "nightwire down, or ss -ltnp to see who has them")


def disk(folder: Path | None = None, free: int | None = None) -> Finding:
    """Look at the disk: 5 GB for a stack with its test stream; `up` refuses below 1 GB."""
    found = disk_of(folder or Path.cwd())
    found = replace(found, free=found.free if free is None else free)
    if found.free >= WANTED:
        return Finding("disk", "ok", str(found))
    state = "missing" if found.free < LEAST else "note"
    mend = "make room there, or keep the stack on another disk: nightwire up --state DIR"
    return Finding("disk", state, f"{found}; {WANTED / GB:g} GB are wanted", mend)


def memory(available: int | None = None) -> Finding:
    """Look at the memory: 3 GB for Kafka, Spark and the rest."""
    available = psutil.virtual_memory().available if available is None else available
    found = f"{available / GB:.1f} GB available"
    if available >= 3 * GB:
        return Finding("memory", "ok", found)
    return Finding(
        "memory", "missing", found + ", 3 GB are wanted", "close other programs (ps aux --sort -rss | head)"
    )


def file_limit(soft: int | None = None) -> Finding:
    """Look at the limit of open files: Kafka holds some for each partition."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0] if soft is None else soft
    if soft < 0 or soft >= 4096:
        return Finding("file limit", "ok", str(soft))
    return Finding("file limit", "missing", f"{soft}, 4096 are wanted", "ulimit -n 65536")


def prometheus() -> Finding:
    """Look for Prometheus."""
    if shutil.which("prometheus"):
        return Finding("Prometheus", "ok", "installed")
    found = "not installed: `nightwire status --watch` shows the same rates"
    return Finding("Prometheus", "note", found, "apt-get install prometheus")


def docker() -> Finding:
    """Look for a Docker Engine, which only the compose stack needs."""
    try:
        done = subprocess.run(
            ["docker", "info", "-f", "{{.ServerVersion}}"],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
        version = done.stdout.strip() if done.returncode == 0 else ""
    except (OSError, subprocess.TimeoutExpired):
        version = ""
    if version:
        return Finding("Docker", "ok", version)
    return Finding(
        "Docker", "note", "no engine: only the compose stack needs it", "apt-get install docker.io"
    )


CHECKS: tuple[Callable[[], Finding], ...] = (
    python,
    java,
    codec,
    ports,
    disk,
    memory,
    file_limit,
    prometheus,
    docker,
)


def report(as_json: bool) -> int:
    """Print all findings; return 1 when something that is needed is missing."""
    findings = [check() for check in CHECKS]
    if as_json:
        click.echo(json.dumps([vars(finding) for finding in findings], indent=2))
    else:
        table = Table("", "what", "found", "to mend it", box=None, header_style="bold")
        mark = {"ok": "[green]✓[/green]", "note": "[yellow]·[/yellow]", "missing": "[red]✗[/red]"}
        for one in findings:
            table.add_row(mark[one.state], one.what, one.found, one.mend)
        Console(width=None if os.isatty(1) else 160).print(table)
    return 1 if any(one.state == "missing" for one in findings) else 0
