"""Plug-ins: handlers in Python, found by their entry points.

A plug-in is a callable, usually a class, that is called once with its options and returns what is called with
each event.  Its distribution announces it in the group ``nightwire.handlers``.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from lxml import etree

from nightwire.gateway import voevent_fields
from nightwire.gateway._builtin_handlers import PrintEvent, SaveEvent
from nightwire.gateway._handlers import PRINT_EVENT, SAVE_EVENT
from nightwire.gateway._voevent import read_packet
from nightwire.gateway._xml import parse_xml

GROUP = "nightwire.handlers"

Act = Callable[["HandledEvent"], object]
"""What a plug-in is called with, for each event; what it raises is a failure, and logged."""


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
        fields: What `voevents` keeps beside the bytes: ``date``, ``event_time``, ``ra``, ``dec``, ``error``
            [deg], ``params`` with name, value, unit, ucd and group, ``citations``.
        topic: The Kafka topic that it lies in.
        partition: Of that topic.
        offset: In that partition.  The three name the event for ever: after a crash it may come again.
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
        PluginError: There is none of that name, it cannot be imported, or it does not have these options.
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
