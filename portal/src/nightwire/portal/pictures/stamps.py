"""Stamps as pictures: limits, stretch, scale bar, north and east.

Stamps come from strangers: `nightwire.schemas.stamps` bounds what they unpack to and what they may
claim to be.
"""

import io
from collections.abc import Mapping, Sequence
from typing import Any

import astropy.io.fits  # noqa: F401  (here, else the first request waits for it)
import astropy.visualization  # noqa: F401  (as above)
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from nightwire.portal.pictures.orientation import Orientation, orientation
from nightwire.schemas import Stamp, StampError
from nightwire.schemas.stamps import STRETCHES, scale

ORDER = ("science", "template", "difference")
"""Order of stamps beside each other."""
SMALL, GAP = 64, 2
"""Side of a stamp in a row, and the space between two. [px]"""
QUALITY = 75
"""JPEG quality of small stamps: no difference is seen."""
LARGE = 378
"""Side of a stamp on a page. [px]"""
BARS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600)
"""Lengths of a scale bar. [arcsec]"""
INK, EDGE = (255, 205, 40), (0, 0, 0)
"""Colour of what is drawn on a stamp, and of its edge."""


def in_order(names: Sequence[str]) -> list[str]:
    """Return the *names* of stamps in the order in which they are shown."""
    return sorted(names, key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name))


def strip(stamps: Mapping[str, bytes]) -> bytes:
    """Return an alert's stamps beside each other, as JPEG; a broken one is crossed out."""
    names = in_order(list(stamps)) or ["none"]
    sheet = Image.new("L", (len(names) * (SMALL + GAP) - GAP, SMALL), 0)
    for at, name in enumerate(names):
        left = at * (SMALL + GAP)
        try:
            sheet.paste(_grey(Stamp(name, stamps.get(name, b"")), "asinh", SMALL, rounds=3), (left, 0))
        except StampError:
            ImageDraw.Draw(sheet).line((left, 0, left + SMALL, SMALL), 90)
    file = io.BytesIO()
    sheet.save(file, "JPEG", quality=QUALITY)  # half of a PNG, which keeps every grain of noise
    return file.getvalue()


def stamp_png(name: str, raw: bytes, stretch: str = "asinh") -> bytes:
    """Return a stamp as a large PNG, with scale and north where its header knows them.

    Args:
        name: Of the stamp.
        raw: As its survey packed it.
        stretch: One of `STRETCHES`.

    Raises:
        StampError: It cannot be shown.
    """
    stamp = Stamp(name, raw)
    image = _grey(stamp, stretch, LARGE).convert("RGB")
    if (found := orientation(stamp)) is not None:
        _annotate(image, found, LARGE / max(stamp.array.shape))
    return _png(image)


def bar_length(width: float) -> int:
    """Return the longest bar that takes no more than a third of *width*. [arcsec]"""
    return max([one for one in BARS if one <= width / 3] or BARS[:1])


def _grey(stamp: Stamp, stretch: str, side: int, rounds: int = 5) -> Any:
    """Return a stamp as a square grey image, its first row at the bottom."""
    pixels: NDArray[np.uint8] = np.flipud(scale(stamp.array, stretch, rounds))
    height, width = pixels.shape
    factor = side / max(height, width)
    size = max(1, round(width * factor)), max(1, round(height * factor))
    found = Image.fromarray(np.ascontiguousarray(pixels)).resize(size, Image.Resampling.NEAREST)
    square = Image.new("L", (side, side), 0)
    square.paste(found, ((side - size[0]) // 2, (side - size[1]) // 2))
    return square


def _annotate(image: Any, found: Orientation, factor: float) -> None:
    """Draw a bar of scale, and arrows to north and east; *factor* is the size of a pixel [px]."""
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(16)
    arcsec = bar_length(LARGE / factor * found.scale)
    length = arcsec / found.scale * factor
    text: dict[str, Any] = {"fill": INK, "font": font, "stroke_width": 3, "stroke_fill": EDGE}
    lines: list[tuple[float, ...]] = [(12, LARGE - 14, 12 + length, LARGE - 14)]
    draw.text((12, LARGE - 38), f'{arcsec}"' if arcsec < 60 else f"{arcsec // 60}'", **text)
    middle = LARGE - 60, 60
    for name, (x, y) in (("N", found.north), ("E", found.east)):
        tip = middle[0] + 30 * x, middle[1] - 30 * y
        lines.append((*middle, *tip))
        draw.text((tip[0] + 11 * x, tip[1] - 11 * y), name, anchor="mm", **text)
    for width, colour in ((7, EDGE), (3, INK)):
        for line in lines:
            draw.line(line, colour, width)


def _png(image: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, "PNG", compress_level=1)
    return file.getvalue()


__all__ = ["LARGE", "STRETCHES", "bar_length", "in_order", "stamp_png", "strip"]
