"""The condition that stopped an alert, by its line in the source or its text in SQL."""

from typing import Any

import pytest

from nightwire.filters.language import compile_filter, instrumented_copy, sql_conditions

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


def explained(source: str, alert: Any) -> tuple[Any, str | None]:
    """Return what a filter says of an alert, and the condition that stopped it."""
    asking, found = instrumented_copy(source, "keep")
    result = compile_filter(source, "keep")(alert)
    return result, None if result else found[compile_filter(asking, "keep")(alert) - 1]


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
    result, condition = explained(CODE, alert)
    assert condition == stopped
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
    result, condition = explained(HELPED, alert)
    assert condition == stopped
    assert result == namespace["keep"](alert)


def test_a_helper_that_calls_itself_is_followed_three_times() -> None:
    source = "def f(x):\n    return x > 1 and f(x - 3)\ndef keep(alert):\n    return f(alert)"
    assert explained(source, 2)[1] == "line 2: x > 1, in f(x - 3), in f(alert)"
    assert explained(source, 99)[1] == "line 2: f(x - 3), in f(x - 3), in f(x - 3), in f(alert)"


def test_a_function_without_a_return_says_so() -> None:
    assert explained("def keep(alert):\n    pass", 1) == (
        None,
        "the end of the function, without a return",
    )


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
