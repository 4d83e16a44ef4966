"""What ``serve`` takes for options that are not given: alone, and beside a stack's gateway."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

ALONE: Mapping[str, Any] = {
    "authors": "127.0.0.1:8098",
    "subscribers": "127.0.0.1:8099",
    "state": Path(".nightwire/gateway"),
    "ivorn": "ivo://nightwire/gateway",
    "accounts": True,
}
BESIDE: Mapping[str, Any] = {
    "authors": "127.0.0.1:8198",
    "subscribers": "127.0.0.1:8199",
    "state": Path(".nightwire/gateway-beside"),
    "ivorn": "ivo://nightwire/gateway-beside",
    "accounts": False,
}


def with_defaults(options: Mapping[str, Any], *, beside: bool) -> dict[str, Any]:
    """Return *options* with what they leave out, *beside* the gateway of a stack or alone."""
    defaults = BESIDE if beside else ALONE
    return {**options, **{name: value for name, value in defaults.items() if options[name] is None}}


def shown(name: str) -> str:
    """Return what the help says of an option's default."""
    alone, beside = ALONE[name], BESIDE[name]
    return f"  [default: {alone}; beside the running stack's gateway {beside}]"
