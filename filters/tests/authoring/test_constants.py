"""Constants that only running a notebook makes: found at the owner's, written as literals."""

import math
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from astropy import units
from hypothesis import given
from hypothesis import strategies as st

from nightwire.filters.authoring.constants import (
    NotPlainError,
    assignment,
    literal,
    values_by_running,
    values_of_namespace,
)
from nightwire.filters.authoring.extract import extract
from nightwire.filters.language import FilterError, compile_filter

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(plain)
def test_a_plain_value_is_its_literal(value: Any) -> None:
    assert eval(literal(value), {"float": float}) == value  # noqa: S307 - what we wrote


@pytest.mark.parametrize(
    "value",
    [
        {"g", "r"}, frozenset({1}), set(), (1,), range(3), 1 + 2j, np.float32(0.5), np.int64(7), np.True_,
        {"a": [1.0, (math.inf, b"x")]},
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_further_plain_values(value: Any) -> None:
    assert eval(literal(value)) == value  # noqa: S307


@pytest.mark.parametrize(
    "array",
    [np.arange(6.0).reshape(2, 3), np.array([True]), np.zeros((0, 2), "f4"), np.array(["g"])],
    ids=str,
)
def test_an_array_keeps_its_kind_and_shape(array: Any) -> None:
    namespace: dict[str, Any] = {}
    exec(assignment("X", array), namespace)  # noqa: S102
    assert namespace["X"].dtype == array.dtype
    assert np.array_equal(namespace["X"], array)
    assert namespace["X"].shape == array.shape


def test_nan_is_a_call_of_float() -> None:
    assert math.isnan(eval(literal(math.nan)))  # noqa: S307


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        (pd.DataFrame({"x": [1]}), "frame['x'].to_list()"),
        (pd.Series([1]), ".to_list()"),
        (3 * units.deg, ".to_value('unit')"),
        (defaultdict(int), "dict(…)"),
        (Counter("a"), "dict(…)"),
        (Path(), "reads no files"),
        (lambda: 0, "define it by def"),
        (np.array([object()]), "array of object"),
        (list(range(400_000)), "limit is 2,200,000"),
        (object(), "only numbers, text"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_that_are_no_literal_are_refused_with_advice(value: Any, advice: str) -> None:
    with pytest.raises(NotPlainError) as refused:
        literal(value)
    assert advice in str(refused.value)


def test_a_list_that_holds_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(NotPlainError, match="holds itself"):
        literal(endless)


NOTEBOOK = """
import numpy as np
from pathlib import Path

read = float(Path("limits.txt").read_text())
loaded = np.loadtxt("limits.txt", ndmin=1)
def compute():
    return helper() + 1
def helper():
    return 2
computed = compute()
comprehended = [x**2 for x in range(3)]
filled = {}
for band in "gr":
    filled[band] = 20
appended = []
appended.append(1)
X = 1
before = X + 1
X = 5
counted = 1
counted += 1
print("loud")
ordered = sorted({"b": 1}.items())
try:
    tried = 1 / 0
except ZeroDivisionError:
    tried = 4
raise_if_run = 1 / 0
def keep(alert):
    return read, loaded, computed, comprehended, filled, appended, before, counted, ordered, tried, X
"""


def test_only_statements_that_make_the_values_are_run(tmp_path: Path) -> None:
    (tmp_path / "limits.txt").write_text("3.5\n")
    source = extract(NOTEBOOK, "keep", values_by_running(NOTEBOOK, tmp_path))
    read, loaded, *others = compile_filter(source, "keep")(None)
    assert (read, loaded.tolist()) == (3.5, [3.5])
    assert others == [3, [0, 1, 4], {"g": 20, "r": 20}, [1], 2, 2, [("b", 1)], 4, 5]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "reasons"),
    [
        (
            "A = open('nowhere').read()\ndef keep(a):\n    return A",
            [r"A, and running what makes it failed: FileNotFoundError.*\(line 1: A = open"],
        ),
        (
            "import io\nimport pandas as pd\nA = pd.read_csv(io.StringIO('x'))\nB = (x for x in range(3))\n"
            "def keep(a):\n    return A, B",
            [
                r"uses A, which cannot travel.*DataFrame.*to_list\(\)",
                r"uses B, which cannot travel.*write list",
            ],
        ),
    ],
)
def test_values_that_cannot_be_found_are_named(tmp_path: Path, code: str, reasons: list[str]) -> None:
    with pytest.raises(FilterError) as refused:
        extract(code, "keep", values_by_running(code, tmp_path))
    for reason, pattern in zip(refused.value.reasons, reasons, strict=True):
        assert re.search(pattern, reason)


@pytest.mark.slow
def test_a_notebook_that_never_ends_is_given_up(tmp_path: Path) -> None:
    code = "import time\nLIMIT = time.sleep(60) or 1\ndef keep(alert):\n    return LIMIT"
    with pytest.raises(FilterError, match="took longer than 1 s"):
        extract(code, "keep", values_by_running(code, tmp_path, seconds=1))


def test_a_notebook_that_takes_all_memory_is_given_up(tmp_path: Path) -> None:
    code = "LIMIT = [1]\nwhile True:\n    LIMIT += LIMIT\ndef keep(alert):\n    return LIMIT"
    with pytest.raises(FilterError, match=r"failed: MemoryError \(line 3"):
        extract(code, "keep", values_by_running(code, tmp_path, memory=1 << 30))


def test_in_a_running_notebook_the_values_are_there() -> None:
    code = "LIMIT = compute()\ndef keep(alert):\n    return LIMIT"
    assert "LIMIT = 7" in extract(code, "keep", values_of_namespace({"LIMIT": 7}))
    with pytest.raises(FilterError, match="no value yet: run the cell"):
        extract(code, "keep", values_of_namespace({}))


@pytest.mark.parametrize(
    ("code", "objection"),
    [
        ("from numpy import *\ndef keep(a):\n    return sqrt(a)", "uses sqrt.*import it by its name"),
        ("from mytools import good\ndef keep(a):\n    return good(a)", "good of mytools.*copy its code"),
        (
            "import sklearn.svm\ndef keep(a):\n    return sklearn.svm.SVC()",
            "uses sklearn, which the engine does not have",
        ),
    ],
)
def test_modules_that_the_engine_lacks_are_named(code: str, objection: str) -> None:
    with pytest.raises(FilterError, match=objection):
        extract(code)


def test_a_lambda_and_an_import_that_may_fail_travel() -> None:
    code = "try:\n    import numpy as np\nexcept ImportError:\n    np = None\nkeep = lambda a: np.abs(a) > 1"
    assert compile_filter(extract(code), "keep")(-2)
