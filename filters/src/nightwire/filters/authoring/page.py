"""A report as self-contained HTML: counts, light curves as SVG, stamps as PNG."""

import base64
import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html import escape
from typing import Any

import numpy as np

from nightwire.filters.authoring.report import JudgedAlert, Report
from nightwire.schemas import AlertView, Stamp, StampError

MAX_ALERTS = 10
"""Passed alerts of which a page shows light curves and stamps."""

MAX_MISSED = 5
"""Alerts that just missed, of which it does."""

STAMPS = ("science", "template", "difference")
"""The order of stamps: what was seen, what was there before, what is new."""

PICTURES = (
    "Light curves: difference flux with its standard error, in colours of the bands; the ring is the alert. "
    "Stamps: as the survey turned them, each between ZScale's limits, in an arcsinh stretch."
)
"""What the pictures show."""

STYLE = (
    ".nightwire td,.nightwire th{text-align:left;padding:2px 12px 2px 0;vertical-align:top}"
    ".nightwire figure{display:inline-block;margin:0 4px 0 0;text-align:center;font-size:11px}"
    ".nightwire img{width:126px;height:126px;image-rendering:pixelated;display:block}"
)


def html_fragment(report: Report) -> str:
    """Return *report* as a piece of HTML, with the first ten alerts that passed."""
    head = next(report.lines())
    passed = [one for one in report.judged if one.passed]
    return "\n".join([
        f"<div class='nightwire'><style>{STYLE}</style><p><b>{escape(head)}</b></p>",
        "".join(f"<p>{escape(remark)}</p>" for remark in report.remarks),
        _table(("alerts", "what stopped them"), ((f"{n:,}", why) for why, n in report.stages.most_common())),
        f"<p>{PICTURES}</p>" if passed else "",
        *(_alert(one) for one in passed[:MAX_ALERTS]),
        f"<p>and {len(passed) - MAX_ALERTS} more that passed</p>" if len(passed) > MAX_ALERTS else "",
        *(_alert(one) for one in report.just_missed[:MAX_MISSED]),
        _table(("alert", "verdict"), ((str(one.alert.id), one.why) for one in report.judged), folded=True),
        "</div>",
    ])  # fmt: skip


def html_document(report: Report) -> str:
    """Return *report* as a whole HTML document."""
    return f"<!doctype html><meta charset='utf-8'><title>{escape(report.name)}</title>{html_fragment(report)}"


def _alert(one: JudgedAlert) -> str:
    alert = one.alert
    title = [f"alert {alert.id}", one.why]
    if alert.magnitude is not None:
        title.insert(1, f"{alert.band or '?'} = {alert.magnitude:.2f} mag")
    if alert.mjd_tai is not None:
        title.insert(1, date(alert.mjd_tai))
    known = alert.stamps
    order = [*(name for name in STAMPS if name in known), *(name for name in known if name not in STAMPS)]
    stamps = "".join(stamp_img(name, known[name]) for name in order)
    return f"<h4>{escape(', '.join(title))}</h4><div>{light_curve_svg(alert)} {stamps}</div>"


def _table(heads: tuple[str, ...], rows: Iterator[tuple[str, ...]], *, folded: bool = False) -> str:
    def row(cells: tuple[str, ...], kind: str) -> str:
        return f"<tr>{''.join(f'<{kind}>{escape(cell)}</{kind}>' for cell in cells)}</tr>"

    table = f"<table>{row(heads, 'th')}{''.join(row(cells, 'td') for cells in rows)}</table>"
    return f"<details><summary>every alert</summary>{table}</details>" if folded else table


WIDTH, HEIGHT = 480, 200
"""Size of a light curve with its axes. [pixel]"""

LEFT, RIGHT, TOP, BOTTOM = 70, 12, 20, 36
"""Margins, in which axes and legend stand. [pixel]"""

GAP = 10
"""Least distance of a point from an axis. [pixel]"""

TICKS = 5
"""Ticks of an axis, about."""

COLOURS = {"u": "#56b4e9", "g": "#009e73", "r": "#d55e00", "i": "#cc79a7", "z": "#8c510a", "y": "#555555"}
"""Colours of the bands, distinguishable to the colour-blind (Okabe & Ito 2008)."""


def light_curve_svg(alert: AlertView) -> str:
    """Return the light curve as SVG: difference flux [nJy] over the time since the alert [d].

    A ring marks the alert's own point.
    """
    curve = alert.light_curve()
    good = np.isfinite(curve["mjd_tai"]) & np.isfinite(curve["flux"])
    if not good.any():
        return "<span>no light curve</span>"
    times, fluxes, bands = (curve[name][good] for name in ("mjd_tai", "flux", "band"))
    errors = np.nan_to_num(curve["flux_error"][good])
    zero = float(times[-1]) if alert.mjd_tai is None else alert.mjd_tai
    x = Axis(times - zero, LEFT + GAP, WIDTH - RIGHT - GAP)
    y = Axis(np.concatenate([fluxes - errors, fluxes + errors]), HEIGHT - BOTTOM - GAP, TOP + GAP)
    places = (x.at(times - zero), y.at(fluxes), y.at(fluxes - errors), y.at(fluxes + errors))
    marks = [_mark(*one) for one in zip(*places, bands, times == zero, strict=True)]
    size = f"width='{WIDTH}' height='{HEIGHT}' viewBox='0 0 {WIDTH} {HEIGHT}' font-size='10'"
    parts = [*_axes(x, y, f"days since {date(zero)}"), *_legend(bands), *marks]
    return f"<svg {size} font-family='sans-serif'>{''.join(parts)}</svg>"


def date(mjd_tai: float) -> str:
    """Return a time as date, hour and minute on TAI, and as modified Julian date."""
    found = datetime(1858, 11, 17, tzinfo=UTC) + timedelta(days=mjd_tai)
    return f"{found:%Y-%m-%d %H:%M} TAI (MJD {mjd_tai:.3f})"


class Axis:
    """An axis from the smallest to the largest of some values.

    Args:
        values: Those that have to find room.
        first: Where the smallest lies; and
        last: the largest. [pixel]
    """

    def __init__(self, values: np.ndarray[Any, Any], first: float, last: float) -> None:
        low, high = float(values.min()), float(values.max())
        half = max(1.0, 1e-6 * abs(low)) if high <= low else 0.0
        self._low, self._high = low - half, high + half
        self._first, self._last = first, last

    def at(self, values: "np.ndarray[Any, Any] | float") -> Any:
        """Return where *values* lie. [pixel]"""
        part = (values - self._low) / (self._high - self._low)
        return self._first + part * (self._last - self._first)

    def ticks(self) -> list[tuple[float, str]]:
        """Return round values on it, each with its text."""
        rough = (self._high - self._low) / TICKS
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * one for one in (1, 2, 5, 10) if power * one >= rough)
        numbers = range(math.ceil(self._low / step), math.floor(self._high / step) + 1)
        return [(step * one, f"{step * one:.6g}") for one in numbers]


def _axes(x: Axis, y: Axis, days: str) -> Iterator[str]:
    """Yield the frame, the ticks with their numbers, and what the axes are."""
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    size = f"width='{right - LEFT}' height='{bottom - TOP}'"
    yield f"<rect x='{LEFT}' y='{TOP}' {size} fill='none' stroke='#999'/>"
    for value, text in x.ticks():
        at = f"{x.at(value):.1f}"
        yield f"<line x1='{at}' x2='{at}' y1='{bottom}' y2='{bottom + 4}' stroke='#999'/>"
        yield f"<text x='{at}' y='{bottom + 15}' text-anchor='middle'>{text}</text>"
    for value, text in y.ticks():
        at, dash = f"{y.at(value):.1f}", "" if value else " stroke-dasharray='3'"
        end = LEFT if value else right
        yield f"<line x1='{LEFT - 4}' x2='{end}' y1='{at}' y2='{at}' stroke='#999'{dash}/>"
        yield f"<text x='{LEFT - 6}' y='{at}' text-anchor='end' dominant-baseline='middle'>{text}</text>"
    yield f"<text x='{(LEFT + right) / 2}' y='{HEIGHT - 6}' text-anchor='middle'>{escape(days)}</text>"
    middle = (TOP + bottom) / 2
    yield (
        f"<text x='12' y='{middle}' text-anchor='middle' transform='rotate(-90 12 {middle})'>"
        "difference flux [nJy]</text>"
    )


def _legend(bands: np.ndarray[Any, Any]) -> Iterator[str]:
    """Yield the names of the bands that there are, each in its colour, from blue to red."""
    order = {name: at for at, name in enumerate(COLOURS)}
    for at, band in enumerate(sorted({str(one) for one in bands}, key=lambda one: (order.get(one, 99), one))):
        x, colour = LEFT + 8 + 36 * at, COLOURS.get(band, "#000000")
        yield f"<circle cx='{x}' cy='10' r='3' fill='{colour}'/>"
        yield f"<text x='{x + 6}' y='13' class='band'>{escape(band) or '?'}</text>"


def stamp_img(name: str, stamp: bytes) -> str:
    """Return a stamp as an HTML image above its name; its name where it is not an image."""
    try:
        text = base64.b64encode(Stamp(name, stamp).png()).decode()
    except StampError:
        return f"<span>{escape(name)}: no picture</span>"
    image = f"<img alt='{escape(name)}' src='data:image/png;base64,{text}'>"
    return f"<figure>{image}<figcaption>{escape(name)}</figcaption></figure>"


def _mark(x: float, y: float, low: float, high: float, band: str, own: bool) -> str:
    colour = COLOURS.get(str(band), "#000000")
    centre = f"cx='{x:.1f}' cy='{y:.1f}'"
    ring = f"<circle {centre} r='6' fill='none' stroke='black'/>" if own else ""
    return (
        f"<line x1='{x:.1f}' x2='{x:.1f}' y1='{low:.1f}' y2='{high:.1f}' stroke='{colour}'/>"
        f"<circle {centre} r='2.5' fill='{colour}'><title>{escape(str(band))}</title></circle>{ring}"
    )
