"""Each filter is asked once per event, and none can take the gateway's time."""

import pytest
from lxml import etree
from prometheus_client import CollectorRegistry

from nightwire.gateway.status.metrics import GatewayMetrics
from nightwire.gateway.xpath.evaluation import FAIR_COST, MAX_SHARE, WINDOW, CostMonitor, FilterEvaluator
from nightwire.gateway.xpath.filters import Filter, FilterList, MeasuredDocument, compile_filter, read_filters

EVENT = b'<VOEvent role="test"><Who/><What><Param name="a" value="1"/></What></VOEvent>'


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def judge(registry: CollectorRegistry) -> FilterEvaluator:
    return FilterEvaluator(GatewayMetrics(registry))


def counted(registry: CollectorRegistry, outcome: str) -> float | None:
    return registry.get_sample_value("nightwire_gateway_filters_total", {"outcome": outcome})


def test_one_of_several_filters_suffices_and_none_means_all(judge: FilterEvaluator) -> None:
    for texts, passes in ((["false()", "true()"], True), (["false()", "0"], False), ([], True)):
        assert judge.matches(read_filters(texts), 1, EVENT) is passes


def test_each_expression_is_asked_once_per_event_however_many_subscribers_share_it(
    judge: FilterEvaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    ask = Filter.matches

    def matches(one: Filter, root: etree._Element) -> bool:
        asked.append(one.text)
        return ask(one, root)

    monkeypatch.setattr(Filter, "matches", matches)
    subscribers = [read_filters([text, "//None"]) for text in ("//Who", "//What", "//None", "//Who") * 25]
    for event in range(40):  # more than are held parsed
        assert sum(judge.matches(one, event, EVENT) for one in subscribers) == 75
    for one in subscribers:  # later, as a subscriber comes that fell behind
        judge.matches(one, 0, EVENT)
    assert len(asked) == 40 * 3
    assert set(asked) == {"//Who", "//What", "//None"}


def test_verdicts_are_forgotten_before_they_fill_the_memory(
    judge: FilterEvaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nightwire.gateway.xpath.evaluation.MAX_VERDICTS", 50)
    filters = read_filters(["//None", "//Nothing", "0"])
    for event in range(1000):
        judge.matches(filters, event, EVENT)
    assert sum(map(len, judge._verdicts.values())) == judge._verdict_count <= 50
    assert len(judge._documents) <= 32


def test_an_event_that_is_too_large_for_an_expression_passes_and_is_counted(
    judge: FilterEvaluator, registry: CollectorRegistry
) -> None:
    large = b"<VOEvent>" + b'<Param name="a"/>' * 4000 + b"</VOEvent>"
    costly = "//*[count(preceding::*) < -1]"
    assert judge.matches(read_filters([costly]), 1, large)
    assert not judge.matches(read_filters([costly]), 2, EVENT)
    assert counted(registry, "unjudged") == 1


def asked_for(texts: list[str], each: list[float], watch: CostMonitor) -> list[Filter | None]:
    """Ask filters in turn, each taking so long, until a window has passed and one more."""
    filters = [compile_filter(text) for text in texts]
    found, now = [], 0.0
    while now < WINDOW:
        for one, spent in zip(filters, each, strict=True):
            now += spent + 0.001
            found.append(watch.note(one, spent, now))
    return [one for one in found if one is not None]


def test_where_filters_take_too_much_time_the_costliest_is_switched_off() -> None:
    cheap, costly, costliest = "//A[1=1]", "//B[1=1]", "//C[1=1]"
    (off,) = asked_for(
        [cheap, costly, costliest], [FAIR_COST / 2, FAIR_COST * 2, FAIR_COST * 4], CostMonitor()
    )
    assert off is not None
    assert off.text == costliest
    assert off.off == "it took 2 ms per event, and all filters 52% of the gateway's time"


def test_nothing_is_switched_off_while_filters_take_little_or_each_is_cheap() -> None:
    assert asked_for(["//D[1=1]"], [0.001 * MAX_SHARE], CostMonitor()) == []
    (seldom,) = read_filters(["//G[1=1]"]).filters
    watch = CostMonitor()
    assert [watch.note(seldom, 0.01, now) for now in (1.0, 1.0 + 2 * WINDOW)] == [None, None]
    assert asked_for(["//E[1=1]", "//F[1=1]"], [FAIR_COST * 0.99] * 2, CostMonitor()) == []


def test_a_subscriber_whose_filter_is_switched_off_gets_everything_and_is_told(
    judge: FilterEvaluator, registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nightwire.gateway.xpath.evaluation.WINDOW", 0.0)
    monkeypatch.setattr("nightwire.gateway.xpath.evaluation.FAIR_COST", 0.0)
    monkeypatch.setattr("nightwire.gateway.xpath.evaluation.MAX_SHARE", -1.0)
    filters: FilterList = read_filters(["//Nobody[1=1]"])
    assert not judge.matches(filters, 1, EVENT)
    assert judge.matches(filters, 2, EVENT)
    ((text, reason),) = filters.take_switched_off()
    assert text == "//Nobody[1=1]"
    assert "ms per event" in reason
    assert counted(registry, "off") == 1
    assert read_filters([text]).refused == [(text, reason)]


def test_a_document_is_parsed_when_a_filter_first_asks(judge: FilterEvaluator) -> None:
    assert judge.matches(FilterList(), 1, b"not XML: nobody asked")
    assert MeasuredDocument(EVENT).root.tag == "VOEvent"
