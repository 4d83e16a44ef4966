"""What a filter may be."""

import math

import numpy as np
import pytest

from nightwire.filters.language import (
    FilterError,
    compile_filter,
    fault_text,
    fields_read,
    objections,
    rank_of,
)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import os\ndef keep(a): return 1", "line 1: a filter may not import os"),
        ("from os.path import join\ndef keep(a): return 1", "may not import os.path"),
        ("from . import x\ndef keep(a): return 1", "may not import ."),
        ("def keep(a):\n  return open('x')", "line 2: a filter may not use open"),
        ("def keep(a): return ().__class__.__bases__", "may not reach for .__class__"),
        ("def keep(a):\n  global x\n  x = 1", "line 2: a filter may not change globals (x)"),
        ("async def keep(a): return 1", "no function keep"),
        ("def keep(a):\n  yield 1", "no async, await or yield"),
        ("def keep(): return 1", "line 1: keep must take one argument"),
        ("def keep(a, b): return 1", "line 1: keep must take one argument"),
        ("def keep(a):\n\treturn (", "line 2"),
        ("x = '\0'", "null bytes"),
        ("#" * 2_500_001, "limit is 2,500,000"),
    ],
)
def test_what_is_refused_says_where_and_why(source: str, said: str) -> None:
    assert said in " ".join(objections(source, "keep"))


@pytest.mark.parametrize(
    "source",
    [
        "import numpy as np\nimport astropy.units as u\ndef keep(a): return np.abs(a.flux) > 1",
        "class P:\n  def __init__(self): self.x = 1\ndef keep(a, limit=3): return P().x < limit",
        "def keep(a):\n  try:\n    return a['x']['y']\n  except KeyError:\n    return False",
    ],
)
def test_what_is_accepted_compiles(source: str) -> None:
    assert objections(source, "keep") == []
    if "astropy" not in source:
        assert callable(compile_filter(source, "keep"))


def test_a_top_level_that_fails_names_its_line() -> None:
    with pytest.raises(FilterError, match=r"ZeroDivisionError.*\(line 1: X = 1 / 0\)"):
        compile_filter("X = 1 / 0\ndef keep(a): return X", "keep")


def test_a_fault_names_the_line_of_the_filter_not_ours() -> None:
    source = "def keep(a):\n    return a.flux > 1\n"
    with pytest.raises(AttributeError) as caught:
        compile_filter(source, "keep")(object())
    assert fault_text(caught.value, source).endswith("(line 2: return a.flux > 1)")


def test_fields_that_a_filter_reads() -> None:
    reads = "alert['diaSource']['ra'] + alert.get('diaObject').get('dec')"
    source = f"def keep(alert):\n  x = {reads}\n  return alert.flux"
    assert fields_read(source, "keep") == ["diaObject.dec", "diaSource.ra", "flux"]
    helped = (
        "def f(a):\n  s = a['diaSource']\n  return s['ra']\ndef keep(alert):\n  return f(alert) > alert.flux"
    )
    assert fields_read(helped, "keep") == ["diaSource.ra", "flux"]


@pytest.mark.parametrize(
    ("result", "rank"),
    [
        (True, math.nan),
        (2, 2.0),
        (np.float32(1.5), 1.5),
        (np.True_, math.nan),
        ("yes", math.nan),
        ([1], math.nan),
        (10**400, math.nan),
    ],
)
def test_a_number_ranks(result: object, rank: float) -> None:
    assert repr(rank_of(result)) == repr(rank)


def test_what_is_no_python_is_told_with_line_and_column() -> None:
    assert objections("def keep(alert):\n    return 1)\n", "keep") == ["line 2: unmatched ')' (column 13)"]
