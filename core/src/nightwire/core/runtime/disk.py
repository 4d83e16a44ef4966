"""Room on the disk of the embedded stack, whose Kafka stops when there is none."""

import shutil
from dataclasses import dataclass
from pathlib import Path

MB, GB = 10**6, 10**9

WANTED = 5 * GB
"""Free space for a stack with its test stream. [byte]"""
LEAST = 1 * GB
"""Free space below which `nightwire up` refuses, unless it is told another. [byte]"""
FULL = 32 * MB
"""Free space below which Kafka is not started again: it would stop at once. [byte]"""


@dataclass(frozen=True)
class Disk:
    """The disk that a folder lies on.

    Attributes:
        folder: The folder.
        free: Space that we may still use. [byte]
        total: Its size. [byte]
    """

    folder: Path
    free: int
    total: int

    def __str__(self) -> str:
        """Return where it is, and what is free."""
        return f"the disk of {self.folder} has {_size(self.free)} free of {_size(self.total)}"

    @property
    def is_full(self) -> bool:
        """Whether Kafka stops for want of room."""
        return self.free < FULL


def disk_of(folder: Path) -> Disk:
    """Return the disk that *folder*, or the nearest parent that exists, lies on."""
    there = next(path for path in (folder.resolve(), *folder.resolve().parents) if path.exists())
    usage = shutil.disk_usage(there)
    return Disk(folder, usage.free, usage.total)


def full_disk(folder: Path) -> str | None:
    """Return what to say of a full disk under *folder*; None where there is room."""
    disk = disk_of(folder)
    if not disk.is_full:
        return None
    return (
        f"{disk}: it is full. Kafka stops until there are {_size(FULL)}, and then goes on by itself; "
        "what was acknowledged is kept"
    )


def _size(size: int) -> str:
    return f"{size / GB:.1f} GB" if size >= GB else f"{size / MB:.0f} MB"
