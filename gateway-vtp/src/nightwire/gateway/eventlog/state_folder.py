"""The gateway's state folder: one gateway at a time, and of this version.

What is in it can be had again from Kafka, but for the places of handlers; so an older folder is brought up to
date rather than refused.
"""

import fcntl
import logging
from io import TextIOWrapper
from pathlib import Path
from shutil import rmtree

log = logging.getLogger(__name__)

VERSION = 2
_FIRST = ("events.sqlite*", "names.sqlite*", "*.hashes")
"""What version 1, which had no file `version`, kept its indexes in."""


class StateError(Exception):
    """The state folder cannot be used; the message says what to do."""


def claim_state(folder: Path) -> TextIOWrapper:
    """Claim *folder* for this process, and bring it up to date.

    The claim ends with the process, or with the file returned.

    Raises:
        StateError: Another process has it, or a newer nightwire wrote it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = (folder / "lock").open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _bring_up_to_date(folder)
    except BlockingIOError as error:
        file.close()
        raise StateError(f"{folder} is in use by another gateway: give each its own --state") from error
    except StateError:
        file.close()
        raise
    return file


def _bring_up_to_date(folder: Path) -> None:
    found = _version(folder)
    if found > VERSION:
        raise StateError(
            f"{folder} has state of version {found}, this nightwire reads up to {VERSION}: "
            "use the nightwire that wrote it, or another --state"
        )
    for old in [path for pattern in _FIRST for path in folder.glob(pattern)] if found < VERSION else []:
        log.info("%s is of an older version and goes; the index is made anew from the log", old)
        rmtree(old) if old.is_dir() else old.unlink()
    (folder / "version").write_text(f"{VERSION}\n")


def _version(folder: Path) -> int:
    try:
        return int((folder / "version").read_text())
    except FileNotFoundError:
        return 1
    except ValueError as error:
        raise StateError(
            f"{folder / 'version'} is no number: remove {folder}, or give another --state"
        ) from error
