"""The plug-ins that come with the gateway; they do what Comet's of the same names do."""

import string
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from lxml import etree

MAX_NAME = 200
"""Longest file name made of an IVORN; file systems take 255."""
_KEPT = frozenset(string.digits + string.ascii_letters + "_.")
_PAD = "_"


class Packet(Protocol):
    """What these plug-ins want to know of an event."""

    @property
    def raw(self) -> bytes:
        """The packet, byte for byte."""

    @property
    def ivorn(self) -> str:
        """Its identifier."""

    @property
    def root(self) -> etree._Element:
        """The parsed VOEvent element."""


class PrintEvent:
    """Print the VOEvent element of each event to standard output."""

    def __call__(self, event: Packet) -> None:
        """Print one."""
        print(etree.tostring(event.root, encoding="unicode", with_tail=False), flush=True)  # noqa: T201


class SaveEvent:
    """Write each event to a file of its own, byte for byte, named after its IVORN.

    Args:
        directory: Where to; made where it is missing.
    """

    def __init__(self, directory: str = ".") -> None:
        self._directory = Path(directory).absolute()

    def __call__(self, event: Packet) -> None:
        """Write one; a file of that name with other contents is kept, one with these suffices."""
        self._directory.mkdir(parents=True, exist_ok=True)
        whole = self._directory / f".{uuid4().hex}.part"
        try:
            whole.write_bytes(event.raw)
            self._name(whole, event)
        finally:
            whole.unlink(missing_ok=True)

    def _name(self, whole: Path, event: Packet) -> None:
        """Give the file *whole* the first free name for *event*."""
        target = self._directory / file_name(event.ivorn)
        while True:
            try:
                target.hardlink_to(whole)
            except FileExistsError:
                if target.is_file() and target.read_bytes() == event.raw:
                    return  # saved before a crash
                target = target.with_name(target.name + _PAD)
            else:
                return


def file_name(ivorn: str) -> str:
    """Return the file name that Comet gives the event *ivorn*: odd characters are replaced or left out."""
    flat = ivorn.removeprefix(".").replace("/", "_").replace("\\", "_")
    return "".join(sign for sign in flat if sign in _KEPT)[:MAX_NAME] or _PAD
