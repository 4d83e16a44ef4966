"""The status page: one document without scripts, pictures or anything else to fetch."""

from collections.abc import Sequence
from html import escape

from nightwire.gateway.status.tables import NONE, TABLES, Column, Status, Table, cells

REFRESH = 10
"""Time between looks. [s]"""

_STYLE = """
:root { color-scheme: light dark; --ink: #1a2330; --pale: #5d6b7c; --line: #d9dfe7; --paper: #f5f7fa;
  --card: #ffffff; --accent: #1f5fa8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e9f0; --pale: #93a1b3; --line: #2c3747;
  --paper: #10161f; --card: #18202c; --accent: #7db4f2; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 1.25rem; background: var(--paper); color: var(--ink);
  font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.25rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1rem; margin: 1.75rem 0 .5rem; }
h2 small { color: var(--pale); font-weight: normal; margin-left: .4rem; }
p { color: var(--pale); margin: .25rem 0; overflow-wrap: anywhere; }
table { width: 100%; border-collapse: collapse; background: var(--card); border: 1px solid var(--line);
  border-radius: .5rem; overflow: hidden; }
th { text-align: left; font-weight: 600; color: var(--pale); font-size: .8rem; white-space: nowrap; }
th, td { padding: .45rem .7rem; border-bottom: 1px solid var(--line); vertical-align: top; }
tr:last-child td { border-bottom: 0; }
td { overflow-wrap: anywhere; }
td:first-child { color: var(--accent); font-weight: 600; }
.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.whole { white-space: nowrap; }
@media (max-width: 62rem) {
  body { padding: .8rem; }
  thead { display: none; }
  table, tbody, tr, td { display: block; }
  tr { padding: .5rem .8rem; border-bottom: 1px solid var(--line); }
  tr:last-child { border-bottom: 0; }
  td, td.number { display: flex; justify-content: space-between; gap: 1rem; padding: .12rem 0; border: 0;
    text-align: right; white-space: normal; }
  td.none { display: none; }
  td::before { content: attr(data-title); color: var(--pale); font-weight: normal; white-space: nowrap; }
}
"""


def status_page(status: Status) -> bytes:
    """Return *status* as HTML."""
    name = escape(str(status["gateway"]))
    listening = ", ".join(f"{one['role']} {one['address']}" for one in status["listening"])
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta http-equiv="refresh" content="{REFRESH}">',
        f"<title>{name}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{name}</h1><p>at {status['now']}, up since {status['started']}</p>",
        f"<p>{escape(listening)}</p>",
        *(_section(table, cells(table, status)) for table in TABLES),
        "</body></html>",
    ]
    return "".join(parts).encode()


def _section(table: Table, rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return f"<h2>{table.title}</h2><p>{escape(table.nothing)}</p>"
    heads = "".join(
        f'<th class="number">{one.title}</th>' if one.number else f"<th>{one.title}</th>"
        for one in table.columns
    )
    body = "".join(f"<tr>{_cells(table, row)}</tr>" for row in rows)
    return (
        f"<h2>{table.title}<small>{len(rows)}</small></h2>"
        f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
    )


def _cells(table: Table, row: Sequence[str]) -> str:
    return "".join(
        f'<td data-title="{column.title}" class="{_classes(column, text)}">{escape(text)}</td>'
        for column, text in zip(table.columns, row, strict=True)
    )


def _classes(column: Column, text: str) -> str:
    classes = {"number": column.number, "whole": column.whole, "none": text == NONE}
    return " ".join(name for name, holds in classes.items() if holds)
