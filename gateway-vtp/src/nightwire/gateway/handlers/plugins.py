"""Plug-ins: handlers in Python, found by their entry points, and those that come with the gateway.

A plug-in is a callable, usually a class, that is called once with its options and returns what is
called with each event.  Its distribution announces it in the group ``nightwire.handlers``.
"""

import inspect
import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from lxml import etree

from nightwire.gateway.handlers.settings import PRINT_EVENT, SAVE_EVENT
from nightwire.gateway.voevent.packet import read_packet, voevent_fields
from nightwire.gateway.voevent.xml import parse_xml

GROUP = "nightwire.handlers"

Act = Callable[["HandledEvent"], object]
"""What a plug-in is called with, for each event; what it raises is a failure, and logged."""

MAX_NAME = 200
"""Longest file name made of an IVORN; file systems take 255."""
_KEPT = frozenset(string.digits + string.ascii_letters + "_.")
_PAD = "_"


class PluginError(Exception):
    """A plug-in cannot be used; the message says why."""


@dataclass(frozen=True)
class HandledEvent:
    """An event as a plug-in gets it.

    Attributes:
        raw: The packet, byte for byte.
        ivorn: Its identifier.
        role: observation, prediction, utility or test.
        version: Of the VOEvent standard.
        root: The parsed VOEvent element.
        fields: What `voevents` keeps beside the bytes: ``date``, ``event_time``, ``ra``, ``dec``,
            ``error`` [deg], ``params`` with name, value, unit, ucd and group, ``citations``.
        topic: The Kafka topic that it lies in.
        partition: Of that topic.
        offset: In that partition.  The three name the event for ever: after a crash it may come
            again.
    """

    raw: bytes
    ivorn: str
    role: str
    version: str
    root: etree._Element
    fields: Mapping[str, Any]
    topic: str
    partition: int
    offset: int


def read_event(raw: bytes, topic: str, partition: int, offset: int) -> HandledEvent:
    """Return the event in *raw*, parsed.

    Raises:
        XMLRefusedError: It is no VOEvent.
    """
    root = parse_xml(raw)
    packet = read_packet(raw, root)
    fields = voevent_fields(packet)
    return HandledEvent(
        raw, packet.ivorn, packet.role, packet.version, root, fields, topic, partition, offset
    )


def installed_plugins() -> list[str]:
    """Return the names of the plug-ins that there are; none is imported."""
    return sorted({PRINT_EVENT, SAVE_EVENT, *entry_points(group=GROUP).names})


def load_plugin(name: str, options: Mapping[str, str]) -> Act:
    """Import the plug-in *name* and return it, made with *options*.

    Raises:
        PluginError: There is none of that name, it cannot be imported, or it does not have these
            options.
    """
    make = _find(name)
    known = [one.name for one in inspect.signature(make).parameters.values()]
    if unknown := [option for option in options if option not in known]:
        has = f"it has {', '.join(known)}" if known else "it has none"
        raise PluginError(f"plug-in {name} has no option {unknown[0]!r}; {has}")
    try:
        act: Act = make(**options)
    except Exception as error:
        raise PluginError(f"plug-in {name} does not take its options: {error}") from error
    return act


def _find(name: str) -> Callable[..., Act]:
    if name in (PRINT_EVENT, SAVE_EVENT):
        return PrintEvent if name == PRINT_EVENT else SaveEvent
    found: list[EntryPoint] = list(entry_points(group=GROUP, name=name))
    if not found:
        raise PluginError(f"there is no plug-in {name}")
    try:
        make: Callable[..., Act] = found[0].load()
    except Exception as error:
        raise PluginError(f"plug-in {name} cannot be imported: {type(error).__name__}: {error}") from error
    return make


class HandledPacket(Protocol):
    """The part of an event that the built-in plug-ins use."""

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

    def __call__(self, event: HandledPacket) -> None:
        """Print one."""
        print(etree.tostring(event.root, encoding="unicode", with_tail=False), flush=True)  # noqa: T201


class SaveEvent:
    """Write each event to a file of its own, byte for byte, named after its IVORN.

    Args:
        directory: Where to; made where it is missing.
    """

    def __init__(self, directory: str = ".") -> None:
        self._directory = Path(directory).absolute()

    def __call__(self, event: HandledPacket) -> None:
        """Write one; a file of that name with other contents is kept, one with these suffices."""
        self._directory.mkdir(parents=True, exist_ok=True)
        whole = self._directory / f".{uuid4().hex}.part"
        try:
            whole.write_bytes(event.raw)
            self._name(whole, event)
        finally:
            whole.unlink(missing_ok=True)

    def _name(self, whole: Path, event: HandledPacket) -> None:
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
    """Return the file name that Comet gives *ivorn*: odd characters are replaced or left out."""
    flat = ivorn.removeprefix(".").replace("/", "_").replace("\\", "_")
    return "".join(sign for sign in flat if sign in _KEPT)[:MAX_NAME] or _PAD
