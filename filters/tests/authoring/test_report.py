"""What a filter does with a sample: stages, faults, cost, pictures."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nightwire.filters import FilterError, try_filter
from nightwire.filters.authoring.extract import extract
from nightwire.filters.authoring.page import html_document
from nightwire.filters.authoring.report import report, sql_report
from nightwire.filters.language import compile_explained, sql_conditions
from nightwire.filters.model.compilation import compile_request
from nightwire.schemas import SchemaRegistry, survey, wire

CODE = """
def good(alert):
    return alert > 2

def keep(alert):
    if alert is None:
        return False
    if alert > 100:
        if alert > 200:
            return 0
        return None
    elif alert == 50:
        return not True
    for _ in range(2):
        if alert == 7:
            return False
    try:
        return good(alert) and 1 / (alert - 5) and (alert < 10 or alert == 20)
    except ZeroDivisionError:
        return alert == 6
"""

BRIGHT = 300.0  # nJy


def keep(alert: Any) -> Any:
    """Bright, and with an odd id."""
    if alert.flux is None:
        return False
    return alert.flux > BRIGHT and alert.id % 2 == 1 and alert.flux / (alert.id - 5)


@pytest.mark.parametrize(
    ("alert", "stopped"),
    [
        (None, "line 6: if alert is None"),
        (201, "line 9: if alert > 200"),
        (150, "line 8: if alert > 100"),
        (50, "line 13: not True"),
        (7, "line 15: if alert == 7"),
        (1, "line 18: good(alert)"),
        (11, "line 18: alert < 10 or alert == 20"),
        (5, "line 20: alert == 6"),
        (3, None),
        (20, None),
    ],
)
def test_the_condition_that_stopped_an_alert_is_named(alert: int | None, stopped: str | None) -> None:
    namespace: dict[str, Any] = {}
    exec(CODE, namespace)  # noqa: S102
    result, said = compile_explained(CODE, "keep")(alert)
    assert said == stopped
    assert result == namespace["keep"](alert)


HELPED = """
def sure(value, least=3):
    return value > least and value != 4

def odd(value):
    if value is None or value > 90:
        return False
    return sure(value) and value % 2 == 1

def alone(value):
    return value != 13

def keep(alert):
    if not odd(alert) or not (alert < 80 and alone(alert)):
        return False
    if alert == 5:
        return 0
    return not (alert == 7 or alert == 9) and sure(alert, least=10) and alone(alert)
"""


@pytest.mark.parametrize(
    ("alert", "stopped"),
    [
        (None, "line 6: if value is None, in odd(alert)"),
        (91, "line 6: if value > 90, in odd(alert)"),
        (2, "line 3: value > least, in sure(value), in odd(alert)"),
        (4, "line 3: value != 4, in sure(value), in odd(alert)"),
        (6, "line 8: value % 2 == 1, in odd(alert)"),
        (81, "line 14: if not alert < 80"),
        (5, "line 16: if alert == 5"),
        (7, "line 18: not alert == 7"),
        (9, "line 18: not alert == 9"),
        (3, "line 3: value > least, in sure(value), in odd(alert)"),
        (13, "line 14: if not alone(alert)"),
        (11, None),
    ],
)
def test_conditions_of_helpers_are_named_one_by_one(alert: int | None, stopped: str | None) -> None:
    namespace: dict[str, Any] = {}
    exec(HELPED, namespace)  # noqa: S102
    result, said = compile_explained(HELPED, "keep")(alert)
    assert said == stopped
    assert result == namespace["keep"](alert)


def test_a_helper_that_calls_itself_is_followed_three_times() -> None:
    source = "def f(x):\n    return x > 1 and f(x - 3)\ndef keep(alert):\n    return f(alert)"
    assert compile_explained(source, "keep")(2)[1] == "line 2: x > 1, in f(x - 3), in f(alert)"
    assert (
        compile_explained(source, "keep")(99)[1] == "line 2: f(x - 3), in f(x - 3), in f(x - 3), in f(alert)"
    )


def test_a_function_without_a_return_says_so() -> None:
    assert compile_explained("def keep(alert):\n    pass", "keep")(1) == (
        None,
        "the end of the function, without a return",
    )


def test_a_function_of_this_file_is_tried(make_alert: Callable[..., dict[str, Any]]) -> None:
    sample = [survey("sim").view(make_alert(number, 100.0 * number)) for number in range(1, 10)]
    line = keep.__code__.co_firstlineno + 4
    found = try_filter(keep, sample)
    assert [alert.id for alert in found.passed] == [7, 9]
    assert dict(found.stages) == {
        f"stopped by line {line}: alert.flux > BRIGHT": 3,
        f"stopped by line {line}: alert.id % 2 == 1": 3,
        f"failed: ZeroDivisionError: float division by zero (line {line}: return alert.flux > BRIGHT and "
        "alert.id % 2 == 1 and alert.flux / (alert.id - 5))": 1,
    }
    assert found.judged[6].why == "passed, rank 350"
    assert found.cost_us > 0
    assert "2 of 9 alerts pass (22.2 %), 1 failed" in str(found)
    assert "every alert" in found._repr_html_()


def test_what_is_no_function_and_no_alert_is_refused() -> None:
    with pytest.raises(FilterError, match="not a builtin_function_or_method"):
        try_filter(len, [])
    with pytest.raises(FilterError, match="not a int"):
        try_filter(keep, [1])


def test_nothing_to_try_it_on() -> None:
    assert "there are no alerts" in str(report("def keep(alert):\n    return True", "keep", []))


@pytest.mark.parametrize(
    ("condition", "parts"),
    [
        ("WHERE a < 1 AND b > 2;", ["a < 1", "b > 2"]),
        ("a BETWEEN 1 AND 2 AND (b > 2 OR c AND d)", ["a BETWEEN 1 AND 2", "(b > 2 OR c AND d)"]),
        ("a < 1 AND b > 2 OR c", ["a < 1 AND b > 2 OR c"]),
        ("CASE WHEN a AND b THEN 1 END > 0 and c", ["CASE WHEN a AND b THEN 1 END > 0", "c"]),
        ("a = 'x AND y'", ["a = 'x AND y'"]),
    ],
)
def test_the_parts_of_a_condition(condition: str, parts: list[str]) -> None:
    assert sql_conditions(condition) == parts


def test_an_sql_condition_is_explained(encode: Callable[..., bytes], tmp_path: Path) -> None:
    samples = [("sim", encode(number, 100.0 * number)) for number in range(1, 7)]
    registry = SchemaRegistry(None, cache_dir=tmp_path)
    found = sql_report(
        "WHERE flux > 250 AND flux BETWEEN 0 AND 450", "sim", [*samples, ("sim", b"no")], registry
    )
    assert [alert.flux for alert in found.passed] == [300.0, 400.0]
    assert dict(found.stages) == {"stopped by flux > 250": 2, "stopped by flux BETWEEN 0 AND 450": 2}


@pytest.mark.data
def test_a_page_shows_light_curves_and_stamps(data: Path, tmp_path: Path) -> None:
    container = (data / "alerts/lsst/rubin_real_v11_0.avro").read_bytes()
    sample = [survey("lsst").view(one.record) for one in wire.read_container(container)]
    found = report("def keep(alert):\n    return alert.snr > 5 and len(alert.history) > 2", "keep", sample)
    shown = html_document(found)
    assert shown.count("<svg ") == shown.count("<h4>") == min(10, len(found.passed)) > 0
    assert shown.count("data:image/png;base64,iVBOR") >= shown.count("<h4>")


def test_the_filters_of_the_guide_are_filters() -> None:
    guide = (Path(__file__).parents[3] / "docs/user/astronomer.md").read_text()
    written = next(
        text for text in re.findall(r"```python\n(.*?)```", guide, re.DOTALL) if "def keep" in text
    )
    (condition,) = re.findall(r'--sql "(.*?)"', guide)
    for text in (
        {"language": "python", "source": extract(written), "entry": "keep", "survey": "lsst"},
        {"language": "sql", "source": condition, "entry": "", "survey": "lsst"},
    ):
        assert compile_request(text).program is not None
