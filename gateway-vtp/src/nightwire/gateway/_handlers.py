"""Handlers, which act on events: what they were told, and up to where each has acted.  Pure."""

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from nightwire.gateway._ring import Event, Positions, Spot
from nightwire.gateway._roles import ACTED_ON

PRINT_EVENT, SAVE_EVENT = "print-event", "save-event"
"""The plug-ins that come with the gateway, named as Comet names its own."""


class Outcome(StrEnum):
    """What became of one event at one handler."""

    DONE = "done"
    FAILED = "failed"
    LATE = "late"
    NOT_STARTED = "not-started"


@dataclass(frozen=True)
class Handled:
    """What became of one event at one handler, and why where that is not *done*."""

    outcome: Outcome
    reason: str = ""


@dataclass(frozen=True)
class HandlerSpec:
    """One handler.

    Attributes:
        name: In metrics, log and the stored position: a plug-in's name, or the command line.
        command: Program and arguments; empty for a plug-in.
        options: A plug-in's own options.
    """

    name: str
    command: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class HandlerSettings:
    """What the gateway was told of handlers.

    Attributes:
        specs: The handlers.
        roles: They act on events of these.
        jobs: Most runs of one command at once; a plug-in gets one event after the other.
        timeout: Longest time over one event. [s]
        catch_up: After a restart, act on what came meanwhile.
    """

    specs: tuple[HandlerSpec, ...] = ()
    roles: tuple[str, ...] = ACTED_ON
    jobs: int = 4
    timeout: float = 60.0
    catch_up: bool = True


def read_handlers(
    commands: Iterable[str], plugins: Iterable[str], options: Sequence[str], installed: Collection[str]
) -> tuple[HandlerSpec, ...]:
    """Return the handlers that the command line says, each once.

    Args:
        commands: Command lines, split as a shell splits them, and run without one.
        plugins: Names of plug-ins.
        options: ``NAME.KEY=VALUE`` each.
        installed: Names of the plug-ins that there are.

    Raises:
        ValueError: One of them makes no sense; the message says which.
    """
    specs = {text: HandlerSpec(text, _split(text)) for text in commands}
    given = _read_options(options)
    for name in plugins:
        if name not in installed:
            raise ValueError(f"--handler {name!r}: no such plug-in; there are {', '.join(sorted(installed))}")
        specs[name] = HandlerSpec(name, options=given.pop(name, {}))
    if given:
        raise ValueError(f"--handler-option {next(iter(given))}.…: no --handler of that name")
    return tuple(specs.values())


class Progress:
    """Up to where one handler has acted, while it acts on several events at once.

    Args:
        positions: The next offset to act on, per topic and partition.
    """

    def __init__(self, positions: Mapping[Spot, int]) -> None:
        self._reached = dict(positions)
        self._running: dict[Spot, set[int]] = {}

    def passed(self, event: Event) -> None:
        """Note that there is nothing to do for *event*."""
        self._reached[event.spot] = max(event.offset + 1, self._reached.get(event.spot, 0))

    def began(self, event: Event) -> None:
        """Note that the handler was given *event*."""
        self._running.setdefault(event.spot, set()).add(event.offset)
        self.passed(event)

    def ended(self, event: Event) -> None:
        """Note that the handler is done with *event*, well or badly."""
        self._running[event.spot].discard(event.offset)

    @property
    def positions(self) -> Positions:
        """Where to go on after a crash: everything before is done, some of what follows may be."""
        return {spot: min(self._running.get(spot) or {end}) for spot, end in self._reached.items()}

    def behind(self, head: Mapping[Spot, int]) -> int:
        """Return how many records lie between what is done and *head*."""
        return sum(max(0, end - self.positions.get(spot, end)) for spot, end in head.items())


def acts_on(event: Event, roles: Collection[str]) -> bool:
    """Say whether a handler for *roles* acts on *event*.

    Whoever acted on an event is told that it is retracted; but no test ever passes for something else.
    """
    told = event.role != "test" and any(one.role in roles for one in event.retracts)
    return event.role in roles or told


def begin_at(
    stored: Mapping[Spot, int] | None, oldest: Mapping[Spot, int], live: Mapping[Spot, int]
) -> Positions:
    """Return where a handler begins.

    Args:
        stored: Where it stopped; None on its first start, which begins with what comes next.
        oldest: The first offset that Kafka still has, per topic and partition.
        live: The one that comes next.
    """
    known = stored or {}
    return {
        spot: max(known[spot], oldest.get(spot, 0)) if known.get(spot, end + 1) <= end else end
        for spot, end in live.items()
    }


def _split(text: str) -> tuple[str, ...]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ValueError(f"--cmd {text!r}: {error}") from error
    if not words:
        raise ValueError("--cmd is empty")
    return tuple(words)


def _read_options(options: Iterable[str]) -> dict[str, dict[str, str]]:
    given: dict[str, dict[str, str]] = {}
    for text in options:
        name_and_key, equals, value = text.partition("=")
        name, dot, key = name_and_key.rpartition(".")
        if not (equals and dot and name and key):
            raise ValueError(f"--handler-option {text!r} is not of the form NAME.KEY=VALUE")
        given.setdefault(name, {})[key.replace("-", "_")] = value
    return given
