"""The gateway's state folder: one gateway at a time, and of this version.

The indexes in it can be made again from Kafka, but not the positions of handlers; so an older
folder is brought up to date rather than refused.
"""

import logging
from io import TextIOWrapper
from pathlib import Path
from shutil import rmtree

from nightwire.core.runtime import StateError, lock_folder, refused_version

log = logging.getLogger(__name__)

VERSION = 2
_VERSION_1 = ("events.sqlite*", "names.sqlite*", "*.hashes")
"""The indexes of version 1, which had no file `version`."""


def claim_state(folder: Path) -> TextIOWrapper:
    """Claim *folder* for this process, and bring it up to date.

    The claim ends with the process, or when the file returned is closed.

    Raises:
        StateError: Another process has it, or a newer nightwire wrote it.
    """
    claim = lock_folder(folder, f"{folder} is in use by another gateway: give each its own --state")
    try:
        _bring_up_to_date(folder)
    except StateError:
        claim.close()
        raise
    return claim


def _bring_up_to_date(folder: Path) -> None:
    found = _version(folder)
    if found > VERSION:
        raise refused_version(folder, found, VERSION)
    for old in [path for pattern in _VERSION_1 for path in folder.glob(pattern)] if found < VERSION else []:
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
