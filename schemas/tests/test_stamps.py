"""Stamps: from bytes to pictures, good and bad."""

import gzip
import io
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from astropy.io import fits
from PIL import Image

from nightwire.schemas import Stamp, StampError, stamps
from nightwire.schemas.stamps import encode_png, extension_of, scale


def fits_of(*images: Any) -> bytes:
    units = [fits.PrimaryHDU(images[0]), *map(fits.ImageHDU, images[1:])]
    file = io.BytesIO()
    fits.HDUList(units).writeto(file)
    return file.getvalue()


def picture(png: bytes) -> Any:
    return np.asarray(Image.open(io.BytesIO(png)))


def test_the_first_row_of_fits_is_the_lowest_of_the_picture() -> None:
    image = np.zeros((30, 30), np.float32)
    image[0] = 1000.0
    shown = picture(Stamp("science", fits_of(image)).png())
    assert shown.shape == (270, 270)
    assert shown[-1].min() == 255
    assert shown[0].max() == 0


def test_a_bright_source_is_brighter_than_the_sky_and_nan_is_black() -> None:
    image = np.random.default_rng(1).normal(0, 1, (40, 50))
    image[20, 25], image[0, 0] = 1e6, np.nan
    grey = scale(image)
    assert grey[20, 25] == 255
    assert grey[0, 0] == 0
    assert 20 < np.median(grey) < 235


@pytest.mark.parametrize("value", [0.0, 7.0, -1e30, 3e38])
def test_a_constant_stamp_is_grey(value: float) -> None:
    assert set(scale(np.full((30, 30), value)).ravel()) == {128}


@pytest.mark.parametrize(
    "image",
    [
        np.arange(900, dtype=">i2").reshape(30, 30),
        np.array([[-1.7e308, 1.7e308], [0.0, np.inf]]),
        np.eye(3, dtype=np.uint8),
        np.ones((1, 1)),
    ],
)
def test_any_numbers_make_a_picture_without_a_warning(image: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert picture(encode_png(scale(image))).size


def test_no_finite_pixel_is_an_error_by_name() -> None:
    with pytest.raises(StampError, match="no finite pixel"):
        Stamp("science", fits_of(np.full((5, 5), np.nan))).png()


def test_gzip_is_unpacked_and_arrays_are_arrays() -> None:
    image = np.arange(12, dtype=np.float32).reshape(3, 4)
    stamp = Stamp("science", gzip.compress(fits_of(image)))
    assert np.array_equal(np.asarray(stamp), image)
    assert extension_of(stamp.fits) == "fits"
    assert repr(stamp) == "<Stamp science: 4 × 3 pixels>"
    assert stamp._repr_png_()


def test_a_cube_shows_its_first_plane_and_an_empty_primary_the_first_extension() -> None:
    cube = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    assert np.array_equal(Stamp("a", fits_of(cube)).array, cube[0])
    assert np.array_equal(Stamp("a", fits_of(None, cube[1])).array, cube[1])


def test_a_plain_file_is_read_as_astropy_reads_it() -> None:
    for kind in ("u1", "i2", "u2", "i4", "i8", "f4", "f8"):
        image = np.arange(12).reshape(3, 4).astype(kind)
        file = fits_of(image)
        read = stamps.read_image(file)
        assert np.array_equal(read, image)
        assert read.dtype == stamps._first_image(file).dtype
        assert (stamps._plain_image(file) is None) == (kind == "u2")  # scaled: astropy's
    plain = fits_of(np.ones((3, 4), "f4"))
    for card in (
        "BZERO   =                  5.0",
        "NAXIS1  =                    2",
        "bscale  =                  2.0",
    ):
        other = plain.replace(b"END" + b" " * 77, card.ljust(80).encode() + b"END" + b" " * 77)[: len(plain)]
        assert stamps._plain_image(other) is None


GOOD = fits_of(np.ones((30, 30), np.float32))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "not FITS but bin, 0 bytes"),
        (b"\xff\xd8\xff\xe0JFIF", "not FITS but jpg"),
        (GOOD[:3000], "broken FITS"),
        (GOOD[:100], "broken FITS"),
        (gzip.compress(GOOD, mtime=0)[:-20], "broken gzip"),
        (b"\x1f\x8bnonsense", "broken gzip"),
        (gzip.compress(b"hello", mtime=0), "not FITS but bin"),
        (fits_of(None), "without an image"),
        (GOOD.replace(b"NAXIS1  =                   30", b"NAXIS1  =           3000000030"), "is no stamp"),
        (gzip.compress(bytes(65 << 20), mtime=0), "more than"),
    ],
)
def test_what_is_broken_says_how(raw: bytes, reason: str) -> None:
    stamp = Stamp("science", raw)
    with pytest.raises(StampError, match=reason):
        stamp.png()
    assert "<Stamp science: " in repr(stamp)
    assert stamp._repr_png_() is None


@pytest.mark.data
def test_every_real_stamp_is_shown_or_refused_by_name(data: Path) -> None:
    shown, alike = {}, 0
    for path in sorted((data / "alerts" / "stamps").rglob("*.*")):
        with suppress(StampError):
            if (plain := stamps._plain_image(Stamp(path.stem, path.read_bytes()).fits)) is not None:
                assert np.array_equal(
                    plain, stamps._first_image(Stamp(path.stem, path.read_bytes()).fits), equal_nan=True
                )
                alike += 1
        try:
            shown[path.name] = picture(Stamp(path.stem, path.read_bytes()).png()).shape
        except StampError as error:
            shown[path.name] = str(error)
    assert alike == 12
    refused = {name for name, shape in shown.items() if isinstance(shape, str)}
    assert refused == {"gbpusd.png", "orion.fits", "orion29.fits", "sci.fits.gz"}
    assert shown["ztf_science.fits.gz"] == (252, 252)
    assert all(min(shape) >= 252 for shape in shown.values() if not isinstance(shape, str))
