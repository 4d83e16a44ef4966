"""Picture stamps: FITS files as Rubin sends them, of an image, its variance and the PSF.

astropy writes one file per shape; the eleven header values and the pixels that differ from alert to
alert are put into a copy of its bytes.  That is thirty times as fast as writing each file; a test
reads the stamps back with astropy.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from io import BytesIO
from typing import Any

import numpy as np
import numpy.typing as npt

from nightwire.producer.simulation.chance import F64, hashed, uniform

F32 = npt.NDArray[np.float32]

BLOCK = 2880
"""Size of a FITS block. [byte]"""
PATCHES = 32
"""Parts of the focal plane that share a PSF."""
SCIENCE_PSF = 41
TEMPLATE_PSFS = [39] * 10 + [49] * 17 + [51, 53, 51, 53] + [55]
"""Side of each patch's template PSF, as often as among the real alerts. [pixel]"""
PIXEL_DEG = 0.2 / 3600.0
NUMBERS = ("CUTMINX", "CUTMINY")
REALS = (
    ("ROTPA", "Angle of the detector's rows on the sky [deg]"),
    ("CRPIX1", "Column of the reference point"),
    ("CRPIX2", "Row of the reference point"),
    ("PC1_1", "Transformation matrix"),
    ("PC1_2", "Transformation matrix"),
    ("PC2_1", "Transformation matrix"),
    ("PC2_2", "Transformation matrix"),
    ("CRVAL1", "Right ascension of the reference point [deg]"),
    ("CRVAL2", "Declination of the reference point [deg]"),
)
"""Header values that differ from stamp to stamp, in the order of the cards."""


@dataclass(frozen=True)
class Scene:
    """What a stamp shows.

    Attributes:
        side: Of the image. [pixel]
        x: Column on the detector. [pixel]
        y: Row on the detector. [pixel]
        ra: Right ascension of the source. [deg, ICRS]
        dec: Declination of the source. [deg, ICRS]
        angle: Of the detector on the sky. [deg]
        science: Flux in the visit's image. [nJy]
        template: Flux in the template. [nJy]
        error: Standard error of a point source's flux. [nJy]
        patch: Part of the focal plane, 0 … 31.
        visit: Id of the visit.
    """

    side: int
    x: float
    y: float
    ra: float
    dec: float
    angle: float
    science: float
    template: float
    error: float
    patch: int
    visit: int


def stamps(seed: int, source_id: int, scene: Scene) -> tuple[bytes, bytes, bytes]:
    """Return the FITS files of difference, science and template of *scene*."""
    generator = np.random.Generator(np.random.SFC64(int(hashed(seed, source_id)[0])))
    sigma = _seeing(seed, scene.visit, scene.patch)
    noise = scene.error**2 / (4.0 * np.pi * sigma**2)  # variance of a pixel, from that of a PSF fit
    light = _light(scene, sigma)
    pixels = generator.standard_normal((4, scene.side, scene.side), dtype=np.float32)
    science = _observed(light * np.float32(scene.science), pixels[0], pixels[2], noise)
    template = _observed(light * np.float32(scene.template), pixels[1], pixels[3], noise * 0.03)
    difference = (science[0] - template[0], science[1] + template[1])
    values = _header_values(scene)
    tail = _tail(seed, scene.visit, scene.patch)
    coadd = _template_tail(seed, scene.patch)
    return (
        _file(values, *difference, tail),
        _file(values, *science, tail),
        _file(values, *template, coadd),
    )


def _light(scene: Scene, sigma: float) -> F32:
    """Return how one unit of flux spreads over the pixels; widely for a large stamp."""
    axis = np.arange(scene.side, dtype=np.float32) - np.float32(scene.side / 2)
    width = sigma if scene.side < 40 else scene.side / 12
    along = np.exp(-0.5 * ((axis - scene.x % 1) / width) ** 2)
    across = np.exp(-0.5 * ((axis - scene.y % 1) / width) ** 2)
    return np.asarray(across[:, None] * along / (2.0 * np.pi * width**2), dtype=np.float32)


def _observed(light: F32, noise: F32, ripple: F32, variance: float) -> tuple[F32, F32]:
    """Return an image and its variance: that of the sky, two per cent uneven, and of the light."""
    plane = np.float32(variance) * (1.0 + np.float32(0.02) * ripple) + np.abs(light) * np.float32(0.7)
    image = light + noise * np.sqrt(plane)
    return np.asarray(image, dtype=np.float32), np.asarray(plane, dtype=np.float32)


def _header_values(scene: Scene) -> tuple[Any, ...]:
    cosine, sine = np.cos(np.radians(scene.angle)), np.sin(np.radians(scene.angle))
    half = scene.side / 2
    return (
        int(scene.x - half),
        int(scene.y - half),
        scene.angle,
        half + 1 + scene.x % 1,
        half + 1 + scene.y % 1,
        *(PIXEL_DEG * float(part) for part in (-cosine, sine, sine, cosine)),
        scene.ra,
        scene.dec,
    )


def _file(values: tuple[Any, ...], image: F32, variance: F32, tail: bytes) -> bytes:
    head, middle = _heads(image.shape[0])
    padding = bytes(-image.nbytes % BLOCK)
    pixels, spread = image.astype(">f4").tobytes(), variance.astype(">f4").tobytes()
    return b"".join((head % values, pixels, padding, middle, spread, padding, tail))


@lru_cache(maxsize=256)
def _heads(side: int) -> tuple[bytes, bytes]:
    """Return the headers of image and variance; the first has ``%``-formats for its values."""
    written = _written(side, SCIENCE_PSF)
    step = BLOCK + side * side * 4 + -(side * side * 4) % BLOCK
    head = written[:BLOCK].replace(b"%", b"%%")
    for name in NUMBERS:
        head = _opened(head, name, b"%20d")
    for name, _comment in REALS:
        head = _opened(head, name, b"%20.12E")
    return head, written[step : step + BLOCK]


def _opened(head: bytes, name: str, place: bytes) -> bytes:
    start = head.index(name.ljust(8).encode() + b"= ") + 10
    return head[:start] + place + head[start + 20 :]


def _written(side: int, psf_side: int) -> bytes:
    """Return a stamp of zeros as astropy writes it."""
    from astropy.io import fits

    image = fits.PrimaryHDU(np.zeros((side, side), dtype=np.float32))
    image.header.update(dict.fromkeys(NUMBERS, (0, "Corner of the stamp on the detector [pixel]")))
    image.header["BUNIT"] = "nJy"
    image.header["WCSAXES"] = 2
    image.header.update({name: (0.5, comment) for name, comment in REALS})
    image.header["CDELT1"] = image.header["CDELT2"] = 1.0
    image.header["CUNIT1"] = image.header["CUNIT2"] = "deg"
    image.header["CTYPE1"], image.header["CTYPE2"] = "RA---TAN", "DEC--TAN"
    variance = fits.ImageHDU(np.zeros((side, side), dtype=np.float32), name="UNCERT")
    variance.header["BUNIT"] = "nJy2"
    psf = fits.ImageHDU(np.zeros((psf_side, psf_side)), name="PSFIMAGE")
    target = BytesIO()
    fits.HDUList([image, variance, psf]).writeto(target)
    return target.getvalue()


@lru_cache(maxsize=64)
def _seeing(seed: int, visit: int, patch: int) -> float:
    """Return the PSF's standard deviation. [pixel]"""
    return float((1.6 + 0.9 * uniform(seed, visit, 121) + 0.15 * uniform(seed, visit, patch, 122))[0])


@lru_cache(maxsize=2 * PATCHES)
def _tail(seed: int, visit: int, patch: int) -> bytes:
    """Return the third part of the visit's stamps: a PSF measured in single precision, round."""
    psf = _psf(SCIENCE_PSF, _seeing(seed, visit, patch), seed ^ visit ^ patch, radius=22.0)
    return _psf_part(psf.astype(np.float32).astype(np.float64))


@lru_cache(maxsize=2 * PATCHES)
def _template_tail(seed: int, patch: int) -> bytes:
    """Return the third part of the template's stamps: a PSF co-added in double precision."""
    side = TEMPLATE_PSFS[patch]
    return _psf_part(_psf(side, 1.7, seed ^ patch, radius=23.0))


def _psf(side: int, sigma: float, seed: int, *, radius: float) -> F64:
    """Return a Moffat profile with a little noise, zero beyond *radius* [pixel], of sum one."""
    axis = np.arange(side) - side // 2
    square = axis[:, None] ** 2 + axis**2
    noise = np.random.Generator(np.random.SFC64(seed)).normal(0.0, 0.01, (side, side))
    profile = (1.0 + square / (2.0 * (2.0 * sigma) ** 2)) ** -4 * (1.0 + noise)
    profile[square > radius**2] = 0.0
    return np.asarray(profile / profile.sum())


def _psf_part(psf: F64) -> bytes:
    return _psf_head(psf.shape[0]) + psf.astype(">f8").tobytes() + bytes(-psf.nbytes % BLOCK)


@cache
def _psf_head(side: int) -> bytes:
    start = 2 * (BLOCK + 5760)  # behind image and variance of 30 x 30 pixels, each with its header
    return _written(30, side)[start : start + BLOCK]


def sides(boxes: Sequence[int]) -> list[int]:
    """Return the sides of the stamps of *boxes*: 30, or a little more than the box. [pixel]"""
    return [max(30, box + 6 if box >= 25 else 0) for box in boxes]
