"""A filter tried on a sample: conditions that stopped alerts, faults, cost, pictures."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nightwire.filters import FilterError, try_filter
from nightwire.filters.authoring.extract import extract
from nightwire.filters.authoring.page import html_document, stamp_img
from nightwire.filters.authoring.report import sql_report
from nightwire.filters.model.compilation import compile_request
from nightwire.schemas import SchemaRegistry, survey, wire

BRIGHT = 300.0  # nJy


def keep(alert: Any) -> Any:
    """Bright, and with an odd id."""
    if alert.flux is None:
        return False
    return alert.flux > BRIGHT and alert.id % 2 == 1 and alert.flux / (alert.id - 5)


def seen_before(alert: Any) -> Any:
    """Sure, and with a history."""
    return alert.snr > 5 and len(alert.history) > 2


def greedy(alert: Any) -> Any:
    """Doubles a list for ever."""
    found = [alert.flux]
    while True:
        found += found


def endless(_alert: Any) -> Any:
    """Never returns."""
    while True:
        pass


def everything(alert: Any) -> Any:
    """Anything at all."""
    return alert.id is not None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("one", "said"),
    [
        (greedy, r"would be refused: too (much memory|slow): .*MemoryError"),
        (endless, "would be refused: too slow: took longer than 2 s"),
        (everything, "would be refused: passes too much: 240 of 240 recent alerts, 100.0%, limit is 5%"),
        (keep, "would be accepted: tried on 240 recent alerts: "),
    ],
)
def test_a_trial_has_the_limits_of_the_engines_and_says_its_verdict(
    one: Any, said: str, make_alert: Callable[..., dict[str, Any]]
) -> None:
    sample = [survey("sim").view(make_alert(number, 10.0 * (number == 7))) for number in range(1, 241)]
    assert re.search(said, str(try_filter(one, sample)))


@pytest.mark.slow
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


def test_objects_that_are_no_function_or_no_alert_are_refused() -> None:
    with pytest.raises(FilterError, match="not a builtin_function_or_method"):
        try_filter(len, [])
    with pytest.raises(FilterError, match="not a int"):
        try_filter(keep, [1])


def test_an_empty_sample_is_reported() -> None:
    said = str(try_filter(keep, []))
    assert "there are no alerts" in said
    assert "would be accepted: not tried" in said


def test_an_sql_condition_is_explained(encode: Callable[..., bytes], tmp_path: Path) -> None:
    samples = [("sim", encode(number, 100.0 * number)) for number in range(1, 7)]
    registry = SchemaRegistry(None, cache_dir=tmp_path)
    found = sql_report(
        "WHERE flux > 250 AND flux BETWEEN 0 AND 450", "sim", [*samples, ("sim", b"no")], registry
    )
    assert [alert.flux for alert in found.passed] == [300.0, 400.0]
    assert dict(found.stages) == {"stopped by flux > 250": 2, "stopped by flux BETWEEN 0 AND 450": 2}
    missed = [one.stopped for one in found.just_missed]
    assert missed == ["flux BETWEEN 0 AND 450"] * 2 + ["flux > 250"] * 2


@pytest.mark.data
def test_a_page_shows_light_curves_and_stamps(data: Path, tmp_path: Path) -> None:
    container = (data / "alerts/lsst/rubin_real_v11_0.avro").read_bytes()
    found = try_filter(
        seen_before, [survey("lsst").view(one.record) for one in wire.read_container(container)]
    )
    shown = html_document(found)
    assert 0 < len(found.passed) <= 10
    assert len(found.just_missed) >= 5
    assert shown.count("<svg ") == shown.count("<h4>") == len(found.passed) + 5
    assert shown.count("data:image/png;base64,iVBOR") >= shown.count("<h4>")


@pytest.mark.parametrize("stamp", [b"", b"SIMPLE  = no", b"\x1f\x8b broken"])
def test_a_damaged_stamp_is_named_alone(stamp: bytes) -> None:
    assert stamp_img("science", stamp) == "<span>science: no picture</span>"


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
