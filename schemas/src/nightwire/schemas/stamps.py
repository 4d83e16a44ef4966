"""Stamps (cutouts): from FITS bytes to arrays, and from arrays to PNG."""

import io
import re
import warnings
import zlib
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_SIDE = 4096
"""Longest side of a stamp. [pixel]  Real ones have 30 to 102; a header may claim anything."""

PICTURE_SIDE = 252
"""Shortest side of a PNG. [pixel]  A stamp of 30 × 30 pixels is too small to look at."""

MAX_SIZE = 64 << 20
"""Longest stamp after unpacking. [byte]  A few bytes of gzip can claim terabytes."""

_CLAIMS = [re.compile(name + rb" *= *\+? *0*[1-9]\d{3}") for name in (b"NAXIS", b"TFIELDS")]
"""Cards, as astropy reads them, that claim more than 999 axes or columns (FITS 4.0, 4.4.1)."""

_PLAIN = re.compile(
    rb"SIMPLE  =(?= {1,20}T[ /]).{71}BITPIX  =(?= {1,20}(-?\d+)[ /]).{71}NAXIS   =(?= {1,20}2[ /]).{71}"
    rb"NAXIS1  =(?= {1,20}(\d+)[ /]).{71}NAXIS2  =(?= {1,20}(\d+)[ /]).{71}"
)
"""The cards with which a file begins that is one picture (FITS 4.0, 4.4.1)."""
_SCALED = (b"BSCALE", b"BZERO", b"BLANK", b"NAXIS")
"""Cards behind them by which the pixels would mean something else."""
_BLOCK, _CARD, _END = 2880, 80, b"END" + 77 * b" "
_PIXELS = {8: "u1", 16: ">i2", 32: ">i4", 64: ">i8", -32: ">f4", -64: ">f8"}

_EXTENSIONS = {b"SIMPLE  =": "fits", b"\xff\xd8\xff": "jpg", b"\x89PNG": "png", b"\x1f\x8b": "gz"}


class StampError(Exception):
    """A stamp cannot be shown; the message says why.  Its bytes are there all the same."""


class Stamp:
    """One picture of an alert.

    ``numpy.asarray(stamp)`` and ``plt.imshow(stamp)`` work; a notebook shows it by itself.

    Args:
        name: What it shows: difference, science, template.
        raw: The bytes in the alert: a FITS file, of some surveys packed with gzip.
    """

    def __init__(self, name: str, raw: bytes) -> None:
        self.name, self.raw = name, raw

    @cached_property
    def fits(self) -> bytes:
        """The FITS file, unpacked.

        Raises:
            StampError: It cannot be unpacked, or is no FITS file.
        """
        unpacked = gunzip(self.raw) if extension_of(self.raw) == "gz" else self.raw
        if (what := extension_of(unpacked)) != "fits":
            raise StampError(f"not FITS but {what}, {len(unpacked)} bytes")
        return unpacked

    @cached_property
    def array(self) -> NDArray[Any]:
        """The image, its first row the lowest one, as FITS has it; shape ``(y, x)``.

        Raises:
            StampError: There is no image in it.
        """
        return read_image(self.fits)

    def png(self) -> bytes:
        """Return the picture for the eye, turned as the survey turned it.

        Raises:
            StampError: There is no image in it.
        """
        return encode_png(scale(self.array))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the image, for NumPy and matplotlib."""
        return np.array(self.array, dtype=dtype, copy=True) if copy else np.asarray(self.array, dtype=dtype)

    def _repr_png_(self) -> bytes | None:
        try:
            return self.png()
        except StampError:
            return None

    def __repr__(self) -> str:
        try:
            height, width = self.array.shape
        except StampError as error:
            return f"<Stamp {self.name}: {error}>"
        return f"<Stamp {self.name}: {width} × {height} pixels>"


FORMS: Mapping[str, tuple[str, Callable[[Stamp], bytes]]] = {
    "fits": ("image/fits", lambda stamp: stamp.fits),
    "png": ("image/png", Stamp.png),
}
"""Forms in which a stamp is given out: media type, and what makes it."""


def stamp_file(stamps: Mapping[str, bytes], wanted: str) -> tuple[str, bytes]:
    """Return the media type and the bytes of one of *stamps*.

    Args:
        stamps: An alert's, by name.
        wanted: Name and form: ``science.fits``, ``difference.png``.

    Raises:
        LookupError: There is no such stamp; says which there are.
        StampError: It is broken.
    """
    name, _, form = wanted.rpartition(".")
    if form not in FORMS:
        raise LookupError(f"{wanted[:99]} is no stamp: NAME.fits or NAME.png")
    if name not in stamps:
        raise LookupError(f"the alert has no stamp {name[:99]}; it has: {', '.join(stamps) or 'none'}")
    media_type, made = FORMS[form]
    return media_type, made(Stamp(name, stamps[name]))


def extension_of(stamp: bytes) -> str:
    """Return the extension of files that begin as *stamp* does; ``bin`` for the unknown."""
    return next((name for magic, name in _EXTENSIONS.items() if stamp.startswith(magic)), "bin")


def gunzip(packed: bytes) -> bytes:
    """Return what *packed* holds.

    Raises:
        StampError: It breaks off, is damaged, or holds more than a stamp can have.
    """
    unpacker = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)  # 16: with gzip's header
    try:
        unpacked = unpacker.decompress(packed, MAX_SIZE)
    except zlib.error as error:
        raise StampError(f"broken gzip: {error}") from error
    if not unpacker.eof:
        raise StampError(f"broken gzip: it breaks off, or holds more than {MAX_SIZE} bytes")
    return unpacked


def read_image(stamp: bytes) -> NDArray[Any]:
    """Return the first image in a FITS file, shape ``(y, x)``; of a cube its first plane.

    Raises:
        StampError: *stamp* is cut off, or holds no image.
    """
    if (plain := _plain_image(stamp)) is not None:
        return plain
    if claims_too_much(stamp):
        raise StampError("its header claims more than 999 axes or columns")
    try:
        return _first_image(stamp)
    except StampError:
        raise
    except Exception as error:  # astropy raises whatever the damage led to
        raise StampError(f"broken FITS: {error}") from error


def claims_too_much(file: bytes) -> bool:
    """Whether a FITS file claims so many axes or columns that astropy would count for minutes."""
    upper = file.upper()
    return any(one.search(upper) for one in _CLAIMS)


def _plain_image(stamp: bytes) -> NDArray[Any] | None:
    """Return the picture in a file that is nothing else, as nearly all stamps are; else None.

    Astropy takes as long for it as all else takes that draws a small stamp.
    """
    found, end = _PLAIN.match(stamp), stamp.find(_END)
    if found is None or end % _CARD or any(one in stamp[found.end() : end].upper() for one in _SCALED):
        return None
    try:
        kind, width, height = map(int, found.groups())
        start = -(-(end + _CARD) // _BLOCK) * _BLOCK
        pixels = np.frombuffer(stamp, _PIXELS[kind], width * height, start)
    except (ValueError, KeyError):  # cut off, or no such pixels: astropy says what it is
        return None
    return pixels.reshape(height, width) if 0 < max(width, height) <= MAX_SIDE else None


def _first_image(stamp: bytes) -> NDArray[Any]:
    from astropy.io import fits

    with warnings.catch_warnings():  # a repaired card is no news to the user
        warnings.simplefilter("ignore")
        with fits.open(io.BytesIO(stamp), memmap=False, lazy_load_hdus=True) as units:
            for unit in units:
                if unit.is_image and len(unit.shape) >= 2 and 0 not in unit.shape:
                    return _plane(unit)
    raise StampError("a FITS file without an image")


def _plane(unit: Any) -> NDArray[Any]:
    if max(unit.shape) > MAX_SIDE or len(unit.shape) > 3:
        raise StampError(f"an image of {' × '.join(map(str, unit.shape[::-1]))} pixels is no stamp")
    image = np.asarray(unit.data)
    while image.ndim > 2:
        image = image[0]
    return image


STRETCHES = ("asinh", "linear", "minmax")
"""How pixels become grey values: between the limits of ZScale by arcsinh, or evenly, or evenly
between the extremes."""


def scale(image: NDArray[Any], stretch: str = "asinh", rounds: int = 5) -> NDArray[np.uint8]:
    """Return *image* as grey values, by one of `STRETCHES`.

    Pixels that are not finite become black, a constant image mid-grey.

    Args:
        image: Shape ``(y, x)``.
        stretch: One of `STRETCHES`.
        rounds: How often ZScale leaves out what is far from its line: three do for small pictures.

    Raises:
        StampError: No pixel is finite, or there is no such stretch.
    """
    from astropy.visualization import AsinhStretch

    if stretch not in STRETCHES:
        raise StampError(f"{stretch[:20]!r} is no stretch; there are {', '.join(STRETCHES)}")

    pixels = np.asarray(image, dtype=np.float64)
    finite = np.isfinite(pixels)
    if not finite.any():
        raise StampError("no finite pixel")
    low, high = _limits(pixels[finite], rounds) if stretch != "minmax" else _extremes(pixels[finite])
    if not high > low:
        return np.where(finite, 128, 0).astype(np.uint8)
    part = np.clip((np.where(finite, pixels, low) / 2 - low / 2) / (high / 2 - low / 2), 0, 1)
    grey = np.rint((AsinhStretch(0.1)(part) if stretch == "asinh" else part) * 255)
    return np.where(finite, grey, 0).astype(np.uint8)


def _limits(values: NDArray[np.float64], rounds: int) -> tuple[float, float]:
    """Return ZScale's limits, the extremes where it finds none (few pixels, or a flat median)."""
    from astropy.visualization import ZScaleInterval

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        low, high = ZScaleInterval(max_iterations=rounds).get_limits(values)
    if not (np.isfinite(low) and np.isfinite(high) and high > low):
        return _extremes(values)
    return float(low), float(high)


def _extremes(values: NDArray[np.float64]) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def encode_png(grey: NDArray[np.uint8]) -> bytes:
    """Return *grey* as PNG, its first row at the bottom.

    A small picture is enlarged by a whole number.
    """
    from PIL import Image

    factor = max(1, -(-PICTURE_SIDE // min(grey.shape)))
    if max(grey.shape) * factor > MAX_SIDE:
        factor = 1
    large = np.flipud(grey).repeat(factor, axis=0).repeat(factor, axis=1)
    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(large)).save(file, "PNG")
    return file.getvalue()
