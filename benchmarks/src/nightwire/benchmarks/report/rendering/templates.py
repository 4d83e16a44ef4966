"""The templates of the page, of the Markdown report and of the README's block."""

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from nightwire.benchmarks.report.content.formatting import (
    measure,
    number,
    published,
    ratio,
    spread,
    times,
)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("nightwire.benchmarks.report"),
        autoescape=select_autoescape(("html.j2",)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {one.__name__: one for one in (measure, number, published, ratio, spread, times)}
    return made


def render(template: str, **values: Any) -> str:
    """Return *template* filled with *values*."""
    return _environment().get_template(template).render(**values)
