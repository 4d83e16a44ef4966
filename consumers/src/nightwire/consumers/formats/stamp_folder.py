"""Stamps as files in a folder: FITS for programs, PNG for people."""

import logging
import re
from pathlib import Path

from nightwire.consumers.alert import ReceivedAlert
from nightwire.schemas import Stamp, StampError, extension_of

log = logging.getLogger("nightwire.consumers")

_UNSAFE = re.compile(r"[^\w.+-]+", re.ASCII)


def file_stem(alert_id: object, name: str) -> str:
    """Return the beginning of a stamp's file names, safe whatever an id holds."""
    return f"{_UNSAFE.sub('_', str(alert_id)).lstrip('.')}_{_UNSAFE.sub('_', name)}"


class StampFolder:
    """Save stamps as ``<alert id>_<name>.fits`` and ``.png``.

    A stamp that is broken is saved as it is, and a warning names it, as it does an alert whose
    stamps cannot be fetched.  A duplicate of an alert
    replaces its files by the same.

    Args:
        folder: Made if it is not there.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.saved = self.broken = 0

    def save(self, alert: ReceivedAlert) -> None:
        """Save the stamps of *alert*."""
        alert_id = alert.summary.id
        if alert_id is None:
            alert_id = "_".join(map(str, alert.position))
        try:
            stamps = alert.stamps
        except StampError as error:
            self.broken += 1
            log.warning("%s", error)
            return
        for name, stamp in stamps.items():
            self._save(file_stem(alert_id, name), stamp)

    def _save(self, stem: str, stamp: Stamp) -> None:
        try:
            self._write(f"{stem}.fits", stamp.fits)
            self._write(f"{stem}.png", stamp.png())
        except StampError as error:
            self.broken += 1
            log.warning("stamp %s: %s", stem, error)
            if (extension := extension_of(stamp.raw)) != "fits":
                self._write(f"{stem}.{extension}", stamp.raw)
        else:
            self.saved += 1

    def _write(self, name: str, content: bytes) -> None:
        (self._folder / name).write_bytes(content)
