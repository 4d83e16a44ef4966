"""The embedded stack's state: one folder, one JSON file in it, written whole or not at all."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nightwire.core import __version__
from nightwire.core.endpoints import STATE_VERSION, process_started, read_state


class StateError(Exception):
    """The state folder cannot be used; the message says what to do."""


class AlreadyRunningError(Exception):
    """Another supervisor holds this state folder."""


def write_state(folder: Path, state: dict[str, Any]) -> None:
    """Replace the state file, so that a reader sees the old or the new one."""
    fresh = folder / f"state.json.{os.getpid()}"
    fresh.write_text(json.dumps({"version": STATE_VERSION, "nightwire": __version__, **state}, indent=2))
    fresh.replace(folder / "state.json")


@contextmanager
def holding(folder: Path) -> Iterator[dict[str, Any]]:
    """Hold *folder* as its one supervisor; yield the state that the last one left ({} at first).

    Raises:
        AlreadyRunningError: Another one holds it.
        StateError: It was written by a newer nightwire.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise AlreadyRunningError(f"a stack runs in {folder} already") from error
        yield checked(folder)


def checked(folder: Path) -> dict[str, Any]:
    """Return the state in *folder*; {} when there is none.

    Raises:
        StateError: It is of another version.
    """
    state = read_state(folder) or {}
    version = state.get("version", STATE_VERSION)
    if version != STATE_VERSION:
        raise StateError(
            f"{folder} has state of version {version}, this nightwire reads {STATE_VERSION}: "
            f"use the nightwire that wrote it, or remove the folder to begin anew"
        )
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
