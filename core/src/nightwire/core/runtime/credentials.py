"""The embedded stack's keys to its own Kafka: a file that its operator alone can read."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from nightwire.core.runtime.endpoints import read_state, state_dir

FILE = "kafka-client.json"
"""librdkafka's properties by name; in the stack's state folder."""


def stack_keys(bootstrap: str) -> dict[str, str]:
    """Return the properties with which the embedded stack's operator enters the Kafka at *bootstrap*.

    Empty where that Kafka is not the stack's, asks nobody who they are, or the keys are not ours to read.
    """
    folder = state_dir()
    state = read_state(folder) if folder else None
    if folder is None or state is None or state["endpoints"]["kafka"] != bootstrap:
        return {}
    return read_keys(folder) if state.get("auth") == "scram" else {}


def read_keys(folder: Path) -> dict[str, str]:
    """Return the keys in *folder*; none where there are none, or where they are not ours to read."""
    try:
        keys: dict[str, str] = json.loads((folder / FILE).read_text())
    except (FileNotFoundError, PermissionError):
        return {}
    return keys


def write_keys(folder: Path, keys: Mapping[str, str]) -> None:
    """Keep *keys* in *folder*."""
    write_private(folder / FILE, json.dumps(keys, indent=2))


def write_private(path: Path, text: str) -> None:
    """Replace *path* by a file with *text* that nobody but its owner can read."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fresh.touch(mode=0o600)
    fresh.chmod(0o600)  # where one of that name was left over
    fresh.write_text(text)
    fresh.replace(path)
