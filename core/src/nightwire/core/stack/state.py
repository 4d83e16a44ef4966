"""The state folder of the embedded stack: its state file, its lock, its logs."""

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from nightwire.core import __version__
from nightwire.core.runtime import lock_folder, refused_version
from nightwire.core.runtime.endpoints import STATE_VERSION, elsewhere, process_started, read_state
from nightwire.schemas import meant


def show_logs(folder: Path, name: str | None, *, lines: int, follow: bool) -> int:
    """Print the last *lines* of logs, and new ones with *follow*; return the exit status."""
    found = sorted(folder.glob(f"{name or '*'}.log"))
    if not found and name is None:
        click.echo(f"no stack has run in {folder.parent}: `nightwire up` starts one{elsewhere()}", err=True)
        return 1
    if not found:
        names = sorted(path.stem for path in folder.glob("*.log"))
        there = f"there are: {', '.join(names) or 'none'}{meant(name or '', names)}"
        click.echo(f"no log called {name} in {folder}; {there}", err=True)
        return 1
    places = {path: _print_tail(path, lines, prefix=len(found) > 1) for path in found}
    try:
        while follow:
            places = {path: _print_from(path, at, prefix=len(found) > 1) for path, at in places.items()}
            sys.stdout.flush()
            time.sleep(0.3)
    except KeyboardInterrupt:
        pass
    return 0


def _print_tail(path: Path, lines: int, *, prefix: bool) -> int:
    text = path.read_text(errors="replace")
    _print(path, text.splitlines()[-lines:] if lines else [], prefix=prefix)
    return path.stat().st_size


def _print_from(path: Path, at: int, *, prefix: bool) -> int:
    size = path.stat().st_size
    with path.open("rb") as log:
        log.seek(at if size >= at else 0)  # a log that was set aside begins anew
        fresh = log.read()
    _print(path, fresh.decode(errors="replace").splitlines(), prefix=prefix)
    return at + len(fresh) if size >= at else len(fresh)


def _print(path: Path, lines: list[str], *, prefix: bool) -> None:
    for line in lines:
        click.echo(f"{path.stem:<15} {line}" if prefix else line)


def write_state(folder: Path, state: dict[str, Any]) -> None:
    """Replace the state file, so that a reader sees the old or the new one."""
    fresh = folder / f"state.json.{os.getpid()}"
    fresh.write_text(json.dumps({"version": STATE_VERSION, "nightwire": __version__, **state}, indent=2))
    fresh.replace(folder / "state.json")


@contextmanager
def holding(folder: Path) -> Iterator[dict[str, Any]]:
    """Hold *folder* as its one supervisor; yield the state that the last one left ({} at first).

    Raises:
        FolderInUseError: Another one holds it.
        StateError: It was written by a newer nightwire.
    """
    with lock_folder(folder, f"a stack runs in {folder} already"):
        yield checked(folder)


def checked(folder: Path) -> dict[str, Any]:
    """Return the state in *folder*; {} when there is none.

    Raises:
        StateError: It is of another version.
    """
    state = read_state(folder) or {}
    version = state.get("version", STATE_VERSION)
    if version != STATE_VERSION:
        raise refused_version(folder, version, STATE_VERSION)
    return state


def supervisor_alive(state: dict[str, Any]) -> bool:
    """Whether the supervisor that wrote *state* still runs."""
    who = state.get("supervisor")
    return who is not None and process_started(int(who["pid"])) == int(who["started"])


def left_over(state: dict[str, Any]) -> list[int]:
    """Return the processes of *state* that outlived their supervisor."""
    return [
        process["pid"]
        for process in state.get("processes", [])
        if process["pid"] and process_started(process["pid"]) == process["started"]
    ]
