"""A report as HTML that needs nothing from elsewhere: counts, light curves as SVG, stamps as PNG."""

from collections.abc import Iterator
from html import escape

from nightwire.filters._pictures import light_curve_svg, stamp_img
from nightwire.filters._report import SHOWN, Judged, Report

STYLE = (
    ".nightwire td,.nightwire th{text-align:left;padding:2px 12px 2px 0;vertical-align:top}"
    ".nightwire img{width:84px;height:84px;image-rendering:pixelated;margin-right:4px}"
)


def page(report: Report) -> str:
    """Return *report* as a piece of HTML, with the first ten alerts that passed."""
    head = next(report.lines())
    passed = [one for one in report.judged if one.passed]
    return "\n".join([
        f"<div class='nightwire'><style>{STYLE}</style><p><b>{escape(head)}</b></p>",
        "".join(f"<p>{escape(remark)}</p>" for remark in report.remarks),
        _table(("alerts", "what stopped them"), ((f"{n:,}", why) for why, n in report.stages.most_common())),
        *(_alert(one) for one in passed[:SHOWN]),
        f"<p>and {len(passed) - SHOWN} more that passed</p>" if len(passed) > SHOWN else "",
        _table(("alert", "verdict"), ((str(one.alert.id), one.why) for one in report.judged), folded=True),
        "</div>",
    ])  # fmt: skip


def document(report: Report) -> str:
    """Return *report* as a whole HTML document."""
    return f"<!doctype html><meta charset='utf-8'><title>{escape(report.name)}</title>{page(report)}"


def _alert(one: Judged) -> str:
    alert = one.alert
    said = [f"alert {alert.id}", one.why]
    if alert.magnitude is not None:
        said.insert(1, f"{alert.band or '?'} = {alert.magnitude:.2f} mag")
    stamps = "".join(stamp_img(name, stamp) for name, stamp in alert.stamps.items())
    return f"<h4>{escape(', '.join(said))}</h4><div>{light_curve_svg(alert)} {stamps}</div>"


def _table(heads: tuple[str, ...], rows: Iterator[tuple[str, ...]], *, folded: bool = False) -> str:
    def row(cells: tuple[str, ...], kind: str) -> str:
        return f"<tr>{''.join(f'<{kind}>{escape(cell)}</{kind}>' for cell in cells)}</tr>"

    table = f"<table>{row(heads, 'th')}{''.join(row(cells, 'td') for cells in rows)}</table>"
    return f"<details><summary>every alert</summary>{table}</details>" if folded else table
