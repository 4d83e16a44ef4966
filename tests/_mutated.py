"""Mutated input: what a door is given by whoever wishes it ill, or by a broken line."""

import resource

import numpy as np
import pytest

COUNTS = [100_000, pytest.param(10_000_000, marks=[pytest.mark.proof, pytest.mark.timeout(0)])]
"""How many in each run, and in a proof."""
ROOM = 200
"""How much memory a door may take for all of them. [MB]"""


def mutated(random: np.random.Generator, value: bytes) -> bytes:
    """Return *value* changed in a place or three."""
    changed = bytearray(value)
    for _ in range(random.integers(1, 4)):
        at, much = int(random.integers(len(changed) + 1)), int(random.integers(1, 9))
        match random.integers(3):
            case 0:
                changed[at : at + 1] = bytes([random.integers(256)])
            case 1:
                del changed[at : at + much]
            case _:
                changed[at:at] = random.bytes(much)
    return bytes(changed)


def most_memory() -> float:
    """Return the most memory that this process had at once. [MB]"""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
