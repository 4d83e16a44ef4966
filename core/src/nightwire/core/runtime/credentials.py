"""The embedded stack's credentials for its own Kafka: a file that its operator alone can read."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from nightwire.core.runtime.endpoints import read_state, state_dir

FILE = "kafka-client.json"
"""librdkafka's properties by name; in the stack's state folder."""


def stack_credentials(bootstrap: str) -> dict[str, str]:
    """Return the operator's properties for the embedded stack's Kafka, if it is at *bootstrap*.

    Empty for another Kafka, for one without authentication, or where we may not read the file.
    """
    folder = state_dir()
    state = read_state(folder) if folder else None
    if folder is None or state is None or state["endpoints"]["kafka"] != bootstrap:
        return {}
    return read_credentials(folder) if state.get("auth") == "scram" else {}


def read_credentials(folder: Path) -> dict[str, str]:
    """Return the properties in *folder*; empty where there are none, or none that we may read."""
    try:
        credentials: dict[str, str] = json.loads((folder / FILE).read_text())
    except (FileNotFoundError, PermissionError):
        return {}
    return credentials


def write_credentials(folder: Path, credentials: Mapping[str, str]) -> None:
    """Keep *credentials* in *folder*."""
    write_private_file(folder / FILE, json.dumps(credentials, indent=2))


def write_private_file(path: Path, text: str, owner: int | None = None) -> None:
    """Replace *path* by a file with *text* that only its owner can read.

    Args:
        path: The file.
        text: What it holds from now on.
        owner: User id of another owner than us.
    """
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fresh.touch(mode=0o600)
    fresh.chmod(0o600)  # where one of that name was left over
    fresh.write_text(text)
    if owner is not None:
        os.chown(fresh, owner, -1)
    fresh.replace(path)
