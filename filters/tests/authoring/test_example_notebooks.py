"""The example notebooks: each is a filter, and keeps what it says it keeps."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nightwire.filters.authoring.client import file_source
from nightwire.filters.language import Predicate, compile_filter
from nightwire.schemas import AlertDecoder, AlertView, SchemaRegistry, survey, wire
from nightwire.schemas.topics import check_name

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))


def keep_of(path: Path) -> Predicate:
    """Return the filter of a notebook."""
    return compile_filter(file_source(path, "keep"), "keep")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_is_a_filter_that_judges_an_alert_without_anything(
    path: Path, make_alert: Callable[..., dict[str, Any]]
) -> None:
    check_name(path.stem)
    source = file_source(path, "keep")
    assert "AlertReader" not in source
    assert "print" not in source
    assert not keep_of(path)(survey("sim").view(make_alert(1)))


def test_each_keeps_what_it_says(make_alert: Callable[..., dict[str, Any]]) -> None:
    keep = {path.stem: keep_of(path) for path in NOTEBOOKS}
    assert sorted(keep) == ["bright-transient", "fast-mover", "rising"]
    bright = make_alert(1, 1e6)
    moving = make_alert(2, 100.0, ssObjectId=5, trailLength=3.0)
    rising = make_alert(3, 100.0, band="r", midpointMjdTai=60_000.0)
    earlier = [{**rising["diaSource"], "psfFlux": 50.0, "midpointMjdTai": 59_990.0 + day} for day in range(3)]
    rising["prvDiaSources"] = earlier
    views = [survey("sim").view(alert) for alert in (bright, moving, rising)]
    assert [bool(keep["bright-transient"](view)) for view in views] == [True, False, False]
    assert [keep["fast-mover"](view) for view in views] == [False, 3.0, False]
    assert [keep["rising"](view) for view in views] == [False, False, True]


@pytest.mark.data
def test_each_passes_some_real_alerts_and_not_many(data: Path) -> None:
    container = (data / "alerts/lsst/rubin_real_v11_0.avro").read_bytes()
    views = [survey("lsst").view(one.record) for one in wire.read_container(container)]
    for path in NOTEBOOKS:
        passed = sum(bool(keep_of(path)(view)) for view in views)
        assert 1 <= passed <= 4, path.stem


@pytest.mark.data
def test_canonical_ones_judge_ztf_too(data: Path, tmp_path: Path) -> None:
    decoder = AlertDecoder(SchemaRegistry(None, cache_dir=tmp_path))
    views: list[AlertView] = [
        survey("ztf").view(decoder.decode(path.read_bytes()).alert)
        for path in sorted((data / "alerts/ztf").rglob("*.avro"))
    ]
    verdicts = {path.stem: [bool(keep_of(path)(view)) for view in views] for path in NOTEBOOKS}
    assert any(verdicts["bright-transient"])
    assert not all(verdicts["bright-transient"])
