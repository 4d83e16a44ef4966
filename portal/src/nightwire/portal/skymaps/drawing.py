"""A skymap drawn in a process of its own, bounded in time and memory."""

import base64
import io
import json
import logging
import os
import resource
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw

from nightwire.core.runtime import clean_environment
from nightwire.portal.model.sky import circle, unproject
from nightwire.portal.skymaps.regions import LEVELS, Regions, SkymapError, regions

log = logging.getLogger("nightwire.portal")

WALL_S, CPU_S = 60.0, 30
"""Time by the clock, and of the CPU. [s]"""
MEMORY = 4 << 30
"""Address space, of which most is never touched. [byte]"""
WIDTH, HEIGHT = 1600, 800
"""Of the picture, that of the ellipse. [pixel]"""
INK = 230, 120, 0
"""Seen on white and on black, and where red alone is left."""
SHADES = 225, 100
"""Opacity within each of `LEVELS`."""
SMALL, RING = 50.0, 3.0
"""Where 90 % lie within less [deg²] there is a ring of that radius [deg]: else nobody saw it."""
COMMAND = (sys.executable, "-c", f"from {__name__} import main; main()")


@dataclass(frozen=True)
class DrawnSkymap:
    """What there is to see of a skymap.

    Attributes:
        png: The regions in the ellipse of `portal.model.sky`, transparent elsewhere.
        areas: Of the regions with 50 % and 90 % of the probability. [deg²]
        peak: Right ascension and declination of the most probable cell. [deg]
    """

    png: bytes
    areas: tuple[float, ...]
    peak: tuple[float, float]

    @property
    def says(self) -> str:
        """How large the regions are."""
        sizes = zip(LEVELS, self.areas, strict=True)
        return ", ".join(f"{level:.0%} within {area:,.{int(area < 10)}f} deg²" for level, area in sizes)

    def as_json(self) -> dict[str, object]:
        """Return it as JSON has it, without the picture."""
        (area50, area90), (ra, dec) = self.areas, self.peak
        return {"area50": area50, "area90": area90, "ra": ra, "dec": dec, "says": self.says}


def drawn(packed: bytes) -> DrawnSkymap:
    """Return the picture of the skymap in *packed*, a FITS file.

    Raises:
        SkymapError: It is none, or takes too much.
    """
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"), "1")
    try:
        done = subprocess.run(
            COMMAND,
            input=packed,
            capture_output=True,
            timeout=WALL_S,
            env=clean_environment(os.environ) | single,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise SkymapError(f"it was not drawn within {WALL_S:g} s") from error
    if done.returncode:
        log.warning("a skymap was not drawn: %s", done.stderr[-2000:].decode(errors="replace"))
        raise SkymapError("it takes too much time or memory")
    answer = json.loads(done.stdout)
    if "refused" in answer:
        raise SkymapError(answer["refused"])
    return DrawnSkymap(base64.b64decode(answer["png"]), tuple(answer["areas"]), tuple(answer["peak"]))


def main() -> None:
    """Draw the file of standard input; print what came out, or why it is refused."""
    for kind, most in (
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_CPU, CPU_S),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (most, most))
    try:
        found = regions(sys.stdin.buffer.read())
        png = base64.b64encode(picture(found)).decode()
        answer = {"png": png, "areas": found.areas, "peak": found.peak}
    except SkymapError as error:
        answer = {"refused": str(error)}
    sys.stdout.write(json.dumps(answer))


def picture(found: Regions) -> bytes:
    """Return *found* as PNG."""
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
