"""A report as self-contained HTML: counts, light curves as SVG, stamps as PNG."""

import base64
from collections.abc import Iterator
from html import escape
from typing import Any

import numpy as np

from nightwire.filters.authoring.report import JudgedAlert, Report
from nightwire.schemas import AlertView, Stamp, StampError

MAX_ALERTS = 10
"""Passed alerts of which a page shows light curves and stamps."""

STYLE = (
    ".nightwire td,.nightwire th{text-align:left;padding:2px 12px 2px 0;vertical-align:top}"
    ".nightwire img{width:84px;height:84px;image-rendering:pixelated;margin-right:4px}"
)


def html_fragment(report: Report) -> str:
    """Return *report* as a piece of HTML, with the first ten alerts that passed."""
    head = next(report.lines())
    passed = [one for one in report.judged if one.passed]
    return "\n".join([
        f"<div class='nightwire'><style>{STYLE}</style><p><b>{escape(head)}</b></p>",
        "".join(f"<p>{escape(remark)}</p>" for remark in report.remarks),
        _table(("alerts", "what stopped them"), ((f"{n:,}", why) for why, n in report.stages.most_common())),
        *(_alert(one) for one in passed[:MAX_ALERTS]),
        f"<p>and {len(passed) - MAX_ALERTS} more that passed</p>" if len(passed) > MAX_ALERTS else "",
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
    stamps = "".join(stamp_img(name, stamp) for name, stamp in alert.stamps.items())
    return f"<h4>{escape(', '.join(title))}</h4><div>{light_curve_svg(alert)} {stamps}</div>"


def _table(heads: tuple[str, ...], rows: Iterator[tuple[str, ...]], *, folded: bool = False) -> str:
    def row(cells: tuple[str, ...], kind: str) -> str:
        return f"<tr>{''.join(f'<{kind}>{escape(cell)}</{kind}>' for cell in cells)}</tr>"

    table = f"<table>{row(heads, 'th')}{''.join(row(cells, 'td') for cells in rows)}</table>"
    return f"<details><summary>every alert</summary>{table}</details>" if folded else table


WIDTH, HEIGHT, EDGE = 360, 120, 14
"""Size of a light curve, and its margin. [pixel]"""

COLOURS = {"u": "#56b4e9", "g": "#009e73", "r": "#d55e00", "i": "#cc79a7", "z": "#8c510a", "y": "#555555"}
"""Colours of the bands, distinguishable to the colour-blind (Okabe & Ito 2008)."""


def light_curve_svg(alert: AlertView) -> str:
    """Return the light curve as SVG: difference flux [nJy] over time [d].

    A ring marks the alert's own point.
    """
    curve = alert.light_curve()
    good = np.isfinite(curve["mjd_tai"]) & np.isfinite(curve["flux"])
    if not good.any():
        return "<span>no light curve</span>"
    times, fluxes, bands = (curve[name][good] for name in ("mjd_tai", "flux", "band"))
    errors = np.nan_to_num(curve["flux_error"][good])
    x = _scaled(times, WIDTH)
    y = HEIGHT - _scaled(np.concatenate([fluxes, fluxes - errors, fluxes + errors]), HEIGHT).reshape(3, -1)
    marks = [_mark(*one) for one in zip(x, *y, bands, times == alert.mjd_tai, strict=True)]
    text = f"{fluxes.min():.3g} … {fluxes.max():.3g} nJy, {np.ptp(times):.1f} d"
    size = f"width='{WIDTH}' height='{HEIGHT}' viewBox='0 0 {WIDTH} {HEIGHT}'"
    return (
        f"<svg {size} style='border:1px solid #ccc'>"
        f"{''.join(marks)}<text x='4' y='11' font-size='10'>{escape(text)}</text></svg>"
    )


def stamp_img(name: str, stamp: bytes) -> str:
    """Return a stamp as an HTML image; its name where it is not an image."""
    try:
        text = base64.b64encode(Stamp(name, stamp).png()).decode()
    except StampError:
        return f"<span>{escape(name)}: no picture</span>"
    return f"<img alt='{escape(name)}' title='{escape(name)}' src='data:image/png;base64,{text}'>"


def _scaled(values: np.ndarray[Any, Any], length: int) -> np.ndarray[Any, Any]:
    low, high = float(values.min()), float(values.max())
    return EDGE + (length - 2 * EDGE) * (
        (values - low) / (high - low) if high > low else np.full(len(values), 0.5)
    )


def _mark(x: float, y: float, low: float, high: float, band: str, own: bool) -> str:
    colour = COLOURS.get(str(band), "#000000")
    centre = f"cx='{x:.1f}' cy='{y:.1f}'"
    ring = f"<circle {centre} r='6' fill='none' stroke='black'/>" if own else ""
    return (
        f"<line x1='{x:.1f}' x2='{x:.1f}' y1='{low:.1f}' y2='{high:.1f}' stroke='{colour}'/>"
        f"<circle {centre} r='2.5' fill='{colour}'><title>{escape(str(band))}</title></circle>{ring}"
    )
