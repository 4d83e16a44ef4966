"""Which filters are functions of columns."""

import ast

import pytest

from nightwire.filters.language import column_arguments, objections


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def keep(alerts): return alerts.magnitude < 19", ()),
        ("def keep(alert): return alert.magnitude < 19", None),
        ("COLUMNS = ['magnitude', 'a.b']\ndef keep(magpsf, b): return b > 1", ("magnitude", "a.b")),
        ("COLUMNS = [*('x.y', 'x.z'), 'band']\ndef keep(y, z, band): return y > z", ("x.y", "x.z", "band")),
        ("COLUMNS = ['magnitude']\ndef keep(alert): return alert.magnitude < 19", None),
        ("COLUMNS = ['magnitude']\ndef keep(magpsf): return magpsf < 19", ("magnitude",)),
        ("COLUMNS = ['a', 'b', 'c']\ndef keep(alerts): return alerts.magnitude < 19", ()),
        ("N = 1\nCOLUMNS = ['a', N]\ndef keep(a, b): return a", None),
    ],
)
def test_arguments(source: str, found: tuple[str, ...] | None) -> None:
    assert column_arguments(ast.parse(source), "keep") == found


def test_as_many_columns_as_arguments() -> None:
    source = "COLUMNS = ['magnitude', 'band']\ndef keep(magpsf): return magpsf < 19"
    assert objections(source, "keep") == []  # one argument: an alert
    (refusal,) = objections(source.replace("magpsf)", "a, b, c)"), "keep")
    assert "as many as these" in refusal
