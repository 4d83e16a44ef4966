"""Stamps of strangers: shown where they can be, refused where not, whatever they claim."""

import gzip
import io
from pathlib import Path

import numpy as np
import pytest
from astropy.io import fits
from PIL import Image

from nightwire.portal.pictures import STRETCHES, Target, finder_pdf, orientation, stamp_png, strip
from nightwire.portal.pictures.stamps import INK, bar_length
from nightwire.schemas import Stamp, StampError
from portal.tests.sample import HOSTILE, image_bytes


def packed(image: np.ndarray) -> bytes:  # type: ignore[type-arg]
    file = io.BytesIO()
    fits.PrimaryHDU(image).writeto(file)
    return file.getvalue()


GOOD = image_bytes()
HUGE = GOOD[:80] + f"{'BITPIX  =                  -64':<80}{'NAXIS   =                    2':<80}".encode()
HUGE += f"{'NAXIS1  =              2000000':<80}{'NAXIS2  =              2000000':<80}{'END':<80}".encode()
BROKEN = {
    "empty": b"",
    "text": b"<script>alert(1)</script>",
    "cut": GOOD[:4000],
    "cut gzip": gzip.compress(GOOD)[:900],
    "bomb": gzip.compress(bytes(70 << 20)),
    "huge": HUGE.ljust(2880 * 2),
    "nan": packed(np.full((9, 9), np.nan, np.float32)),
    "four dimensions": packed(np.zeros((2, 2, 9, 9), np.float32)),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_stamp_is_crossed_out_and_refused(what: str) -> None:
    with pytest.raises(StampError):
        stamp_png("science", BROKEN[what])
    sheet = np.asarray(Image.open(io.BytesIO(strip({"science": BROKEN[what], "template": GOOD}))))
    assert sheet.shape == (64, 130)
    assert abs(sheet[:, :60].max().astype(int) - 90) < 40  # JPEG smears
    assert len(np.unique(sheet[:, 66:])) > 20


@pytest.mark.parametrize("stretch", STRETCHES)
def test_each_stretch_makes_another_picture(stretch: str) -> None:
    others = {stamp_png("science", gzip.compress(GOOD), one) for one in STRETCHES if one != stretch}
    assert stamp_png("science", GOOD, stretch) not in others


def test_an_unknown_stretch_is_refused() -> None:
    with pytest.raises(StampError, match="asinh"):
        stamp_png("science", GOOD, HOSTILE)


def test_the_header_says_scale_and_north() -> None:
    found = orientation(Stamp("science", GOOD))
    assert found is not None
    assert found.scale == pytest.approx(0.2, abs=1e-4)
    assert found.north == pytest.approx((0, 1), abs=1e-6)
    assert found.east == pytest.approx((-1, 0), abs=1e-6)
    drawn = np.asarray(Image.open(io.BytesIO(stamp_png("science", GOOD))))
    assert (drawn == INK).all(axis=2).sum() > 100


def test_nothing_is_drawn_where_the_header_is_silent() -> None:
    bare = image_bytes(wcs=False)
    assert orientation(Stamp("science", bare)) is None
    drawn = np.asarray(Image.open(io.BytesIO(stamp_png("science", bare))))
    assert not (drawn == INK).all(axis=2).any()


def test_a_bar_takes_no_more_than_a_third() -> None:
    assert [bar_length(width) for width in (6, 31, 0.5, 4000)] == [2, 10, 1, 600]


def test_a_finder_chart_is_a_page_whatever_the_name() -> None:
    for raw in (GOOD, image_bytes(wcs=False)):
        page = finder_pdf(
            Target(f"$\\frac{{{HOSTILE}", "10:00:00 +05:00:00\n150 5", "g 20.1"), Stamp("science", raw)
        )
        assert page.startswith(b"%PDF")


@pytest.mark.data
def test_real_stamps_are_shown_or_refused(data: Path) -> None:
    shown = 0
    for path in sorted((data / "alerts" / "stamps").rglob("*.*")):
        try:
            shown += stamp_png("science", path.read_bytes()).startswith(b"\x89PNG")
        except StampError:
            assert strip({"science": path.read_bytes()}).startswith(b"\xff\xd8\xff")
    assert shown


def with_cards(*cards: str) -> bytes:
    """Return a good file with more cards in its header."""
    header = GOOD[: GOOD.index(b"END ".ljust(80))] + b"".join(one.ljust(80).encode() for one in cards)
    header += b"END".ljust(80)
    return header + b" " * (-len(header) % 2880) + GOOD[2880:]


LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
HOSTILE_CARDS = {
    "a polynomial of any order": ["A_ORDER =                50000", "B_ORDER =                50000"],
    "the same a thousand times": ["A_ORDER =                    2"] * 20_000,
    "axes by the million": ["WCSAXES =            999999999"],
    "axes that wcslib writes past": [
        f"CTYPE{axis}{other} = 'RA---TAN'" for axis in range(10, 100) for other in LETTERS
    ],
}


@pytest.mark.parametrize("what", HOSTILE_CARDS)
def test_of_a_header_only_what_says_scale_and_north_is_read(what: str) -> None:
    assert orientation(Stamp("science", with_cards(*HOSTILE_CARDS[what]))) is not None


@pytest.mark.parametrize("card", ["NAXIS   =", "naxis= +", "HIERARCH naxis = 0"])
def test_axes_without_number_are_not_counted(card: str) -> None:
    lying = GOOD.replace(b"NAXIS   =                    2", (card + "999999999").ljust(30).encode())
    assert lying != GOOD
    assert orientation(Stamp("science", lying)) is None
    with pytest.raises(StampError, match="more than 999 axes"):
        stamp_png("science", lying)
