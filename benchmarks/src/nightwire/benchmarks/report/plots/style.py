"""How plots look and get into the page: one column wide, so that a phone shows them unshrunk."""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from typing import Any, cast

import matplotlib as mpl
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

WIDTH = 4.1  # [in]
STYLE: dict[str, Any] = {
    "font.size": 10,
    "font.family": ["DejaVu Sans", "sans-serif"],
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e3e6ea",
    "grid.linewidth": 0.7,
    "axes.axisbelow": True,
    "axes.edgecolor": "#8a929c",
    "text.color": "#1c2430",
    "axes.labelcolor": "#1c2430",
    "xtick.color": "#4a5462",
    "ytick.color": "#4a5462",
    "legend.frameon": False,
    "svg.fonttype": "none",  # text stays text: it can be searched, and takes a third of the room
    "svg.hashsalt": "nightwire",
}
COLOURS = ("#1f5fa8", "#d2691e", "#2e8b57", "#8a4fa3", "#b8860b", "#5f6b7a", "#c2385b", "#3aa6b9", "#7a9a3a")
"""Told apart also by those who do not see red and green, and in grey."""
INK = "#1c2430"
MARKERS = "osD^vP"
DASHES = ("-", "--", "-.", ":")


@contextmanager
def styled() -> Iterator[None]:
    """Draw in the report's style."""
    with mpl.rc_context(cast("Any", STYLE)):
        yield


def decades(axis: Axis) -> None:
    """Write 1, 2, 5, 10 … along a logarithmic axis that is short enough for it, else decades."""
    low, high = sorted(axis.get_view_interval())
    steps = (1.0, 2.0, 5.0) if high < 1_000 * low else (1.0,)
    axis.set_major_locator(LogLocator(subs=steps))
    axis.set_major_formatter(lambda value, _place: f"{value:,.10g}")
    axis.set_minor_formatter(NullFormatter())


def svg(figure: Figure, title: str) -> str:
    """Return *figure* as an ``<svg>`` element that scales with the page and says what it shows."""
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"(\d\.\d\d)\d+", r"\1", text)  # a hundredth of a point will do
    text = re.sub(r"font-family: [^;\"]+; ", "", text)  # the page's own
    words = f'role="img" aria-label="{escape(title)}" preserveAspectRatio="xMidYMid meet"'
    return re.sub(r'<svg [^>]*?viewBox="([^"]+)"[^>]*>', rf'<svg viewBox="\1" {words}>', text, count=1)
