"""The survey of a filter for which none is named."""

import pytest

from nightwire.core.kafka import Writer, admin, ensure_topics, producer
from nightwire.filters import FilterError
from nightwire.filters.authoring.default_survey import alert_counts, default_survey, only_survey, survey_in
from nightwire.schemas.topics import settings


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({}, "sim"),
        ({"lsst": 0}, "lsst"),
        ({"lsst": 3}, "lsst"),
        ({"lsst": 3, "sim": 0}, "lsst"),
        ({"lsst": 0, "sim": 0}, "sim"),
    ],
)
def test_the_only_survey_here_is_meant(counts: dict[str, int], expected: str) -> None:
    assert only_survey(counts) == expected


def test_of_several_surveys_one_is_named() -> None:
    with pytest.raises(FilterError, match=r"\(--survey\): several are here: lsst, ztf"):
        only_survey({"ztf": 1, "lsst": 2, "sim": 0})


@pytest.mark.parametrize(
    ("code", "expected"),
    [('SURVEY = "lsst"\n', "lsst"), ("SURVEY = name()", None), ("", None), ("def", None)],
)
def test_a_notebook_names_its_survey(code: str, expected: str | None) -> None:
    assert survey_in(code) == expected


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        (["filter.ann.bright"], "*"),
        (["alerts.ztf"], "ztf"),
        (["alerts.ztf", "alerts.lsst"], "*"),
    ],
)
def test_a_filter_of_other_topics_takes_what_they_hold(sources: list[str], expected: str) -> None:
    assert default_survey("127.0.0.1:1", sources=sources) == expected


@pytest.mark.kafka
def test_alerts_are_counted_by_survey(kafka: str) -> None:
    ensure_topics(kafka, [settings("alerts.silent"), settings("alerts.loud")])
    writer = Writer(producer(kafka))
    writer.write("alerts.loud", b"one")
    writer.flush()
    assert {"silent": 0, "loud": 1}.items() <= alert_counts(kafka).items()
    client = admin(kafka)
    for gone in client.delete_topics(["alerts.silent", "alerts.loud"]).values():
        gone.result(30)  # others look at what lies here
