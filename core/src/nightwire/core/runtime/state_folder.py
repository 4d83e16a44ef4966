"""State folders: one process at a time, and of a version that this nightwire reads."""

import fcntl
from io import TextIOWrapper
from pathlib import Path

from nightwire.schemas import MendableError


class StateError(MendableError):
    """A state folder cannot be used; the message says what to do."""


class FolderInUseError(StateError):
    """Another process holds the state folder."""


def lock_folder(folder: Path, refusal: str) -> TextIOWrapper:
    """Make *folder* where it is missing, and lock it for this process.

    The lock ends with the process, or when the file returned is closed.

    Args:
        folder: Which one.
        refusal: What the error says where another process holds it.

    Raises:
        FolderInUseError: Another process holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = (folder / "lock").open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.close()
        raise FolderInUseError(refusal) from error
    return file


def refused_version(folder: Path, found: int, version: int) -> StateError:
    """Return the error for state of version *found*, where this nightwire reads *version*."""
    return StateError(
        f"{folder} has state of version {found}, this nightwire reads {version}: "
        "use the nightwire that wrote it, or remove the folder to begin anew"
    )
