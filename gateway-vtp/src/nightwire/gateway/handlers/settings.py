"""The settings of handlers, and how the command line says them."""

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from nightwire.gateway.voevent.roles import ACTED_ON

PRINT_EVENT, SAVE_EVENT = "print-event", "save-event"
"""The plug-ins that come with the gateway, named as Comet names its own."""


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
    """All handlers of a gateway.

    Attributes:
        specs: The handlers.
        roles: They act on events of these.
        jobs: Most runs of one command at once; a plug-in gets one event after the other.
        timeout: Longest time over one event. [s]
        catch_up: After a restart, act on the events that came meanwhile.
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
