"""The submitted part of a notebook."""

import json
import re

import pytest

from nightwire.filters.authoring.extract import extract, likely_function
from nightwire.filters.authoring.notebook import python_of
from nightwire.filters.language import FilterError, compile_filter

SCRIPT = '''
import math, os
import numpy as np
from pathlib import Path
from statistics import median as middle

LIMIT: float = 5 * math.pi
BANDS = set("gri")
alerts = list(range(3))
sample = [open(name) for name in ()]
print("loading")

def helper(value: Path) -> float:
    return middle([value, LIMIT])

class Unused:
    pass

def keep(alert: "Alert") -> bool:
    """Keep it."""
    inside = [np.abs(point) for point in alert]  # a comment that travels
    return helper(len(inside)) > LIMIT and "g" in BANDS

keep([1])
'''


def test_the_function_travels_with_what_it_uses_and_nothing_else() -> None:
    source = extract(SCRIPT)
    for present in (
        "import math",
        "import numpy as np",
        "median as middle",
        "LIMIT",
        "BANDS",
        "def helper",
        "# a comm",
    ):
        assert present in source
    for absent in ("import os", "Path\n", "alerts", "sample", "print", "Unused", "keep([1])"):
        assert absent not in source
    assert compile_filter(source, "keep")([]) is False


def test_the_last_definition_counts_as_when_cells_are_run_again() -> None:
    assert "2" in extract("X = 1\nX = 2\ndef keep(a):\n    return 0\ndef keep(a):\n    return X")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def keep(a):\n  return (", "line 2"),
        ("def other(a):\n  return 1", "no function keep(alert); functions found: other"),
        ("def keep(a):\n  return unknown", "uses unknown, which nothing defines"),
        (
            "data = open('x').read()\ndef keep(a):\n  return data",
            "line 1: the filter uses data, which is made by running",
        ),
        ("for limit in [1]:\n  pass\ndef keep(a):\n  return limit", "only functions, imports and constants"),
        ("x = 1\nx += 1\ndef keep(a):\n  return x", "line 2"),
    ],
)
def test_names_that_cannot_be_submitted_are_refused(code: str, said: str) -> None:
    with pytest.raises(FilterError, match=re.escape(said)):
        extract(code)


def test_a_notebooks_code_cells_without_magics() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# def keep(alert): 0"]},
        {"cell_type": "code", "source": ["%matplotlib inline\n", "!ls\n", "X = 1\n", "X?"]},
        {"cell_type": "code", "source": "%%time\nY = 2"},
        {"cell_type": "code", "source": "%%bash\nrm -r everything"},
    ]
    code = python_of(json.dumps({"cells": cells}), notebook=True)
    assert "X = 1" in code
    assert "Y = 2" in code
    assert "rm" not in code
    compile(code, "cells", "exec")


DOUBTFUL = '''
def keep(alert):
    """Is it bright?
    % of them are, and
!most do not know it, do they?
    """
    name = ("a"
        "%s" % 1, 7
        % 4, "why?"
    )  # is it?
    # why not?
    rest = 7 \\
      % 4
    return rest
'''


@pytest.mark.parametrize("above", ["", "%matplotlib inline\n!ls 'here\nkeep??\n?np.sqrt\n%timeit x = 1\n"])
def test_what_python_reads_is_left_alone(above: str) -> None:
    script = python_of(
        json.dumps({"cells": [{"cell_type": "code", "source": above + DOUBTFUL}]}), notebook=True
    )
    assert script.splitlines()[above.count("\n") :] == DOUBTFUL.splitlines()
    assert set(script.splitlines()[: above.count("\n")]) <= {"pass"}
    assert compile_filter(extract(script), "keep")(None) == 3


@pytest.mark.parametrize(
    ("code", "transform", "found"),
    [
        ("def bright(alert):\n    return True\n", "", "bright"),
        ("def bright(alert):\n    return True\ndef keep(alert):\n    return True\n", "", "keep"),
        ("def a(alert):\n    return True\ndef b(alert):\n    return a(alert)\n", "", "keep"),
        ("def a(alert):\n    return True\ndef more(alert):\n    return {}\n", "more", "a"),
        ("X = 1\n", "", "keep"),
    ],
)
def test_the_only_function_is_the_filter(code: str, transform: str, found: str) -> None:
    assert likely_function(code, transform) == found


def test_a_file_that_is_no_notebook_is_refused() -> None:
    with pytest.raises(FilterError, match="no Jupyter notebook"):
        python_of("{}", notebook=True)


def test_the_function_may_have_another_name_than_keep() -> None:
    assert "def mine" in extract("def mine(a):\n    return True", "mine")


@pytest.mark.parametrize("text", ["X = 0x" + 5_000 * "f", "X = " + "+".join("1" * 50_000)])
def test_code_that_cannot_be_written_out_is_refused_in_words(text: str) -> None:
    with pytest.raises(FilterError, match="cannot be read"):
        extract(f"{text}\ndef keep(alert):\n    return alert.flux > X\n", "keep")
