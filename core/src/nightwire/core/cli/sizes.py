"""Sizes as people write them: ``20MB``, ``500kB``, ``1.5GiB``."""

import re
from typing import Any

import click

UNITS = {
    "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30,
}  # fmt: skip
"""Length of each unit. [byte]"""

_SIZE = re.compile(rf"(\d+(?:\.\d+)?)\s*({'|'.join(UNITS)})")


def parse_size(text: str) -> int:
    """Return the size that *text* spells. [byte]

    Raises:
        ValueError: It spells none; the message says what to write.
    """
    if (found := _SIZE.fullmatch(text.strip())) is None:
        raise ValueError(f"{text!r} is no size: write a number and {', '.join(UNITS)}, such as 20MB")
    return round(float(found[1]) * UNITS[found[2]])


def spell_size(size: float) -> str:
    """Return *size* [byte] in the largest decimal unit that it has one of: ``20MB``."""
    unit = next((unit for unit in ("GB", "MB", "kB") if size >= UNITS[unit]), "B")
    return f"{size / UNITS[unit]:.4g}{unit}"


class Size(click.ParamType):  # type: ignore[type-arg]  # click 8.1 has no arguments there
    """An option that is a size; its value is in bytes."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return *value* in bytes."""
        if isinstance(value, int):
            return value
        try:
            return parse_size(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
