"""Drawing of a skymap, in a child process bounded in time and memory."""

import base64
import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from nightwire.core.runtime import ApartError, Bounds, ask_apart
from nightwire.portal.model.mollweide import circle, unproject
from nightwire.portal.skymaps.regions import LEVELS, Regions, SkymapError, regions

BOUNDS = Bounds(wall_s=60.0, memory=4 << 30, cpu_s=30)
WIDTH, HEIGHT = 1600, 800
"""Of the picture, that of the ellipse. [pixel]"""
INK = 230, 120, 0
"""Colour of the regions: seen on white, on black, and in the red night mode."""
SHADES = 225, 100
"""Opacity within each of `LEVELS`."""
SMALL, RING = 50.0, 3.0
"""A 90 % region below this area [deg²] gets a ring of this radius [deg], to be seen at all."""


@dataclass(frozen=True)
class DrawnSkymap:
    """A drawn skymap.

    Attributes:
        png: The regions in the ellipse of `portal.model.mollweide`, transparent elsewhere.
        areas: Of the regions with 50 % and 90 % of the probability. [deg²]
        peak: Right ascension and declination of the most probable cell. [deg]
    """

    png: bytes
    areas: tuple[float, ...]
    peak: tuple[float, float]

    @property
    def summary(self) -> str:
        """The sizes of the regions, as a text."""
        sizes = zip(LEVELS, self.areas, strict=True)
        return ", ".join(f"{level:.0%} within {area:,.{int(area < 10)}f} deg²" for level, area in sizes)

    def as_json(self) -> dict[str, object]:
        """Return it as JSON has it, without the picture."""
        (area50, area90), (ra, dec) = self.areas, self.peak
        return {"area50": area50, "area90": area90, "ra": ra, "dec": dec, "says": self.summary}


def draw(packed: bytes) -> DrawnSkymap:
    """Return the skymap in *packed*, a FITS file, drawn in a child process.

    Raises:
        SkymapError: The file is no skymap, or takes too much time or memory.
    """
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"), "1")
    try:
        answer = ask_apart(BOUNDS, draw_as_json, base64.b64encode(packed).decode(), **single)
    except ApartError as error:
        raise SkymapError(str(error)) from error
    if "refused" in answer:
        raise SkymapError(answer["refused"])
    return DrawnSkymap(base64.b64decode(answer["png"]), tuple(answer["areas"]), tuple(answer["peak"]))


def draw_as_json(packed: str) -> dict[str, Any]:
    """Return the drawn skymap of a file (base64) as JSON, or why it is refused; in the child."""
    try:
        found = regions(base64.b64decode(packed))
        png = base64.b64encode(png_of(found)).decode()
    except SkymapError as error:
        return {"refused": str(error)}
    return {"png": png, "areas": found.areas, "peak": found.peak}


def png_of(found: Regions) -> bytes:
    """Return the regions as PNG."""
    from astropy import units

    x, y = np.meshgrid((np.arange(WIDTH) + 0.5) * 4 / WIDTH - 2, 1 - (np.arange(HEIGHT) + 0.5) * 2 / HEIGHT)
    longitude, latitude = unproject(x, y)
    on_sky = np.isfinite(longitude)
    place = longitude[on_sky] * units.deg, latitude[on_sky] * units.deg
    pixels = np.zeros((HEIGHT, WIDTH, 4), np.uint8)
    pixels[..., :3] = INK
    opacity = np.zeros(int(on_sky.sum()), np.uint8)
    for one, shade in zip(found.maps, SHADES, strict=True):
        opacity = np.where((opacity == 0) & one.contains_lonlat(*place), shade, opacity)
    pixels[on_sky, 3] = opacity
    image = Image.fromarray(pixels)
    if found.areas[-1] < SMALL:
        outline = [((x + 2) * WIDTH / 4, (1 - y) * HEIGHT / 2) for x, y in circle(*found.peak, RING)]
        ImageDraw.Draw(image).line([*outline, outline[0]], (*INK, 255), width=5)
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return file.getvalue()
