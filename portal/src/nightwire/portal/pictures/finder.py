"""A finder chart as PDF, for those who point a telescope by hand."""

import io
from dataclasses import dataclass
from typing import Any

from nightwire.portal.pictures.orientation import Orientation, orientation
from nightwire.portal.pictures.stamps import bar_length
from nightwire.schemas import Stamp
from nightwire.schemas.stamps import scale


@dataclass(frozen=True)
class Target:
    """The object of a chart.

    Attributes:
        name: Of the object.
        position: Sexagesimal and in degrees, a line each.
        facts: Further lines.
    """

    name: str
    position: str
    facts: str


def finder_pdf(target: Target, stamp: Stamp) -> bytes:
    """Return a page with *stamp* and what to know of *target*; dark stars on white, as is usual.

    Raises:
        StampError: The stamp cannot be shown.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.27, 11.69))  # A4
    axes = figure.add_axes((0.12, 0.3, 0.76, 0.54))
    grey = scale(stamp.array)
    height, width = grey.shape
    axes.imshow(255 - grey, cmap="gray", vmin=0, vmax=255, origin="lower", interpolation="nearest")
    axes.set_xticks([])
    axes.set_yticks([])
    _cross(axes, (width - 1) / 2, (height - 1) / 2, min(width, height))
    if (found := orientation(stamp)) is not None:
        _compass(axes, found, width, height)
    else:
        axes.set_xlabel("the stamp's header does not say its scale and where north is")
    _text(figure, 0.93, target.name, 18, "bold")
    _text(figure, 0.89, target.position, 12)
    _text(figure, 0.24, f"{stamp.name} stamp\n{target.facts}", 11)
    file = io.BytesIO()
    figure.savefig(file, format="pdf", metadata={"Title": None, "CreationDate": None})
    return file.getvalue()


def _text(figure: Any, height: float, text: str, size: float, weight: str = "normal") -> None:
    """Write *text* plainly: no name of a stranger is taken for a formula."""
    figure.text(0.12, height, text, size=size, weight=weight, va="top", parse_math=False)


def _cross(axes: Any, x: float, y: float, side: float) -> None:
    """Draw two lines that point at a position, and leave it free."""
    axes.plot([x + side * 0.05, x + side * 0.15], [y, y], color="tab:red", lw=2)
    axes.plot([x, x], [y + side * 0.05, y + side * 0.15], color="tab:red", lw=2)


def _compass(axes: Any, found: Orientation, width: int, height: int) -> None:
    arcsec = bar_length(width * found.scale)
    left, low = width * 0.05, height * 0.06
    axes.plot([left, left + arcsec / found.scale], [low, low], color="tab:blue", lw=3)
    axes.text(left, low + height * 0.02, f"{arcsec}″", color="tab:blue", size=12)
    x, y, length = width * 0.88, height * 0.84, min(width, height) * 0.09
    for name, (right, up) in (("N", found.north), ("E", found.east)):
        arrow = {"arrowstyle": "<-", "color": "tab:blue", "lw": 2}
        tip = x + right * length, y + up * length
        axes.annotate(
            name, (x, y), tip, arrowprops=arrow, color="tab:blue", size=12, ha="center", va="center"
        )
