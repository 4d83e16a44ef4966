"""A Kafka's storage, formatted as Kafka's own tool does, without a Java for each.

The tool writes two files: ``meta.properties`` with the names of cluster and folder, and
``bootstrap.checkpoint`` with the features of this version of Kafka, which is the same for each
storage.  So the tool runs once for each version, and its checkpoint is kept.
"""

import os
import secrets
import shutil
from base64 import urlsafe_b64encode
from collections.abc import Callable
from pathlib import Path

META = "meta.properties"
CHECKPOINT = "bootstrap.checkpoint"
NODE = 1
"""Number of the one broker."""


def format_storage(folder: Path, kept: Path, by_java: Callable[[str], None]) -> None:
    """Format the storage in *folder*; do nothing where that was done.

    Args:
        folder: Where the broker keeps its data.
        kept: Where the checkpoint of this version of Kafka is kept from the first time on.
        by_java: Runs Kafka's tool, given the name of the cluster.
    """
    if (folder / META).exists():
        return
    if not kept.exists():
        by_java(random_uuid())
        kept.parent.mkdir(parents=True, exist_ok=True)
        _copy(folder / CHECKPOINT, kept)
        return
    folder.mkdir(parents=True, exist_ok=True)
    _copy(kept, folder / CHECKPOINT)
    values = {"version": 1, "cluster.id": random_uuid(), "node.id": NODE, "directory.id": random_uuid()}
    fresh = folder / f"{META}.{os.getpid()}"
    fresh.write_text("".join(f"{name}={value}\n" for name, value in values.items()))
    fresh.replace(folder / META)  # last: where it is, all is


def random_uuid() -> str:
    """Return a UUID as Kafka writes it: 22 characters, of which the first is no ``-``."""
    while (name := urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")).startswith("-"):
        pass
    return name


def _copy(source: Path, target: Path) -> None:
    fresh = target.with_name(f"{target.name}.{os.getpid()}")
    shutil.copyfile(source, fresh)
    fresh.replace(target)
